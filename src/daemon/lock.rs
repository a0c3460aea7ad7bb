//! One daemon or cycle per store, or per member of a pool: a lock that dies with its process.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::ids::RepoName;

/// Holds its lock files until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    _held: Vec<Flock<File>>,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another instance works on the store.
    #[error(
        "another prwarden works on this store (lock {}); several may only if each of them sets \
         budget.authority and they serve different repositories", .0.display()
    )]
    Held(PathBuf),
    /// The lock file can't be opened or locked.
    #[error("cannot lock {}: {source}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl InstanceLock {
    /// Takes the store at `store` for this process alone, without waiting.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process has it.
    pub fn take(store: &Path) -> Result<Self, LockError> {
        let lock = lock(store, ".lock", FlockArg::LockExclusiveNonblock)?;
        Ok(Self { _held: vec![lock] })
    }

    /// Takes a place at the store at `store` beside other members of a pool, for the process that
    /// `member`, its first repository, names.
    ///
    /// # Errors
    /// [`LockError::Held`] when a process that shares with nobody has the store, or another process
    /// has this name.
    pub fn share(store: &Path, member: &RepoName) -> Result<Self, LockError> {
        // A name that is no other's: neither owners nor names hold a `~`.
        let own = format!(".{}~{}.lock", member.owner(), member.name()).to_ascii_lowercase();
        Ok(Self {
            _held: vec![
                lock(store, ".lock", FlockArg::LockSharedNonblock)?,
                lock(store, &own, FlockArg::LockExclusiveNonblock)?,
            ],
        })
    }
}

fn lock(store: &Path, suffix: &str, how: FlockArg) -> Result<Flock<File>, LockError> {
    // One store is one store, by whatever links it is reached.
    let mut name = fs::canonicalize(store)
        .unwrap_or_else(|_| store.to_owned())
        .into_os_string();
    name.push(suffix);
    let path = PathBuf::from(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|source| LockError::Io {
            path: path.clone(),
            source,
        })?;
    match Flock::lock(file, how) {
        Ok(held) => Ok(held),
        Err((_, Errno::EWOULDBLOCK)) => Err(LockError::Held(path)),
        Err((_, errno)) => Err(LockError::Io {
            path,
            source: errno.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_is_told_and_a_release_frees_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("state.db");
        let first = InstanceLock::take(&store).unwrap();
        assert!(matches!(
            InstanceLock::take(&store),
            Err(LockError::Held(_))
        ));
        drop(first);
        InstanceLock::take(&store).unwrap();
    }

    #[test]
    fn a_link_leads_to_the_same_lock() {
        let dir = tempfile::tempdir().unwrap();
        let (store, link) = (dir.path().join("state.db"), dir.path().join("link.db"));
        fs::write(&store, "").unwrap();
        std::os::unix::fs::symlink(&store, &link).unwrap();
        let _first = InstanceLock::take(&store).unwrap();
        assert!(matches!(InstanceLock::take(&link), Err(LockError::Held(_))));
    }

    #[test]
    fn members_of_a_pool_share_the_store_with_each_other_and_with_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("state.db");
        let share = |name: &str| InstanceLock::share(&store, &name.parse().unwrap());
        let one = share("acme/one").unwrap();
        let two = share("acme/two").unwrap();
        assert!(matches!(share("Acme/One"), Err(LockError::Held(_))));
        assert!(matches!(
            InstanceLock::take(&store),
            Err(LockError::Held(_))
        ));
        drop((one, two));
        let alone = InstanceLock::take(&store).unwrap();
        assert!(matches!(share("acme/one"), Err(LockError::Held(_))));
        drop(alone);
    }
}
