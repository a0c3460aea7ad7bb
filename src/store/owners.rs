//! The processes behind the names that hold leases.

use rusqlite::params;

use super::{StoreError, Txn};
use crate::clock::Timestamp;
use crate::ids::OwnerName;
use crate::process::Identity;

/// Records which process `owner` belongs to.
///
/// # Errors
/// When the store can't be written.
pub fn register(
    txn: &Txn<'_>,
    owner: &OwnerName,
    identity: &Identity,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO owners (owner, host, pid, process_start, registered_at) \
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let start = identity.start.cast_signed();
    txn.execute(
        sql,
        params![owner.0, identity.host, identity.pid, start, now.to_string()],
    )?;
    Ok(())
}

/// Frees the claimed rows whose owner was a process of this host that is gone, and forgets owners
/// that hold nothing any more. Tells how many rows came free.
///
/// # Errors
/// When the store can't be read or written.
pub fn free_dead(
    txn: &Txn<'_>,
    host: &str,
    is_alive: &dyn Fn(u32, u64) -> bool,
) -> Result<usize, StoreError> {
    let mut statement =
        txn.prepare("SELECT owner, pid, process_start FROM owners WHERE host = ?1")?;
    let owners: Vec<(String, u32, i64)> = statement
        .query_map([host], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let mut freed = 0;
    for (owner, pid, start) in owners {
        if !is_alive(pid, start.cast_unsigned()) {
            freed += txn.execute(include_str!("../../sql/queue/free.sql"), [&owner])?;
            txn.execute("DELETE FROM owners WHERE owner = ?1", [&owner])?;
        }
    }
    Ok(freed)
}
