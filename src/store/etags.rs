//! The ETag of the last response of each request path.

use rusqlite::{OptionalExtension, params};

use super::{StoreError, Txn};

/// The ETag to ask `path` with.
///
/// # Errors
/// When the store can't be read.
pub fn get(txn: &Txn<'_>, path: &str) -> Result<Option<String>, StoreError> {
    let mut statement = txn.prepare_cached("SELECT etag FROM etags WHERE path = ?1")?;
    Ok(statement.query_row([path], |row| row.get(0)).optional()?)
}

/// Remembers the ETag of a response whose content is committed with it.
///
/// # Errors
/// When the store can't be written.
pub fn set(txn: &Txn<'_>, path: &str, etag: &str) -> Result<(), StoreError> {
    let mut statement =
        txn.prepare_cached("INSERT OR REPLACE INTO etags (path, etag) VALUES (?1, ?2)")?;
    statement.execute(params![path, etag])?;
    Ok(())
}

/// Forgets the ETag, so that the next response is a full one.
///
/// # Errors
/// When the store can't be written.
pub fn forget(txn: &Txn<'_>, path: &str) -> Result<(), StoreError> {
    txn.prepare_cached("DELETE FROM etags WHERE path = ?1")?
        .execute([path])?;
    Ok(())
}
