//! The schema's versions, each a file in `/sql`, compiled in.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{Store, StoreError, files};

macro_rules! migrations {
    ($($file:literal),* $(,)?) => {
        &[$(include_str!(concat!("../../sql/", $file, ".sql"))),*]
    };
}

/// In order; `PRAGMA user_version` tells how many a file has seen. The first nineteen are the storage
/// contract of pr-review-agent, whose stores open here as they are.
const MIGRATIONS: &[&str] = migrations![
    "0001_etags_and_watermarks",
    "0002_queue",
    "0003_ledger",
    "0004_ledger_by_actor",
    "0005_ledger_reviewed_lines",
    "0006_ledger_stop_reason",
    "0007_queue_comment",
    "0008_runs",
    "0009_budget_state",
    "0010_budget_policy",
    "0011_ledger_pull_request",
    "0012_runs_publish_outcome",
    "0013_runs_publish_attempts",
    "0014_agent_comments",
    "0015_ledger_open",
    "0016_ledger_reviewed_since",
    "0017_runs_omitted",
    "0018_runs_assessment",
    "0019_commands",
    "0020_intake",
    "0021_leases_and_publishing",
    "0022_roles_money_pool",
    "0023_sticky_comments",
    "0024_replies_and_notices",
];

/// The version that this program works with.
pub const NEWEST: u32 = MIGRATIONS.len() as u32;

/// What a file turned out to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// How many migrations it has seen.
    pub(super) version: u32,
    /// It holds nothing yet.
    empty: bool,
}

/// Reads what the file is, and changes nothing: a store of a newer program and a database of another
/// one are refused.
pub(super) fn recognise(store: &Store) -> Result<Found, StoreError> {
    let version = store.version()?;
    let tables = check_tables(&store.connection, store.path(), version)?;
    if version > NEWEST {
        return Err(StoreError::TooNew {
            path: store.path().to_owned(),
            found: version,
        });
    }
    Ok(Found {
        version,
        empty: tables == 0,
    })
}

/// Brings the store to [`NEWEST`]. Each step and its version number commit together; before the first
/// step an existing store is copied.
pub(super) fn migrate(store: &mut Store, found: Found) -> Result<(), StoreError> {
    if found.version == NEWEST {
        return Ok(());
    }
    if !found.empty {
        let copy = keep_copy(store, found.version)?;
        log::info!(
            "{} is upgraded from version {} to {NEWEST}; a copy is kept in {}",
            store.path().display(),
            found.version,
            copy.display()
        );
    }
    while step(store)? {}
    Ok(())
}

/// Copies the store beside itself, whole, and tells where. An earlier copy is never replaced: it may be
/// all that is left of another time. One that holds the same is enough, so that an upgrade that fails
/// at every start does not fill the disk.
fn keep_copy(store: &Store, version: u32) -> Result<PathBuf, StoreError> {
    let path = store.path();
    let place = |number| files::backup_path(path, version, number);
    let mut number = 1;
    while files::is_taken(&place(number)) {
        number += 1;
    }
    let copy = place(number);
    // The directory is locked, so an empty file is nobody's work in progress.
    if copy.exists() {
        files::remove(&copy)?;
    }
    store.backup(&copy)?;
    if number > 1 {
        let earlier = place(number - 1);
        if earlier.exists() && files::same_content(&copy, &earlier)? {
            files::remove(&copy)?;
            return Ok(earlier);
        }
    }
    Ok(copy)
}

/// Runs the next migration, if another process has not done it meanwhile; false when none is left.
fn step(store: &mut Store) -> Result<bool, StoreError> {
    let path = store.path().to_owned();
    store.write(|txn| {
        let at = |source| StoreError::at(&path, source);
        let version: u32 = txn
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(at)?;
        let Some(sql) = MIGRATIONS.get(version as usize) else {
            return Ok(false);
        };
        // `execute_batch` inside the transaction does not commit by itself: no migration does.
        txn.execute_batch(sql).map_err(at)?;
        txn.pragma_update(None, "user_version", version + 1)
            .map_err(at)?;
        Ok::<_, StoreError>(true)
    })
}

/// Refuses a database of another program: one with tables that lacks the first ones of ours. Tells
/// how many tables there are.
fn check_tables(connection: &Connection, path: &Path, version: u32) -> Result<i64, StoreError> {
    let count = |sql: &str| -> Result<i64, StoreError> {
        connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|source| StoreError::at(path, source))
    };
    let all = count("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")?;
    let ours = count(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('etags', 'watermarks')",
    )?;
    let strange = if version == 0 {
        all > 0 && ours == 0
    } else {
        ours < 2
    };
    if strange {
        let why = "it has other tables than a store".to_owned();
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            why,
        });
    }
    Ok(all)
}
