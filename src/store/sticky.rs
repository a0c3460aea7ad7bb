//! Where each pull request's one comment is, and who may create it.

use std::time::Duration;

use rusqlite::{OptionalExtension, named_params, params};

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::ids::{CommentId, DedupeKey, PrNumber, RepoName};

/// How long a creation is leased; whoever creates renews it well before.
pub const LEASE: Duration = Duration::from_secs(60);

/// Where the comment is, as far as this store knows: a hint, for anybody may have deleted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The comment.
    pub comment: CommentId,
    /// The run that it shows.
    pub shown: DedupeKey,
}

/// The pull request's comment, if this store knows of one.
///
/// # Errors
/// When the store or the row can't be read.
pub fn get(txn: &Txn<'_>, repo: &RepoName, pr: PrNumber) -> Result<Option<Pointer>, StoreError> {
    let sql = "SELECT comment_id, shown FROM sticky_comments WHERE repo = ?1 AND pr_number = ?2";
    let mut statement = txn.prepare_cached(sql)?;
    let mut rows = statement.query(params![repo.as_str(), pr.get()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let key = format!("{repo}#{pr}");
    let place = Place {
        table: "sticky_comments",
        key: &key,
    };
    Ok(Some(Pointer {
        comment: place.number(row, "comment_id", CommentId::try_from)?,
        shown: DedupeKey::from_stored(row.get("shown")?),
    }))
}

/// Notes where the comment is and what it shows.
///
/// # Errors
/// When the store can't be written.
pub fn set(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    pointer: &Pointer,
) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO sticky_comments (repo, pr_number, comment_id, shown) \
               VALUES (?1, ?2, ?3, ?4)";
    let (comment, shown) = (pointer.comment.get(), pointer.shown.as_str());
    txn.prepare_cached(sql)?
        .execute(params![repo.as_str(), pr.get(), comment, shown])?;
    Ok(())
}

/// Takes the lease on creating the comment, or renews it for its holder; false when another holds it.
///
/// # Errors
/// When the store can't be written.
pub fn lease(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    token: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let mut statement =
        txn.prepare_cached(include_str!("../../sql/store/take_creation_lease.sql"))?;
    let until = now.plus(LEASE);
    let taken = statement.execute(named_params! {
        ":repo": repo.as_str(), ":pr": pr.get(), ":token": token,
        ":now": now.to_string(), ":until": until.to_string(),
        ":longest": until.plus(LEASE).to_string(),
    })?;
    Ok(taken > 0)
}

/// Prolongs the lease for its holder; false when it lapsed or another has it.
///
/// # Errors
/// When the store can't be written.
pub fn renew(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    token: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "SELECT token FROM creation_leases \
               WHERE repo = ?1 AND pr_number = ?2 AND expires_at > ?3";
    let holder: Option<String> = txn
        .prepare_cached(sql)?
        .query_row(params![repo.as_str(), pr.get(), now.to_string()], |row| {
            row.get(0)
        })
        .optional()?;
    if holder.as_deref() != Some(token) {
        return Ok(false);
    }
    lease(txn, repo, pr, token, now)
}

/// Gives the lease back, if it is still the holder's.
///
/// # Errors
/// When the store can't be written.
pub fn release(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    token: &str,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM creation_leases WHERE repo = ?1 AND pr_number = ?2 AND token = ?3";
    txn.prepare_cached(sql)?
        .execute(params![repo.as_str(), pr.get(), token])?;
    Ok(())
}

/// The greatest number that a finding of the pull request ever had; zero before the first.
///
/// # Errors
/// When the store can't be read.
pub fn last_number(txn: &Txn<'_>, repo: &RepoName, pr: PrNumber) -> Result<u32, StoreError> {
    let sql = "SELECT last FROM finding_numbers WHERE repo = ?1 AND pr_number = ?2";
    let last = txn
        .prepare_cached(sql)?
        .query_row(params![repo.as_str(), pr.get()], |row| row.get(0))
        .optional()?;
    Ok(last.unwrap_or(0))
}

/// Notes that numbers up to `last` were given out. They are never given to another finding.
///
/// # Errors
/// When the store can't be written.
pub fn raise_number(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    last: u32,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO finding_numbers (repo, pr_number, last) VALUES (?1, ?2, ?3) \
               ON CONFLICT (repo, pr_number) DO UPDATE SET last = max(last, excluded.last)";
    txn.prepare_cached(sql)?
        .execute(params![repo.as_str(), pr.get(), last])?;
    Ok(())
}
