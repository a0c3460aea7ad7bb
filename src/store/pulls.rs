//! Which pull requests were seen, as draft or not, with which head: "opened" happens once.

use rusqlite::{OptionalExtension, params};

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::ids::{CommitSha, PrNumber, RepoName};

/// What was last seen of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPull {
    /// It was a draft.
    pub draft: bool,
    /// Its head; `None` when only an older program's queue row tells that it was seen.
    pub head: Option<CommitSha>,
}

/// What is known of the pull request. One that a `pr_opened` row of the queue names counts as seen.
///
/// # Errors
/// When the store can't be read.
pub fn get(txn: &Txn<'_>, repo: &RepoName, pr: PrNumber) -> Result<Option<SeenPull>, StoreError> {
    let sql = "SELECT draft, head_sha FROM pulls_seen WHERE repo = ?1 AND pr_number = ?2";
    let mut statement = txn.prepare_cached(sql)?;
    let found: Option<(bool, String)> = statement
        .query_row(params![repo.as_str(), pr.get()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    if let Some((draft, head)) = found {
        let key = format!("{repo}#{pr}");
        let place = Place {
            table: "pulls_seen",
            key: &key,
        };
        let head = head
            .parse()
            .map_err(|error| place.wrong("head_sha", error))?;
        return Ok(Some(SeenPull {
            draft,
            head: Some(head),
        }));
    }
    // The key is the queue's primary key, so this is a range of that index.
    let sql = "SELECT EXISTS (SELECT 1 FROM queue WHERE dedupe_key >= ?1 AND dedupe_key < ?2)";
    let (from, to) = (
        format!("pr_opened:{repo}:{pr}:"),
        format!("pr_opened:{repo}:{pr};"),
    );
    let queued: bool = txn
        .prepare_cached(sql)?
        .query_row([from, to], |row| row.get(0))?;
    Ok(queued.then_some(SeenPull {
        draft: false,
        head: None,
    }))
}

/// Notes what a response says of the pull request.
///
/// # Errors
/// When the store can't be written.
pub fn put(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    draft: bool,
    head: &CommitSha,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO pulls_seen (repo, pr_number, draft, head_sha, seen_at) \
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = params![
        repo.as_str(),
        pr.get(),
        draft,
        head.as_str(),
        now.to_string()
    ];
    txn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
