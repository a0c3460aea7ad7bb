//! The process table as `/proc` shows it: who a process is, and who descends from it.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// What tells one process from every other on its host, also after its number was given anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The host's name.
    pub host: String,
    /// The process number.
    pub pid: u32,
    /// When it started, in clock ticks since the host booted.
    pub start: u64,
}

/// The identity of this process.
///
/// # Errors
/// When `/proc` or the host's name can't be read.
pub fn identity() -> io::Result<Identity> {
    let stat = fs::read("/proc/self/stat")?;
    let stat = Stat::parse(&stat).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "/proc/self/stat has an unknown form",
        )
    })?;
    Ok(Identity {
        host: nix::unistd::gethostname()?.to_string_lossy().into_owned(),
        pid: std::process::id(),
        start: stat.start,
    })
}

/// Whether the process `pid` of this host that started at `start` ([`Identity::start`]) still runs.
/// When the system doesn't say, it counts as alive: what it holds isn't taken from it.
pub fn is_alive(pid: u32, start: u64) -> bool {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => Stat::parse(&stat).is_none_or(|stat| stat.start == start && !stat.dead),
        // Under `hidepid` a process that hides its memory isn't shown to its own user either. A
        // signal still finds it.
        Err(error) => !gone(&error) || signalable(pid),
    }
}

fn signalable(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    pid.is_some_and(|pid| !matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH)))
}

/// Every process below `root`, nearest first, as far as `/proc` shows them.
pub(super) fn descendants(root: Pid) -> io::Result<Vec<Pid>> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in all()? {
        children.entry(stat.parent).or_default().push(pid);
    }
    let mut found = vec![root.as_raw()];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    Ok(found.into_iter().skip(1).map(Pid::from_raw).collect())
}

/// The children of `parent`.
pub(super) fn children(parent: Pid) -> io::Result<Vec<Pid>> {
    those(|stat| stat.parent == parent.as_raw())
}

/// Every process of the session that `leader` started, itself included.
pub(super) fn session(leader: Pid) -> io::Result<Vec<Pid>> {
    those(|stat| stat.session == leader.as_raw())
}

fn those(wanted: impl Fn(&Stat) -> bool) -> io::Result<Vec<Pid>> {
    let found = all()?.into_iter().filter(|(_, stat)| wanted(stat));
    Ok(found.map(|(pid, _)| Pid::from_raw(pid)).collect())
}

/// All processes. One that ends while the table is read may be missing.
fn all() -> io::Result<Vec<(i32, Stat)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        found.extend(Stat::parse(&stat).map(|stat| (pid, stat)));
    }
    Ok(found)
}

/// A process that is no more is reported in two ways: before opening and while reading.
fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// The fields of `/proc/PID/stat` in use; see proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// It has ended and waits for its parent.
    dead: bool,
    parent: i32,
    session: i32,
    start: u64,
}

impl Stat {
    /// The second field is the program's name in parentheses, which may itself hold anything, also
    /// parentheses, spaces and newlines: the fields start after the last one.
    fn parse(line: &[u8]) -> Option<Self> {
        let close = line.iter().rposition(|&byte| byte == b')')?;
        let text = std::str::from_utf8(&line[close + 1..]).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(15)?.parse().ok()?;
        Some(Self {
            dead: matches!(state, "Z" | "X" | "x"),
            parent,
            session,
            start,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) R 1 (b) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 9 9\n";
        let wanted = Stat {
            dead: false,
            parent: 7,
            session: 41,
            start: 987_654,
        };
        assert_eq!(Stat::parse(line), Some(wanted));
        assert_eq!(Stat::parse(b"42 (a"), None);
    }

    #[test]
    fn this_process_is_alive_and_its_number_with_another_start_is_not() {
        let me = identity().unwrap();
        assert_eq!(me.pid, std::process::id());
        assert!(is_alive(me.pid, me.start));
        assert!(!is_alive(me.pid, me.start + 1));
    }

    #[test]
    fn an_ended_process_is_not_alive_even_before_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let stat = loop {
            let stat = Stat::parse(&fs::read(format!("/proc/{pid}/stat")).unwrap()).unwrap();
            if stat.dead {
                break stat;
            }
            std::thread::yield_now();
        };
        assert!(!is_alive(pid, stat.start));
        child.wait().unwrap();
        assert!(!is_alive(pid, stat.start));
    }

    #[test]
    fn descendants_are_found_over_several_generations() {
        use std::io::Read as _;
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sh -c 'sleep 300 & echo $!; wait' & wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (mut text, mut byte) = (String::new(), [0]);
        let mut out = shell.stdout.take().unwrap();
        while out.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            text.push(char::from(byte[0]));
        }
        let sleeper = Pid::from_raw(text.parse().unwrap());
        let below = descendants(Pid::from_raw(shell.id().cast_signed())).unwrap();
        assert!(below.contains(&sleeper), "{below:?}");
        for pid in below {
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
