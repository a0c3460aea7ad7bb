//! What outlives a supervisor that its own program killed.
//!
//! A process that asks for orphans ([`adopt`]) becomes the parent of everything that such a supervisor
//! leaves (prctl(2), PR_SET_CHILD_SUBREAPER), and ends it with the run.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::table;

/// Whether this process is the parent of orphans.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The children that were started on purpose. Whoever starts one holds the lock until it is in the
/// list, so that it is never taken for an orphan.
static OWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// How often orphans of orphans are looked for, and how long each look waits for the dying.
const LOOKS: u32 = 200;
const NAP: Duration = Duration::from_millis(5);

/// Makes this process the parent of what its descendants leave behind. Only for a program that starts
/// every child through this room: any other one would be taken for an orphan.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt() -> io::Result<()> {
    prctl::set_child_subreaper(true)?;
    ADOPTS.store(true, Ordering::SeqCst);
    Ok(())
}

/// Runs `start` and remembers the child that it makes.
pub(super) fn remember<E>(
    start: impl FnOnce() -> Result<std::process::Child, E>,
) -> Result<std::process::Child, E> {
    let mut own = own();
    let child = start()?;
    own.insert(child.id().cast_signed());
    Ok(child)
}

fn own() -> MutexGuard<'static, BTreeSet<i32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The child was reaped; its number may be given to another process.
pub(super) fn forget(pid: Pid) {
    own().remove(&pid.as_raw());
}

/// Kills and reaps what a supervisor left, and what that left in turn.
pub(super) fn end() {
    if !ADOPTS.load(Ordering::SeqCst) {
        return;
    }
    for _ in 0..LOOKS {
        let own = own();
        let mut orphans = table::children(Pid::this()).unwrap_or_default();
        orphans.retain(|pid| !own.contains(&pid.as_raw()));
        for orphan in &orphans {
            let _ = kill(*orphan, Signal::SIGKILL);
            let _ = waitpid(*orphan, Some(WaitPidFlag::WNOHANG));
        }
        drop(own);
        if orphans.is_empty() {
            return;
        }
        std::thread::sleep(NAP);
    }
}
