//! The store's file and directory: private, and checked before SQLite touches them.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::statfs::statfs;
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{AccessFlags, access};

use super::StoreError;

/// Whoever is neither owner nor, with the sticky bit, restricted to his own files may replace ours.
const WORLD_WRITABLE: u32 = 0o002;
const WORLD_READABLE: u32 = 0o004;
const STICKY: u32 = 0o1000;

/// The first bytes of every SQLite file (<https://www.sqlite.org/fileformat.html>).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// File systems that other machines may write too, by the magic number of statfs(2). SQLite's locks
/// and its shared memory do not reach those machines.
const NETWORK: [(u32, &str); 9] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x00c3_6400, "Ceph"),
];

/// Free space below which a failed write is put down to a full disk. SQLite extends its shared memory
/// by 32 KiB at a time.
const NOTHING_LEFT: u128 = 64 * 1024;

/// Makes sure that `path` is a file that SQLite may open: creates it empty with mode 0600, or checks
/// the one that is there.
pub(super) fn prepare(path: &Path) -> Result<(), StoreError> {
    refuse_network(path)?;
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
            check_mode(path)?;
            check_magic(path)
        }
        other => other,
    }
}

/// Refuses a store on a file system that other machines may write too.
pub(super) fn refuse_network(path: &Path) -> Result<(), StoreError> {
    let dir = directory(path);
    let found = statfs(dir).map_err(|errno| io("cannot use the directory", dir, errno.into()))?;
    match network_name(found.filesystem_type().0 as u32) {
        Some(kind) => Err(StoreError::Network {
            path: path.to_owned(),
            kind,
        }),
        None => Ok(()),
    }
}

fn network_name(magic: u32) -> Option<&'static str> {
    let found = NETWORK.into_iter().find(|(known, _)| *known == magic);
    found.map(|(_, name)| name)
}

/// A store that everybody may write is refused; one that everybody may read is told.
fn check_mode(path: &Path) -> Result<(), StoreError> {
    let found = fs::metadata(path).map_err(|source| io("cannot read", path, source))?;
    let mode = found.mode() & 0o7777;
    if !found.is_file() {
        return Ok(());
    }
    if mode & WORLD_WRITABLE != 0 {
        return Err(StoreError::OpenFile {
            path: path.to_owned(),
            mode,
        });
    }
    if mode & WORLD_READABLE != 0 {
        log::warn!(
            "{} may be read by everybody (mode {mode:o}); chmod it to 0600",
            path.display()
        );
    }
    Ok(())
}

/// Why SQLite, which tells only that it can't, may have failed to open or to write `path`.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The file system is mounted read-only.
    ReadOnly,
    /// The disk is full.
    Full,
    /// This user may not write the file or its directory.
    Denied(StoreError),
}

/// Looks at the file system for what stands in the way of writing `path`.
pub(super) fn obstacle(path: &Path) -> Option<Obstacle> {
    let dir = directory(path);
    let disk = statvfs(dir).ok()?;
    if disk.flags().contains(FsFlags::ST_RDONLY) {
        return Some(Obstacle::ReadOnly);
    }
    for (what, place) in [("cannot write", path), ("cannot write the directory", dir)] {
        if place.exists()
            && let Err(errno) = access(place, AccessFlags::W_OK)
        {
            return Some(Obstacle::Denied(io(what, place, errno.into())));
        }
    }
    // The types differ between platforms.
    let left = u128::from(disk.blocks_available()) * u128::from(disk.fragment_size());
    (left < NOTHING_LEFT).then_some(Obstacle::Full)
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

/// Where the copy that is made before an upgrade from `version` goes. Only the first is not numbered.
pub(super) fn backup_path(store: &Path, version: u32, number: u32) -> PathBuf {
    let suffix = match number {
        1 => format!(".v{version:02}.bak"),
        _ => format!(".v{version:02}.{number}.bak"),
    };
    with_suffix(store, &suffix)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    fs::remove_file(path).map_err(|source| io("cannot remove", path, source))
}

/// Whether something is at `path` that must stay, or files that SQLite would take for a part of what
/// is put there. An empty file is what a [`Draft`] that was cut short leaves.
pub(super) fn is_taken(path: &Path) -> bool {
    let holds = fs::metadata(path).is_ok_and(|found| found.len() > 0);
    holds || companion(path).is_some()
}

/// What SQLite keeps beside a database. A journal or log that an older file of the same name left is
/// replayed into the newer one when it is opened, and destroys it
/// (<https://www.sqlite.org/howtocorrupt.html>, 1.4).
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

fn companion(path: &Path) -> Option<PathBuf> {
    let names = COMPANIONS.into_iter().map(|end| with_suffix(path, end));
    names.into_iter().find(|name| name.exists())
}

fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(io("cannot remove", path, source))
        }
        _ => Ok(()),
    }
}

/// Whether two files hold the same bytes.
pub(super) fn same_content(one: &Path, other: &Path) -> Result<bool, StoreError> {
    let open = |path: &Path| {
        let file = fs::File::open(path).map_err(|source| io("cannot read", path, source))?;
        Ok::<_, StoreError>(BufReader::new(file))
    };
    let (mut left, mut right) = (open(one)?, open(other)?);
    loop {
        let a = left
            .fill_buf()
            .map_err(|source| io("cannot read", one, source))?;
        let b = right
            .fill_buf()
            .map_err(|source| io("cannot read", other, source))?;
        let common = a.len().min(b.len());
        if a[..common] != b[..common] || (common == 0 && a.len() != b.len()) {
            return Ok(false);
        }
        if common == 0 {
            return Ok(true);
        }
        left.consume(common);
        right.consume(common);
    }
}

/// A private file that is written beside its place and appears there whole or not at all. Its place
/// is taken, by an empty file, from the start.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    to: &'a Path,
    partial: PathBuf,
    kept: bool,
}

impl<'a> Draft<'a> {
    /// Fails when there is a file at `to`, or one beside it that would be taken for its part.
    pub(super) fn new(to: &'a Path) -> Result<Self, StoreError> {
        if let Some(path) = companion(to) {
            return Err(StoreError::Leftover { path });
        }
        create_private(to)?;
        let partial = with_suffix(to, ".partial");
        let draft = Self {
            to,
            partial,
            kept: false,
        };
        // What a process that died while it wrote has left.
        draft.clear()?;
        create_private(&draft.partial)?;
        Ok(draft)
    }

    fn clear(&self) -> Result<(), StoreError> {
        for end in COMPANIONS {
            remove_if_there(&with_suffix(&self.partial, end))?;
        }
        remove_if_there(&self.partial)
    }

    /// Where it is to be written.
    pub(super) fn path(&self) -> &Path {
        &self.partial
    }

    /// It is whole: moves it to its place, durably.
    pub(super) fn keep(mut self) -> Result<(), StoreError> {
        fs::rename(&self.partial, self.to).map_err(|source| io("cannot write", self.to, source))?;
        self.kept = true;
        let dir = directory(self.to);
        fs::File::open(dir)
            .and_then(|opened| opened.sync_all())
            .map_err(|source| io("cannot write the directory", dir, source))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // What can't be removed is found by the next attempt.
        if let Err(error) = self.clear().and_then(|()| remove_if_there(self.to)) {
            log::debug!("{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        for (magic, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB2"),
        ] {
            assert_eq!(network_name(magic), Some(name));
        }
        // ext4, btrfs, xfs, tmpfs, overlay, zfs.
        for magic in [
            0xef53,
            0x9123_683e,
            0x5846_5342,
            0x0102_1994,
            0x794c_7630,
            0x2fc1_2fc1,
        ] {
            assert_eq!(network_name(magic), None, "{magic:x}");
        }
        let here = tempfile::tempdir().unwrap();
        refuse_network(&here.path().join("state.db")).unwrap();
    }

    #[test]
    fn files_are_compared_by_all_their_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        let long = vec![7_u8; 20_000];
        let mut last_differs = long.clone();
        last_differs[19_999] = 8;
        for (a, b, same) in [
            (&long[..], &long[..], true),
            (&long, &last_differs, false),
            (&long, &long[..19_999], false),
            (&[], &long, false),
            (&[], &[], true),
        ] {
            fs::write(&one, a).unwrap();
            fs::write(&other, b).unwrap();
            assert_eq!(same_content(&one, &other).unwrap(), same);
            assert_eq!(same_content(&other, &one).unwrap(), same);
        }
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_nothing_and_one_that_is_kept_leaves_itself() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("copy");
        let files = || fs::read_dir(dir.path()).unwrap().count();
        drop(Draft::new(&to).unwrap());
        assert_eq!(files(), 0);
        let draft = Draft::new(&to).unwrap();
        assert!(Draft::new(&to).is_err(), "its place is taken");
        fs::write(draft.path(), "whole").unwrap();
        draft.keep().unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"whole");
        assert_eq!(files(), 1);
    }

    #[test]
    fn what_a_killed_writer_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("copy");
        fs::write(with_suffix(&to, ".partial"), "half").unwrap();
        fs::write(with_suffix(&to, ".partial-journal"), "half").unwrap();
        let draft = Draft::new(&to).unwrap();
        assert_eq!(fs::read(draft.path()).unwrap(), b"");
        drop(draft);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
