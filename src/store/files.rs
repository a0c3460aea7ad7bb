//! The store's file and directory: private, and checked before SQLite touches them.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use super::StoreError;

/// Whoever is neither owner nor, with the sticky bit, restricted to his own files may replace ours.
const WORLD_WRITABLE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The first bytes of every SQLite file (<https://www.sqlite.org/fileformat.html>).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Makes sure that `path` is a file that SQLite may open: creates it empty with mode 0600, or checks
/// the one that is there.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    let dir = directory(path);
    let found = fs::metadata(dir).map_err(|source| io("cannot use the directory", dir, source))?;
    let mode = found.mode() & 0o7777;
    if mode & WORLD_WRITABLE != 0 && mode & STICKY == 0 {
        return Err(StoreError::OpenDirectory {
            path: dir.to_owned(),
            mode,
        });
    }
    match create_private(path) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
            check_magic(path)
        }
        other => other,
    }
}

/// Waits until no other process creates or upgrades a store in the same directory, until the guard is
/// dropped. The directory is locked and not the file: closing a second descriptor of the file would
/// drop SQLite's own locks (<https://www.sqlite.org/howtocorrupt.html>, 2.2).
pub(super) fn lock_directory(path: &Path) -> Result<Flock<fs::File>, StoreError> {
    let dir = directory(path);
    let opened =
        fs::File::open(dir).map_err(|source| io("cannot use the directory", dir, source))?;
    Flock::lock(opened, FlockArg::LockExclusive)
        .map_err(|(_, errno)| io("cannot lock the directory", dir, errno.into()))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Creates an empty file with mode 0600; fails when there is one.
pub(super) fn create_private(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|source| io("cannot create", path, source))
}

/// A file that is neither empty nor SQLite's is somebody's other file: it is not touched.
fn check_magic(path: &Path) -> Result<(), StoreError> {
    let cannot = |source| io("cannot read", path, source);
    let mut file = fs::File::open(path).map_err(cannot)?;
    let mut start = Vec::new();
    file.by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut start)
        .map_err(cannot)?;
    if start.is_empty() || start == MAGIC {
        return Ok(());
    }
    let why = "the file is not a SQLite database".to_owned();
    Err(StoreError::Foreign {
        path: path.to_owned(),
        why,
    })
}

fn io(what: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Where the copy that is made before an upgrade from `version` goes.
pub(super) fn backup_path(store: &Path, version: u32) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!(".v{version:02}.bak"));
    PathBuf::from(name)
}
