//! The SQLite file: everything that must survive a restart.
//!
//! One connection per thread. Write transactions take the lock from the start (`BEGIN IMMEDIATE`),
//! so a transaction that began can finish. The file is created for its owner only. SQL stands in
//! `/sql`: numbered files are migrations, folders hold the statements of one table family.

pub mod budget_policy;
pub mod budget_state;
pub mod check;
pub mod comments;
pub mod decisions;
pub mod error;
pub mod etags;
pub mod ledger;
pub mod owners;
pub mod pulls;
pub mod queue;
pub mod repos;
pub mod runs;
pub mod sticky;
pub mod watermarks;

mod columns;
mod files;
mod migrations;

#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use check::Problem;
use error::InUse;
pub use error::StoreError;
pub use migrations::NEWEST;

/// How long a statement waits for another connection's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long [`Store::write_patiently`] waits.
const PATIENCE: Duration = Duration::from_secs(300);

/// A connection to the store, for one thread.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A transaction: what the functions of the table modules need, so that none of them can run
/// outside of one.
#[derive(Debug)]
pub struct Txn<'a>(Transaction<'a>);

impl Deref for Txn<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Store {
    /// Opens the store at `path`; creates it, readable by its owner only, when it does not exist,
    /// and brings an older one to [`NEWEST`], after copying it to `<path>.vNN.bak`.
    ///
    /// # Errors
    /// [`StoreError::TooNew`] for a store of a newer program; other variants name the path and the
    /// cause.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // One process at a time creates or upgrades; the others find it done.
        let _alone = files::lock_directory(path)?;
        files::prepare(path)?;
        let mut store = Self::connect(path)?;
        let found = migrations::recognise(&store)?;
        store.make_durable()?;
        migrations::migrate(&mut store, found)?;
        Ok(store)
    }

    /// Opens a store that exists and is at [`NEWEST`]: another thread's connection, or a command that
    /// must not change it.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::TooNew`], [`StoreError::TooOld`] or
    /// [`StoreError::Foreign`]; other variants name the path and the cause.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing {
                path: path.to_owned(),
            });
        }
        files::refuse_network(path)?;
        let store = Self::connect(path)?;
        let found = migrations::recognise(&store)?.version;
        if found < NEWEST {
            return Err(StoreError::TooOld {
                path: path.to_owned(),
                found,
            });
        }
        store.make_durable()?;
        Ok(store)
    }

    /// Opens the file and changes nothing in it: it may be somebody else's.
    fn connect(path: &Path) -> Result<Self, StoreError> {
        let at = |source| StoreError::at(path, source);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(at)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(at)?;
        connection
            .pragma_update(None, "foreign_keys", true)
            .map_err(at)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self {
            connection,
            path: path.to_owned(),
        })
    }

    /// Switches to the write-ahead log, which is a change of the file.
    fn make_durable(&self) -> Result<(), StoreError> {
        let at = |source| StoreError::at(&self.path, source);
        let mode: String = self
            .connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(at)?;
        if !mode.eq_ignore_ascii_case("wal") {
            return Err(StoreError::NoSharedMemory {
                path: self.path.clone(),
            });
        }
        // A claim that was acknowledged must survive a power cut: its money is promised already.
        self.connection
            .pragma_update(None, "synchronous", "FULL")
            .map_err(at)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many migrations the file has seen.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn version(&self) -> Result<u32, StoreError> {
        self.connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(|source| StoreError::at(&self.path, source))
    }

    /// Runs `body` over one unchanging view of the store.
    ///
    /// # Errors
    /// Those of `body`, and faults of the file.
    pub fn read<T>(
        &mut self,
        body: impl FnOnce(&Txn<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(TransactionBehavior::Deferred, body)
    }

    /// Runs `body` in a write transaction and commits it; an error rolls everything back.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another connection held the lock for 5 s: contention, not a fault.
    /// Otherwise those of `body`, and faults of the file.
    pub fn write<T, E: From<StoreError>>(
        &mut self,
        body: impl FnOnce(&Txn<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact(TransactionBehavior::Immediate, body)
    }

    /// As [`Store::write`], but does not give up on the lock within five minutes: for what must not be
    /// lost because others are busy, such as the result of a run that was paid for.
    ///
    /// # Errors
    /// As for [`Store::write`].
    pub fn write_patiently<T, E: From<StoreError>>(
        &mut self,
        body: impl FnOnce(&Txn<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Only taking the lock can be busy; once it is taken, nothing else can be.
            let begun =
                Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate);
            match begun.map_err(|source| StoreError::at(&self.path, source)) {
                Err(StoreError::Busy { .. }) if Instant::now() < deadline => {}
                Err(error) => return Err(error.into()),
                Ok(transaction) => return self.run(transaction, body),
            }
        }
    }

    fn transact<T, E: From<StoreError>>(
        &mut self,
        behavior: TransactionBehavior,
        body: impl FnOnce(&Txn<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = Transaction::new_unchecked(&self.connection, behavior)
            .map_err(|source| StoreError::at(&self.path, source))?;
        self.run(transaction, body)
    }

    fn run<'a, T, E: From<StoreError>>(
        &'a self,
        transaction: Transaction<'a>,
        body: impl FnOnce(&Txn<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _in_use = InUse::enter(&self.path);
        let txn = Txn(transaction);
        let result = body(&txn)?;
        txn.0
            .commit()
            .map_err(|source| StoreError::at(&self.path, source))?;
        Ok(result)
    }

    /// Copies the store to the new file `to`, also while others use it (SQLite's online backup). The
    /// file appears when it is whole; until then an empty one holds its name.
    ///
    /// # Errors
    /// When `to` exists or can't be written.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let draft = files::Draft::new(to)?;
        let at = |source| StoreError::at(to, source);
        let mut copy = Connection::open(draft.path()).map_err(at)?;
        let backup = Backup::new(&self.connection, &mut copy).map_err(at)?;
        // All pages in one step, which is one view of the store: writers don't wait for it, and their
        // commits, which make a copy in several steps begin again, don't disturb it.
        match backup.step(-1).map_err(at)? {
            StepResult::Done => {}
            _ => {
                return Err(StoreError::Busy {
                    path: self.path.clone(),
                });
            }
        }
        drop(backup);
        copy.close().map_err(|(_, source)| at(source))?;
        draft.keep()
    }

    /// Checks the file's integrity and the invariants that hold between its rows.
    ///
    /// # Errors
    /// When a check can't be made; what a check finds is in the result.
    pub fn check(&mut self) -> Result<Vec<Problem>, StoreError> {
        self.read(check::check)
    }
}
