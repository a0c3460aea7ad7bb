//! The three pipes of a child, moved without blocking and kept within bounds.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::STDERR_TAIL;

/// Our ends of the pipes. A pipe is dropped, and so closed, as soon as it has nothing more to do.
pub(super) struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<ChildStdout>,
    out: Vec<u8>,
    limit: usize,
    overflowed: bool,
    stderr: Option<ChildStderr>,
    tail: Vec<u8>,
}

impl<'a> Pipes<'a> {
    /// Takes the pipes of `child`, which will read `input`; `limit` bytes of its output are kept.
    pub(super) fn take(child: &mut Child, input: &'a [u8], limit: usize) -> io::Result<Self> {
        let pipes = Self {
            stdin: child.stdin.take().filter(|_| !input.is_empty()),
            input,
            stdout: child.stdout.take(),
            out: Vec::new(),
            limit,
            overflowed: false,
            stderr: child.stderr.take(),
            tail: Vec::new(),
        };
        for fd in pipes.fds().into_iter().flatten() {
            let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
            fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        Ok(pipes)
    }

    fn fds(&self) -> [Option<BorrowedFd<'_>>; 3] {
        [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ]
    }

    /// Whether the child, or somebody who inherited from it, may still write.
    pub(super) fn reading(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Whether standard output exceeded its limit.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Waits at most `wait` for any pipe and moves what can be moved. Whether something arrived.
    pub(super) fn pump(&mut self, wait: Duration) -> bool {
        let (mut ready, mut fds) = ([false; 3], Vec::with_capacity(3));
        let wanted = [PollFlags::POLLOUT, PollFlags::POLLIN, PollFlags::POLLIN];
        let open = self.fds();
        for (fd, flags) in open.into_iter().zip(wanted) {
            fds.extend(fd.map(|fd| PollFd::new(fd, flags)));
        }
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) => {
                let mut events = fds.iter();
                for (slot, fd) in ready.iter_mut().zip(open) {
                    if fd.is_some() {
                        *slot = events.next().and_then(PollFd::any).unwrap_or(true);
                    }
                }
            }
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => std::thread::sleep(wait),
        }
        if ready[0] {
            self.feed();
        }
        let heard = ready[1] && self.hear_stdout();
        (ready[2] && self.hear_stderr()) || heard
    }

    /// Reads what an ended program left in the pipes. Ends at their end, after `quiet` without a
    /// byte, or after four times that.
    pub(super) fn drain(&mut self, quiet: Duration) {
        self.stdin = None;
        let started = Instant::now();
        while self.reading() {
            let heard = self.pump(Duration::from_millis(10));
            let elapsed = started.elapsed();
            if elapsed >= quiet * 4 || (!heard && elapsed >= quiet) {
                break;
            }
        }
    }

    /// Standard output and the tail of standard error.
    pub(super) fn into_output(mut self) -> (Vec<u8>, Vec<u8>) {
        let excess = self.tail.len().saturating_sub(STDERR_TAIL);
        self.tail.drain(..excess);
        (self.out, self.tail)
    }

    fn feed(&mut self) {
        let Some(pipe) = &mut self.stdin else { return };
        match pipe.write(self.input) {
            Ok(count) => self.input = &self.input[count..],
            Err(error) if passing(&error) => return,
            // The program doesn't want more: its affair.
            Err(_) => self.input = &[],
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
    }

    fn hear_stdout(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        let Some(count) = read(&mut self.stdout, &mut buffer) else {
            return false;
        };
        let room = self.limit - self.out.len();
        self.out.extend_from_slice(&buffer[..count.min(room)]);
        if count > room {
            self.overflowed = true;
            self.stdout = None;
        }
        true
    }

    fn hear_stderr(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let Some(count) = read(&mut self.stderr, &mut buffer) else {
            return false;
        };
        self.tail.extend_from_slice(&buffer[..count]);
        if self.tail.len() > 4 * STDERR_TAIL {
            self.tail.drain(..self.tail.len() - STDERR_TAIL);
        }
        true
    }
}

/// One read. A pipe at its end is dropped.
fn read(pipe: &mut Option<impl Read>, buffer: &mut [u8]) -> Option<usize> {
    match pipe.as_mut()?.read(buffer) {
        Ok(count) if count > 0 => Some(count),
        Err(error) if passing(&error) => None,
        Ok(_) | Err(_) => {
            *pipe = None;
            None
        }
    }
}

fn passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
