//! One daemon or cycle per store: a lock that dies with its process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// Holds `<store>.lock` until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    _held: Flock<File>,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another instance works on the store.
    #[error("another prwarden works on this store (lock {}); only one may", .0.display())]
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
    /// Takes the lock of the store at `store` without waiting.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process has it.
    pub fn take(store: &Path) -> Result<Self, LockError> {
        let mut name = store.as_os_str().to_owned();
        name.push(".lock");
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
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => Ok(Self { _held: held }),
            Err((_, Errno::EWOULDBLOCK)) => Err(LockError::Held(path)),
            Err((_, errno)) => Err(LockError::Io {
                path,
                source: errno.into(),
            }),
        }
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
}
