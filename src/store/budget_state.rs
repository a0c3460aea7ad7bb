//! The breaker's state, and which refusals the operator was told.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, params};

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;

/// A percentage by the name that the contract gives it.
const CALIBRATED: &str = "calibrated_pct";
const TRIPPED_UNTIL: &str = "tripped_until";
const LAST_TRIP: &str = "last_trip_at";
const TOLD: &str = "told_refusals";

/// Percent of the limits after the last trip, and until when it blocks; `None` when there was none.
///
/// # Errors
/// When the store or a value can't be read.
pub fn breaker(txn: &Txn<'_>) -> Result<(Option<u32>, Option<Timestamp>), StoreError> {
    let percent = value(txn, CALIBRATED)?;
    let percent = percent.map(|text| {
        text.parse()
            .map_err(|error| place(CALIBRATED).wrong("value", error))
    });
    let until = value(txn, TRIPPED_UNTIL)?;
    let until = until.map(|text| {
        text.parse()
            .map_err(|error| place(TRIPPED_UNTIL).wrong("value", error))
    });
    Ok((percent.transpose()?, until.transpose()?))
}

/// Records a trip.
///
/// # Errors
/// When the store can't be written.
pub fn trip(
    txn: &Txn<'_>,
    percent: u32,
    until: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    for (key, value) in [
        (CALIBRATED, percent.to_string()),
        (TRIPPED_UNTIL, until.to_string()),
        (LAST_TRIP, now.to_string()),
    ] {
        txn.prepare_cached("INSERT OR REPLACE INTO budget_state (key, value) VALUES (?1, ?2)")?
            .execute(params![key, value])?;
    }
    Ok(())
}

/// The refusals that single cycles have told, so that the next one, a new process, does not repeat
/// them.
///
/// # Errors
/// When the store or the value can't be read.
pub fn told(txn: &Txn<'_>) -> Result<BTreeSet<String>, StoreError> {
    match value(txn, TOLD)? {
        Some(text) => {
            serde_json::from_str(&text).map_err(|error| place(TOLD).wrong("value", error))
        }
        None => Ok(BTreeSet::new()),
    }
}

/// Remembers them.
///
/// # Errors
/// When the store can't be written.
pub fn remember_told(txn: &Txn<'_>, told: &BTreeSet<String>) -> Result<(), StoreError> {
    let text = serde_json::to_string(told).map_err(|error| place(TOLD).wrong("value", error))?;
    txn.prepare_cached("INSERT OR REPLACE INTO budget_state (key, value) VALUES (?1, ?2)")?
        .execute(params![TOLD, text])?;
    Ok(())
}

fn value(txn: &Txn<'_>, key: &str) -> Result<Option<String>, StoreError> {
    let mut statement = txn.prepare_cached("SELECT value FROM budget_state WHERE key = ?1")?;
    Ok(statement.query_row([key], |row| row.get(0)).optional()?)
}

fn place(key: &'static str) -> Place<'static> {
    Place {
        table: "budget_state",
        key,
    }
}
