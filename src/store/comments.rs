//! The ids of everything that we posted, so that we never answer ourselves.

use rusqlite::params;

use super::{StoreError, Txn};
use crate::clock::Timestamp;
use crate::ids::{CommentId, RepoName};

/// Notes a comment of ours.
///
/// # Errors
/// When the store can't be written.
pub fn add(
    txn: &Txn<'_>,
    repo: &RepoName,
    comment: CommentId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql =
        "INSERT OR IGNORE INTO agent_comments (repo, comment_id, posted_at) VALUES (?1, ?2, ?3)";
    txn.prepare_cached(sql)?
        .execute(params![repo.as_str(), comment.get(), now.to_string()])?;
    Ok(())
}

/// Whether the comment is ours.
///
/// # Errors
/// When the store can't be read.
pub fn contains(txn: &Txn<'_>, repo: &RepoName, comment: CommentId) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM agent_comments WHERE repo = ?1 AND comment_id = ?2)";
    let mut statement = txn.prepare_cached(sql)?;
    Ok(statement.query_row(params![repo.as_str(), comment.get()], |row| row.get(0))?)
}
