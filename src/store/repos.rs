//! The numeric id behind each repository's name.

use rusqlite::{OptionalExtension, params};

use super::{StoreError, Txn, columns::Place};
use crate::ids::{RepoId, RepoName};

/// The id that the name had when it was first met.
///
/// # Errors
/// When the store can't be read.
pub fn id(txn: &Txn<'_>, repo: &RepoName) -> Result<Option<RepoId>, StoreError> {
    let mut statement = txn.prepare_cached("SELECT repo_id FROM repositories WHERE repo = ?1")?;
    let found: Option<i64> = statement
        .query_row([repo.as_str()], |row| row.get(0))
        .optional()?;
    let place = Place {
        table: "repositories",
        key: repo.as_str(),
    };
    found
        .map(|id| RepoId::try_from(id).map_err(|error| place.wrong("repo_id", error)))
        .transpose()
}

/// Remembers the id of a name that is met for the first time.
///
/// # Errors
/// When the store can't be written.
pub fn remember(txn: &Txn<'_>, repo: &RepoName, id: RepoId) -> Result<(), StoreError> {
    txn.prepare_cached("INSERT OR IGNORE INTO repositories (repo, repo_id) VALUES (?1, ?2)")?
        .execute(params![repo.as_str(), id.get()])?;
    Ok(())
}
