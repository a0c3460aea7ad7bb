//! What can go wrong with the store, told apart by SQLite's result codes.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::NEWEST;
use super::files::{self, Obstacle};

/// A fault of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another connection held the lock for too long. Contention, not a fault: try again.
    #[error("{} is locked by another process", .path.display())]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// There is no file.
    #[error("{} does not exist; `prwarden run` or `prwarden once` creates it", .path.display())]
    Missing {
        /// The store.
        path: PathBuf,
    },
    /// A newer program wrote it. It is never downgraded.
    #[error(
        "{} is at version {found}, this program knows versions up to {NEWEST}; install a newer \
         prwarden, or use the backup made before the upgrade", .path.display()
    )]
    TooNew {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It was not upgraded yet.
    #[error(
        "{} is at version {found}, this program needs version {NEWEST}; `prwarden db migrate` \
         upgrades it", .path.display()
    )]
    TooOld {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The file is not a SQLite database, or one of another program.
    #[error("{} is not a prwarden store: {why}; it was not changed", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What shows it.
        why: String,
    },
    /// SQLite found the file damaged.
    #[error(
        "{} is damaged: {why}; restore a backup (`state.db.vNN.bak` or one made by `prwarden db \
         backup`)", .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        why: String,
    },
    /// The disk is full.
    #[error("{} can't be written: the disk is full", .path.display())]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// The file or its file system is read-only.
    #[error("{} can't be written: it or its file system is read-only", .path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// The file system can't share memory between processes, as network file systems can't.
    #[error(
        "{} can't be used: its file system has no shared memory for SQLite's write-ahead log; put \
         the store on a local disk", .path.display()
    )]
    NoSharedMemory {
        /// The store.
        path: PathBuf,
    },
    /// Other machines may write the file system, beyond the reach of SQLite's locks.
    #[error(
        "{} is on a network file system ({kind}), where SQLite's locks don't hold; put the store on a \
         local disk", .path.display()
    )]
    Network {
        /// The store.
        path: PathBuf,
        /// The file system's name.
        kind: &'static str,
    },
    /// A journal or log that another file left would be replayed into a new one of its name.
    #[error(
        "{} is left from another file and would destroy a copy put beside it; move it away or choose \
         another name", .path.display()
    )]
    Leftover {
        /// The journal or log.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others could read or replace the store.
    #[error(
        "{} may be written by everybody (mode {mode:o}); others could replace the store: chmod it to \
         0700", .path.display()
    )]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Others could change the store.
    #[error(
        "{} may be written by everybody (mode {mode:o}); others could queue work in it: chmod it to \
         0600", .path.display()
    )]
    OpenFile {
        /// The store.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A value in the store can't be read. It is never taken for empty.
    #[error("the store's {table}.{column} of {key} can't be read: {why}")]
    Column {
        /// The table.
        table: &'static str,
        /// The row.
        key: String,
        /// The column.
        column: &'static str,
        /// What is wrong with the value.
        why: String,
    },
    /// Any other fault that SQLite reports.
    #[error("the store {}: {source}", .path.display())]
    Sql {
        /// The store.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Classes `source` by SQLite's result code (<https://www.sqlite.org/rescode.html>), never by its
    /// text. Two codes say only that the system refused: then the file system is asked why.
    pub(super) fn at(path: &Path, source: rusqlite::Error) -> Self {
        let code = source.sqlite_error_code();
        if let Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) = code {
            match files::obstacle(path) {
                Some(Obstacle::ReadOnly) => return Self::ReadOnly { path: path.into() },
                Some(Obstacle::Full) => return Self::Full { path: path.into() },
                Some(Obstacle::Denied(error)) => return error,
                None => {}
            }
        }
        let path = path.to_owned();
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::NotADatabase) => Self::Foreign {
                path,
                why: "the file is not a SQLite database".to_owned(),
            },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt {
                path,
                why: source.to_string(),
            },
            Some(ErrorCode::FileLockingProtocolFailed) => Self::NoSharedMemory { path },
            _ => Self::Sql { path, source },
        }
    }
}

thread_local! {
    /// The stores whose transactions run on this thread, the innermost last.
    static IN_USE: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, faults of statements on this thread are put down to its store. SQLite's errors
/// don't carry the file, and a transaction's body may turn them into errors of other rooms.
#[derive(Debug)]
pub(super) struct InUse(());

impl InUse {
    pub(super) fn enter(path: &Path) -> Self {
        IN_USE.with_borrow_mut(|stores| stores.push(path.to_owned()));
        Self(())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        IN_USE.with_borrow_mut(Vec::pop);
    }
}

impl From<rusqlite::Error> for StoreError {
    /// For statements inside a transaction, whose store is known.
    fn from(source: rusqlite::Error) -> Self {
        let path = IN_USE.with_borrow(|stores| stores.last().cloned());
        Self::at(&path.unwrap_or_default(), source)
    }
}
