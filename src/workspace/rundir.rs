//! One directory per run, for as long as a process holds its lock: whoever finds the lock free knows
//! that the run is over, whatever became of its process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::{GitError, WorkspaceError};
use crate::clock::{Stop, Waited};
use crate::output::clip;

/// How often a lock is tried.
const RETRY: Duration = Duration::from_millis(50);

/// How often a run's own lock is tried: another process looks whether it is stale, for an instant.
const RUN_RETRIES: u32 = 100;

/// A run's directory and the lock that keeps it. Both go when this is dropped.
#[derive(Debug)]
pub(super) struct RunDir {
    name: String,
    dir: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// Makes the directory of a new run below `root`.
    pub(super) fn create(root: &Path, name: &str, stop: &Stop) -> Result<Self, WorkspaceError> {
        let refused = || WorkspaceError::RunName { run: clip(name) };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if name.is_empty() || name.len() > 64 || name.starts_with('-') || !name.bytes().all(plain) {
            return Err(refused());
        }
        private_dir(root)?;
        let lock_path = lock_path(root, name);
        for _ in 0..RUN_RETRIES {
            if let Some(run) = Self::claim(root, name).map_err(WorkspaceError::io(&lock_path))? {
                // Anything in it is from a process that died.
                remove_dir(&run.dir)?;
                private_dir(&run.dir)?;
                return Ok(run);
            }
            if stop.wait(RETRY) == Waited::Stopped {
                return Err(GitError::Stopped.into());
            }
        }
        Err(refused())
    }

    /// The runs below `root` that no process holds, each locked now.
    pub(super) fn stale(root: &Path) -> Result<Vec<Self>, WorkspaceError> {
        let mut stale = Vec::new();
        for entry in list(root)? {
            let Some(file_name) = entry.file_name().into_string().ok() else {
                continue;
            };
            let name = file_name.strip_suffix(".lock").unwrap_or(&file_name);
            let claimed = Self::claim(root, name);
            stale.extend(claimed.map_err(WorkspaceError::io(&entry.path()))?);
        }
        Ok(stale)
    }

    /// Whether a process holds the run.
    pub(super) fn is_live(root: &Path, name: &str) -> Result<bool, WorkspaceError> {
        let path = lock_path(root, name);
        match File::open(&path).map(|file| file.try_lock()) {
            Ok(Ok(())) => Ok(false),
            Ok(Err(TryLockError::WouldBlock)) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Ok(Err(TryLockError::Error(error))) | Err(error) => {
                Err(WorkspaceError::io(&path)(error))
            }
        }
    }

    /// Takes the lock if nobody has it.
    fn claim(root: &Path, name: &str) -> io::Result<Option<Self>> {
        let path = lock_path(root, name);
        let lock = open_lock(&path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Between opening and locking the file may have been removed with its run.
        let current = fs::metadata(&path).is_ok_and(|there| {
            lock.metadata()
                .is_ok_and(|ours| ours.ino() == there.ino() && ours.dev() == there.dev())
        });
        Ok(current.then(|| Self {
            name: name.to_owned(),
            dir: root.join(name),
            lock_path: path,
            _lock: lock,
        }))
    }

    /// The run's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes the directory; the lock stays until the value is dropped.
    pub(super) fn clear(&self) -> Result<(), WorkspaceError> {
        remove_dir(&self.dir)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            log::warn!("cannot remove a checkout; the next start tries again: {error}");
            return;
        }
        if let Err(error) = fs::remove_file(&self.lock_path) {
            log::warn!("cannot remove {}: {error}", self.lock_path.display());
        }
    }
}

/// Waits for an exclusive lock on `path`, a file that is never removed.
pub(super) fn lock(path: &Path, stop: &Stop) -> Result<File, WorkspaceError> {
    loop {
        if let Some(file) = try_lock(path)? {
            return Ok(file);
        }
        if stop.wait(RETRY) == Waited::Stopped {
            return Err(GitError::Stopped.into());
        }
    }
}

/// The exclusive lock on `path`, a file that is never removed; `None` when somebody has it.
pub(super) fn try_lock(path: &Path) -> Result<Option<File>, WorkspaceError> {
    let file = open_lock(path).map_err(WorkspaceError::io(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(WorkspaceError::io(path)(error)),
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn lock_path(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{name}.lock"))
}

/// Makes a directory, with those above it, that only its owner may enter.
pub(super) fn private_dir(path: &Path) -> Result<(), WorkspaceError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(WorkspaceError::io(path))
}

/// Removes a directory with all its content, if it is there; symlinks are not followed.
pub(super) fn remove_dir(path: &Path) -> Result<(), WorkspaceError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WorkspaceError::io(path)(error))
        }
        _ => Ok(()),
    }
}

/// The entries of a directory; none when it does not exist.
pub(super) fn list(path: &Path) -> Result<Vec<fs::DirEntry>, WorkspaceError> {
    match fs::read_dir(path) {
        Ok(entries) => entries
            .collect::<io::Result<_>>()
            .map_err(WorkspaceError::io(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(WorkspaceError::io(path)(error)),
    }
}
