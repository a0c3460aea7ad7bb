//! Every child process starts here: environment built from nothing, bounded output, a time-out that
//! nothing outlives.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, bounded};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::clock::Stop;

/// A program to run, with everything that it gets to see.
#[derive(Debug, Clone)]
pub struct Program {
    /// The executable: a path, or a name looked up in `PATH` of `env`.
    pub executable: PathBuf,
    /// Arguments without the program's own name. They show in process lists: never a secret.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    /// What it reads on standard input.
    pub stdin: Vec<u8>,
    /// Wall-clock time for the whole run.
    pub timeout: Duration,
    /// Most bytes of standard output that are kept; more ends the run as [`Ended::TooMuchOutput`].
    pub stdout_limit: usize,
    /// Our own binary, when the run is to be supervised by `prwarden confine`: then every descendant
    /// is gone when `run` returns, also one that left the process group, and nothing outlives a
    /// daemon that was killed.
    pub supervisor: Option<PathBuf>,
}

/// What a program left behind.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output, at most `stdout_limit` bytes.
    pub stdout: Vec<u8>,
    /// The last [`STDERR_TAIL`] bytes of standard error.
    pub stderr: Vec<u8>,
    /// Why it ended.
    pub ended: Ended,
    /// Wall-clock time from start to end.
    pub elapsed: Duration,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The program ended itself.
    Itself,
    /// The time-out passed and it was killed.
    TimedOut,
    /// The daemon stops and it was killed.
    Stopped,
    /// It wrote more than `stdout_limit` bytes and was killed.
    TooMuchOutput,
}

/// A program that could not be started or watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program}: {source}")]
pub struct ProcessError {
    /// The executable.
    pub program: String,
    /// What the system said.
    pub source: io::Error,
}

/// How many bytes of standard error are kept, from its end.
pub const STDERR_TAIL: usize = 16 * 1024;

/// How long a program has between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);

/// Runs `program` to its end, its time-out or `stop`, whichever comes first.
///
/// # Errors
/// When it can't be started; how it ended is not an error.
pub fn run(program: &Program, stop: &Stop) -> Result<Finished, ProcessError> {
    let failed = |source| ProcessError {
        program: program.executable.display().to_string(),
        source,
    };
    let started = Instant::now();
    let mut child = Command::new(&program.executable)
        .args(&program.args)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let group = Pid::from_raw(child.id() as i32);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let input = program.stdin.clone();
    std::thread::spawn(move || stdin.map(|mut pipe| pipe.write_all(&input)));
    let (send, done) = bounded(2);
    let (limit, send_out) = (program.stdout_limit, send.clone());
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = stdout {
            let _ = pipe.take(limit as u64 + 1).read_to_end(&mut bytes);
        }
        let _ = send_out.send((true, bytes));
    });
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = stderr {
            let _ = pipe.read_to_end(&mut bytes);
        }
        let _ = send.send((false, bytes));
    });
    let (mut out, mut err, mut ended, mut pending) = (Vec::new(), Vec::new(), Ended::Itself, 2);
    while pending > 0 {
        match done.recv_timeout(Duration::from_millis(50)) {
            Ok((true, bytes)) => {
                pending -= 1;
                if bytes.len() > limit {
                    ended = Ended::TooMuchOutput;
                }
                out = bytes;
            }
            Ok((false, bytes)) => {
                pending -= 1;
                err = bytes;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ended == Ended::Itself && pending > 0 {
            if stop.is_set() {
                ended = Ended::Stopped;
            } else if started.elapsed() >= program.timeout {
                ended = Ended::TimedOut;
            }
        }
        if ended != Ended::Itself {
            let _ = killpg(group, Signal::SIGKILL);
            break;
        }
    }
    let status = child.wait().map_err(failed)?;
    out.truncate(limit);
    let tail = err.len().saturating_sub(STDERR_TAIL);
    Ok(Finished {
        code: status.code(),
        signal: status.signal(),
        stdout: out,
        stderr: err.split_off(tail),
        ended,
        elapsed: started.elapsed(),
    })
}
