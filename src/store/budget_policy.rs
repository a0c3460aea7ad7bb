//! The limits that one process publishes for all that share the store.

use rusqlite::named_params;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published<T> {
    /// The first repository of the process that published it; empty when that process stepped down.
    pub authority: String,
    /// The limits.
    pub policy: T,
    /// When its authority last said that it stands.
    pub at: Timestamp,
}

/// The policy; `None` when none was ever published.
///
/// # Errors
/// When the store or the row can't be read.
pub fn get<T: DeserializeOwned>(txn: &Txn<'_>) -> Result<Option<Published<T>>, StoreError> {
    let sql = "SELECT authority_repo, policy, written_at FROM budget_policy WHERE id = 1";
    let mut statement = txn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let place = Place {
        table: "budget_policy",
        key: "1",
    };
    Ok(Some(Published {
        authority: row.get("authority_repo")?,
        policy: place.json(row, "policy")?,
        at: place.parsed(row, "written_at", str::parse)?,
    }))
}

/// Replaces the policy.
///
/// # Errors
/// When the store can't be written.
pub fn put(
    txn: &Txn<'_>,
    authority: &str,
    policy: &impl Serialize,
    now: Timestamp,
) -> Result<(), StoreError> {
    let place = Place {
        table: "budget_policy",
        key: "1",
    };
    let json = serde_json::to_string(policy).map_err(|error| place.wrong("policy", error))?;
    let sql = "INSERT OR REPLACE INTO budget_policy (id, authority_repo, policy, written_at) \
               VALUES (1, :authority, :policy, :now)";
    txn.prepare_cached(sql)?.execute(named_params! {
        ":authority": authority, ":policy": json, ":now": now.to_string(),
    })?;
    Ok(())
}

/// The authority is none any more; its limits stay in force until there is another.
///
/// # Errors
/// When the store can't be written.
pub fn resign(txn: &Txn<'_>, authority: &str) -> Result<(), StoreError> {
    let sql = "UPDATE budget_policy SET authority_repo = '' WHERE authority_repo = ?1";
    txn.prepare_cached(sql)?.execute([authority])?;
    Ok(())
}
