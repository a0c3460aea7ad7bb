//! The commands. Each is one file; exit codes are decided in [`exit`] and nowhere else.

pub mod args;
pub mod exit;

mod config;
mod daemon;
mod db;
mod demo;
mod doctor;
mod purge;
mod queue;
mod review;
mod sample_engine;
mod status;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use nix::sys::prctl::set_dumpable;

use crate::config::LogFormat;
use crate::process::supervise;
use args::{Cli, Command};
use exit::{Exit, Failed};

/// Runs the command line `args`, the program's name first, and tells how the process is to end.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // Tokens stand in this process's environment and memory, and an engine runs as the same user: what
    // can't be dumped can't be read through /proc or ptrace(2) either (prctl(2), PR_SET_DUMPABLE).
    if let Err(error) = set_dumpable(false) {
        complain(&format!(
            "cannot keep other processes out of this one: {error}"
        ));
        return Exit::Failure.into();
    }
    // The supervisor of a subprocess has a grammar of its own, and nothing to do with the rest.
    if let [_, command, rest @ ..] = args.as_slice()
        && command == "confine"
    {
        return supervise::main(rest).into();
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for and go to stdout; a reader that went away is no fault.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage.into()
            } else {
                Exit::Success.into()
            };
        }
    };
    let globals = Globals {
        config: cli.config,
        log: cli.log,
        log_format: cli.log_format,
    };
    let ended = match cli.command {
        Command::Run => daemon::run(&globals),
        Command::Once(args) => daemon::once(&globals, &args),
        Command::Review(args) => review::review(&globals, &args),
        Command::Demo(args) => demo::demo(&globals, &args),
        Command::Config(command) => config::config(&globals, &command),
        Command::Status => status::status(&globals),
        Command::Doctor => doctor::doctor(&globals),
        Command::Db(command) => db::db(&globals, &command),
        Command::Queue(command) => queue::queue(&globals, &command),
        Command::Purge(args) => purge::purge(&globals, &args),
        Command::SampleEngine => sample_engine::run(),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failed) => {
            complain(&failed.message);
            failed.exit.into()
        }
    }
}

/// The options that every command takes.
#[derive(Debug)]
struct Globals {
    config: Option<std::path::PathBuf>,
    log: Option<log::LevelFilter>,
    log_format: Option<LogFormat>,
}

type Ended = Result<Exit, Failed>;

/// Writes a result to stdout. A reader that closed the pipe has seen enough.
fn print(text: &str) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failed::new(
            Exit::Failure,
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Writes one line for the operator to stderr, where nobody may be listening any more.
fn complain(message: &str) {
    let _ = writeln!(io::stderr().lock(), "prwarden: {message}");
}

/// Reads an environment variable.
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
