//! The last decision on each pull request and comment: the answer to "why was this not reviewed".

use rusqlite::params;

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::ids::{PrNumber, RepoName};

/// How many decisions are kept for a repository; the oldest go first.
const KEPT: i64 = 1000;

/// A decision as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What was decided on: `pull:12`, `issue-comment:77`, `review-comment:5`.
    pub item: String,
    /// The reason's name, `accepted` among them.
    pub reason: String,
    /// When.
    pub decided_at: Timestamp,
}

/// Keeps `reason` as the decision on `item`. An item that is merely old (`only_new`) keeps the
/// decision that was made when it was new.
///
/// # Errors
/// When the store can't be written.
pub fn record(
    txn: &Txn<'_>,
    repo: &RepoName,
    item: &str,
    pr: PrNumber,
    reason: &str,
    only_new: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let verb = if only_new {
        "INSERT OR IGNORE INTO decisions (repo, item, pr_number, reason, decided_at) \
         VALUES (?1, ?2, ?3, ?4, ?5)"
    } else {
        "INSERT OR REPLACE INTO decisions (repo, item, pr_number, reason, decided_at) \
         VALUES (?1, ?2, ?3, ?4, ?5)"
    };
    txn.prepare_cached(verb)?.execute(params![
        repo.as_str(),
        item,
        pr.get(),
        reason,
        now.to_string()
    ])?;
    Ok(())
}

/// Drops the oldest decisions of `repo` above the bound.
///
/// # Errors
/// When the store can't be written.
pub fn trim(txn: &Txn<'_>, repo: &RepoName) -> Result<(), StoreError> {
    let sql = include_str!("../../sql/store/trim_decisions.sql");
    txn.prepare_cached(sql)?
        .execute(params![repo.as_str(), KEPT])?;
    Ok(())
}

/// What was decided on a pull request and its comments, newest first.
///
/// # Errors
/// When the store can't be read.
pub fn of_pull(txn: &Txn<'_>, repo: &RepoName, pr: PrNumber) -> Result<Vec<Decision>, StoreError> {
    let sql = "SELECT item, reason, decided_at FROM decisions \
               WHERE repo = ?1 AND pr_number = ?2 ORDER BY decided_at DESC, item";
    let mut statement = txn.prepare_cached(sql)?;
    let mut rows = statement.query(params![repo.as_str(), pr.get()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let item: String = row.get("item")?;
        let place = Place {
            table: "decisions",
            key: &item,
        };
        let decided_at = place.parsed(row, "decided_at", str::parse)?;
        found.push(Decision {
            reason: row.get("reason")?,
            decided_at,
            item,
        });
    }
    Ok(found)
}
