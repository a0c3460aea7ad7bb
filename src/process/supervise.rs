//! `prwarden confine`: the process between the daemon and an engine, which nothing escapes.
//!
//! It starts one program and is the child subreaper of everything below it: a descendant that loses
//! its parent, however it left the process group, becomes its child and can be killed and reaped.
//! It asks the kernel for SIGTERM when the thread that started it ends, so a daemon that was killed
//! leaves nothing running. It exits only when no descendant is left. It has a session of its own, so nothing below it
//! reaches the operator's terminal.
//!
//! It reads nothing, writes nothing but its own error, and hands its standard streams to the program.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid, setsid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::table;

/// The exit code when the program was not started; its reason is then on standard error.
const NOT_STARTED: u8 = 125;

/// What that reason starts with.
const PREFIX: &str = "prwarden confine: ";

/// The command line that starts `program` under the supervisor `binary`.
pub(super) fn command(
    binary: &Path,
    grace: Duration,
    program: &Path,
    args: &[OsString],
) -> Command {
    let mut command = Command::new(binary);
    command
        .arg("confine")
        .args(["--parent", &std::process::id().to_string()])
        .args(["--grace-ms", &grace.as_millis().to_string()])
        .arg("--")
        .arg(program)
        .args(args);
    command
}

/// Why a supervisor that ended so didn't start its program; `None` when it did.
pub(super) fn start_failure(code: Option<i32>, stderr: &[u8]) -> Option<String> {
    if code != Some(i32::from(NOT_STARTED)) {
        return None;
    }
    let text = String::from_utf8_lossy(stderr);
    Some(text.strip_prefix(PREFIX)?.trim_end().to_owned())
}

/// What `prwarden confine` was asked to do.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    /// The process that must still be our parent, when one is named.
    parent: Option<Pid>,
    grace: Duration,
    program: OsString,
    args: Vec<OsString>,
}

impl Order {
    fn parse(args: &[OsString]) -> Result<Self, String> {
        let (mut parent, mut grace) = (None, super::GRACE);
        let mut args = args.iter();
        loop {
            let option = args.next().and_then(|arg| arg.to_str());
            if option == Some("--") {
                break;
            }
            let number = args.next().and_then(|arg| arg.to_str());
            match (option, number.and_then(|text| text.parse::<u32>().ok())) {
                (Some("--parent"), Some(pid)) => parent = Some(Pid::from_raw(pid.cast_signed())),
                (Some("--grace-ms"), Some(span)) => grace = Duration::from_millis(span.into()),
                _ => return Err("usage: [--parent PID] [--grace-ms N] -- PROGRAM ARGS...".into()),
            }
        }
        let program = args.next().ok_or("no program after --")?.clone();
        Ok(Self {
            parent,
            grace,
            program,
            args: args.cloned().collect(),
        })
    }
}

/// Runs `prwarden confine` with the arguments after that word. The exit code is the program's own,
/// 128 and the number of the signal that ended it, or 125 with one line on standard error when it
/// was not started.
pub fn main(args: &[OsString]) -> u8 {
    let order = match Order::parse(args) {
        Ok(order) => order,
        Err(text) => return refuse(&text),
    };
    let wakes = match Wakes::listen() {
        Ok(wakes) => wakes,
        Err(error) => return refuse(&format!("cannot listen to signals: {error}")),
    };
    if let Err(error) = restrict() {
        return refuse(&format!("cannot restrict itself: {error}"));
    }
    // Asked for the death signal first, looked at the parent second: a parent that died in between
    // has been replaced by now.
    if order.parent.is_some_and(|parent| parent != getppid()) {
        return refuse("the process that started it is gone");
    }
    match start(&order) {
        Ok(program) => exit_code(wakes.watch(program, order.grace)),
        Err(error) => refuse(&error.to_string()),
    }
}

/// Says on standard error why nothing was started. When even that fails nobody is left to hear it.
fn refuse(reason: &str) -> u8 {
    let _ = writeln!(io::stderr(), "{PREFIX}{reason}");
    NOT_STARTED
}

/// Everything that this process takes on itself: a session, adoption of orphans, the death signal,
/// and what its program inherits: no way to more privileges, private files, no core dumps.
///
/// Limits on processes, memory and the file system belong here, after these.
fn restrict() -> nix::Result<()> {
    // Who leads its group already, started by a shell with job control, keeps its session.
    match setsid() {
        Ok(_) | Err(Errno::EPERM) => {}
        Err(error) => return Err(error),
    }
    prctl::set_child_subreaper(true)?;
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    prctl::set_no_new_privs()?;
    umask(Mode::from_bits_truncate(0o077));
    setrlimit(Resource::RLIMIT_CORE, 0, 0)
}

/// Starts the program as the leader of its own group, so that a signal to it misses the supervisor.
fn start(order: &Order) -> io::Result<Pid> {
    let mut command = Command::new(&order.program);
    command.args(&order.args).process_group(0);
    let child = super::spawn(&mut command, Path::new("."))?;
    Ok(Pid::from_raw(child.id().cast_signed()))
}

fn exit_code(status: Option<WaitStatus>) -> u8 {
    let code = match status {
        Some(WaitStatus::Exited(_, code)) => code,
        Some(WaitStatus::Signaled(_, signal, _)) => 128 + signal as i32,
        _ => 128 + Signal::SIGKILL as i32,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The signals that matter, as something to wait for with a time-out.
struct Wakes {
    pipe: UnixStream,
    asked_to_stop: Arc<AtomicBool>,
}

impl Wakes {
    fn listen() -> io::Result<Self> {
        let (pipe, sender) = UnixStream::pair()?;
        let asked_to_stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            // In this order: who is woken by the byte finds the flag set.
            signal_hook::flag::register(signal, Arc::clone(&asked_to_stop))?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, sender)?;
        Ok(Self {
            pipe,
            asked_to_stop,
        })
    }

    /// Waits for a signal, or for `span` when one is given.
    fn wait(&self, span: Option<Duration>) {
        let span = span.map(|span| span.max(Duration::from_millis(1)));
        let heard = self
            .pipe
            .set_read_timeout(span)
            .and_then(|()| (&self.pipe).read(&mut [0; 64]));
        if let Err(error) = heard
            && !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
            )
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of `program`, brings it about when asked to, and leaves no descendant.
    fn watch(&self, program: Pid, grace: Duration) -> Option<WaitStatus> {
        let mut status = None;
        let mut kill_at = None;
        while reap(program, &mut status) && status.is_none() {
            let now = Instant::now();
            if kill_at.is_none() && self.asked_to_stop.load(Ordering::Relaxed) {
                let _ = killpg(program, Signal::SIGTERM);
                kill_at = Some(now + grace);
            }
            if kill_at.is_some_and(|at| now >= at) {
                break;
            }
            self.wait(kill_at.map(|at| at - now));
        }
        // Killing makes orphans, and orphans become our children: until none is left.
        while reap(program, &mut status) {
            match table::descendants(getpid()) {
                Ok(below) => {
                    for pid in below {
                        let _ = kill(pid, Signal::SIGKILL);
                    }
                }
                Err(_) => {
                    let _ = killpg(program, Signal::SIGKILL);
                }
            }
            self.wait(Some(Duration::from_millis(10)));
        }
        status
    }
}

/// Reaps every child that has ended and notes how `program` did. Whether any child is left.
fn reap(program: Pid, status: &mut Option<WaitStatus>) -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Ok(ended) => {
                if ended.pid() == Some(program) {
                    *status = Some(ended);
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(args: &[&str]) -> Result<Order, String> {
        Order::parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_run_writes_on_the_command_line_is_what_the_supervisor_reads() {
        let args = [OsString::from("--parent"), OsString::from("--")];
        let grace = Duration::from_millis(250);
        let command = command(Path::new("/us"), grace, Path::new("/bin/engine"), &args);
        let written: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        assert_eq!(written[0], "confine");
        let wanted = Order {
            parent: Some(getpid()),
            grace,
            program: "/bin/engine".into(),
            args: args.to_vec(),
        };
        assert_eq!(Order::parse(&written[1..]), Ok(wanted));
    }

    #[test]
    fn an_incomplete_order_starts_nothing() {
        for args in [
            &[][..],
            &["--"],
            &["true"],
            &["--parent", "--", "true"],
            &["--parent", "x", "--", "true"],
            &["--grace-ms"],
        ] {
            assert!(order(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn only_the_supervisors_own_message_counts_as_a_failed_start() {
        let said = b"prwarden confine: No such file\n";
        assert_eq!(
            start_failure(Some(125), said).as_deref(),
            Some("No such file")
        );
        assert_eq!(start_failure(Some(1), said), None);
        assert_eq!(start_failure(Some(125), b"its own words\n"), None);
        assert_eq!(start_failure(None, said), None);
    }
}
