//! Every child process starts here: environment built from nothing, bounded output, a time-out that
//! nothing outlives.
//!
//! [`run`] watches one child with `poll(2)` on the calling thread; it starts no threads, so none can
//! be left behind. The end of a run is always the same: the child has ended, the rest of its process
//! group is killed, the pipes are read empty for a bounded time, and only then is the child reaped,
//! so that its number still names it and its group while signals are sent. With a supervisor ([`supervise`]) the
//! guarantee extends to descendants that left the group.

mod locate;
mod orphans;
mod pipes;
pub mod supervise;
mod table;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::clock::Stop;
use pipes::Pipes;

pub use locate::executable as locate;
pub use orphans::adopt as adopt_orphans;
pub use table::{Identity, identity, is_alive};

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
    /// The exit code; `None` when a signal ended it. Of a supervised program that a signal ended it
    /// is 128 and the signal's number, as in a shell.
    pub code: Option<i32>,
    /// The signal that ended it (a supervised program: see `code`).
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
    /// It had begun, and may have done anything.
    pub began: bool,
    /// What the system said.
    pub source: io::Error,
}

/// How many bytes of standard error are kept, from its end.
pub const STDERR_TAIL: usize = 16 * 1024;

/// How long a program has between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);

/// How much longer than its program's grace a supervisor has to kill and reap what is left.
const SUPERVISOR_MARGIN: Duration = Duration::from_secs(5);

/// How long after SIGKILL a process may still be in the kernel before it is given up.
const UNKILLABLE: Duration = Duration::from_secs(10);

/// How long the pipes of an ended program are read while nothing arrives: only a process that left
/// the group can hold them open. Four times this is the limit for one that keeps writing.
const DRAIN: Duration = Duration::from_millis(500);

/// Runs `program` to its end, its time-out or `stop`, whichever comes first.
///
/// # Errors
/// When it can't be started; how it ended is not an error.
pub fn run(program: &Program, stop: &Stop) -> Result<Finished, ProcessError> {
    run_with_grace(program, stop, GRACE)
}

/// [`run`] with another time than [`GRACE`] between SIGTERM and SIGKILL.
///
/// # Errors
/// When it can't be started, or when the kernel doesn't let go of it ten seconds after SIGKILL.
pub fn run_with_grace(
    program: &Program,
    stop: &Stop,
    grace: Duration,
) -> Result<Finished, ProcessError> {
    let error = |source, began| ProcessError {
        program: program.executable.display().to_string(),
        began,
        source,
    };
    let failed = |source| error(source, false);
    let failed_later = |source| error(source, true);
    let started = Instant::now();
    let executable = locate::executable(&program.executable, &program.env).map_err(failed)?;
    let mut command = match &program.supervisor {
        Some(supervisor) => supervise::command(supervisor, grace, &executable, &program.args),
        None => {
            let mut command = Command::new(&executable);
            command.args(&program.args);
            command
        }
    };
    command
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if program.supervisor.is_none() {
        command.process_group(0);
    }
    let child = orphans::remember(|| spawn(&mut command, &program.directory)).map_err(failed)?;
    let mut running = Running {
        pid: Pid::from_raw(child.id().cast_signed()),
        supervised: program.supervisor.is_some(),
        grace,
        child,
    };
    let watched = Pipes::take(&mut running.child, &program.stdin, program.stdout_limit)
        .and_then(|pipes| running.watch(pipes, stop, started + program.timeout));
    running.kill_rest();
    let (ended, mut pipes) = watched.map_err(failed_later)?;
    pipes.drain(DRAIN);
    let status = running.child.wait().map_err(failed_later)?;
    orphans::forget(running.pid);
    if running.supervised && status.signal().is_some() {
        // It was killed before it could clean up.
        orphans::end();
    }
    let ended = match ended {
        Ended::Itself if pipes.overflowed() => Ended::TooMuchOutput,
        ended => ended,
    };
    let (stdout, stderr) = pipes.into_output();
    if running.supervised
        && ended == Ended::Itself
        && let Some(reason) = supervise::start_failure(status.code(), &stderr)
    {
        return Err(failed(io::Error::other(reason)));
    }
    Ok(Finished {
        code: status.code(),
        signal: status.signal(),
        stdout,
        stderr,
        ended,
        elapsed: started.elapsed(),
    })
}

/// Starts `command`. A file that is open for writing (`ETXTBSY`) is tried again for a moment: while
/// one thread has just written it, another thread's child may still hold the descriptor.
fn spawn(command: &mut Command, directory: &Path) -> io::Result<Child> {
    const ATTEMPTS: u32 = 20;
    let mut attempt = 1;
    loop {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                if attempt == ATTEMPTS {
                    return Err(explain(error, directory));
                }
                attempt += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            started => return started.map_err(|error| explain(error, directory)),
        }
    }
}

/// Adds to an error of the start what an operator can do about it.
fn explain(error: io::Error, directory: &Path) -> io::Error {
    let advice = match error.kind() {
        _ if !directory.is_dir() => {
            format!("the working directory {} is missing", directory.display())
        }
        io::ErrorKind::ExecutableFileBusy => {
            "the file is open for writing; if it is being updated, try again".to_owned()
        }
        io::ErrorKind::NotFound => {
            "the interpreter named in its first line or ELF header is missing".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "it may not be executed; check its mode and the mount's noexec".to_owned()
        }
        _ if error.raw_os_error() == Some(Errno::ENOEXEC as i32) => {
            "it is neither a program of this machine nor a script with a #! line".to_owned()
        }
        _ if error.raw_os_error() == Some(Errno::E2BIG as i32) => {
            "its arguments and environment are too long".to_owned()
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}: {advice}"))
}

/// A started child, not yet reaped: the leader of its own process group or, when it is a supervisor,
/// of its own session.
struct Running {
    child: Child,
    pid: Pid,
    supervised: bool,
    grace: Duration,
}

/// How far the end of a run has come.
enum Phase {
    Runs,
    Terminating { kill_at: Instant },
    Killed { give_up_at: Instant },
}

impl Running {
    /// Moves bytes until the child has ended; past the deadline, the stop or the output's limit it
    /// is asked and then made to end.
    fn watch<'a>(
        &self,
        mut pipes: Pipes<'a>,
        stop: &Stop,
        deadline: Instant,
    ) -> io::Result<(Ended, Pipes<'a>)> {
        // With a pipe open its end wakes the wait; without one the child has to be asked again.
        const WITH_PIPES: Duration = Duration::from_millis(50);
        const SHORTEST: Duration = Duration::from_millis(1);
        const LONGEST: Duration = Duration::from_millis(20);
        let (mut phase, mut ended, mut nap) = (Phase::Runs, Ended::Itself, SHORTEST);
        loop {
            if pipes.reading() {
                pipes.pump(WITH_PIPES);
            } else {
                pipes.pump(nap);
                nap = (nap * 2).min(LONGEST);
            }
            if has_ended(self.pid)? {
                return Ok((ended, pipes));
            }
            let now = Instant::now();
            match phase {
                Phase::Runs => {
                    ended = if pipes.overflowed() {
                        Ended::TooMuchOutput
                    } else if stop.is_set() {
                        Ended::Stopped
                    } else if now >= deadline {
                        Ended::TimedOut
                    } else {
                        continue;
                    };
                    self.terminate();
                    let kill_at = now + self.patience();
                    phase = Phase::Terminating { kill_at };
                }
                Phase::Terminating { kill_at } if now >= kill_at => {
                    self.kill();
                    let give_up_at = now + UNKILLABLE;
                    phase = Phase::Killed { give_up_at };
                }
                Phase::Killed { give_up_at } if now >= give_up_at => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "it hangs in the kernel and can't be killed; is a file system gone?",
                    ));
                }
                Phase::Terminating { .. } | Phase::Killed { .. } => {}
            }
        }
    }

    /// How long the child has after SIGTERM. A supervisor gives its program the grace and then needs
    /// time of its own.
    fn patience(&self) -> Duration {
        if self.supervised {
            self.grace + SUPERVISOR_MARGIN
        } else {
            self.grace
        }
    }

    /// Asks the child to end. That it is gone already is fine, here and below.
    fn terminate(&self) {
        let _ = if self.supervised {
            kill(self.pid, Signal::SIGTERM)
        } else {
            killpg(self.pid, Signal::SIGTERM)
        };
    }

    /// Makes the child end, and with a supervisor that didn't answer all that is below it.
    fn kill(&self) {
        if self.supervised {
            kill_each(table::descendants(self.pid));
            let _ = kill(self.pid, Signal::SIGKILL);
        } else {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }

    /// Kills what the child left: its group or, in case a supervisor was killed before it had
    /// cleaned up, its session.
    fn kill_rest(&self) {
        if self.supervised {
            kill_each(table::session(self.pid));
        } else {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }
}

/// SIGKILL to every process that could be found.
fn kill_each(found: io::Result<Vec<Pid>>) {
    for pid in found.unwrap_or_default() {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Whether the child is dead; it stays a zombie, so that its number isn't given to another process.
fn has_ended(pid: Pid) -> io::Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(pid), flags) {
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
