//! How far each stream of a repository has been read.

use rusqlite::{OptionalExtension, params};

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::ids::RepoName;

/// What is read in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Pull requests, by creation.
    PullRequests,
    /// Comments of conversations, by update.
    Comments,
    /// Comments on lines of diffs, by update.
    ReviewComments,
}

impl Stream {
    fn as_str(self) -> &'static str {
        match self {
            Self::PullRequests => "pull_requests",
            Self::Comments => "comments",
            Self::ReviewComments => "review_comments",
        }
    }

    fn of(self, repo: &RepoName) -> String {
        format!("{}:{repo}", self.as_str())
    }
}

/// The newest moment that was read, if the stream was ever read.
///
/// # Errors
/// When the store can't be read or holds a moment without an offset.
pub fn get(
    txn: &Txn<'_>,
    stream: Stream,
    repo: &RepoName,
) -> Result<Option<Timestamp>, StoreError> {
    moment(
        txn,
        "watermarks",
        "SELECT at FROM watermarks WHERE name = ?1",
        &stream.of(repo),
    )
}

/// Moves the watermark forward to `at`, never back, and returns what is in force.
///
/// # Errors
/// When the store can't be read or written.
pub fn advance(
    txn: &Txn<'_>,
    stream: Stream,
    repo: &RepoName,
    at: Timestamp,
) -> Result<Timestamp, StoreError> {
    match get(txn, stream, repo)? {
        Some(stored) if stored >= at => Ok(stored),
        _ => {
            txn.prepare_cached("INSERT OR REPLACE INTO watermarks (name, at) VALUES (?1, ?2)")?
                .execute(params![stream.of(repo), at.to_string()])?;
            Ok(at)
        }
    }
}

/// Where the stream began, if it did.
///
/// # Errors
/// When the store can't be read or holds a moment without an offset.
pub fn seed(
    txn: &Txn<'_>,
    stream: Stream,
    repo: &RepoName,
) -> Result<Option<Timestamp>, StoreError> {
    moment(
        txn,
        "seeds",
        "SELECT at FROM seeds WHERE name = ?1",
        &stream.of(repo),
    )
}

/// Decides once where the stream begins: at the watermark of a store that has one, else at `start`.
/// Line comments of a store that knew one watermark for both kinds begin where that one stands.
///
/// # Errors
/// When the store can't be read or written.
pub fn plant(
    txn: &Txn<'_>,
    stream: Stream,
    repo: &RepoName,
    start: Timestamp,
) -> Result<Timestamp, StoreError> {
    let own = get(txn, stream, repo)?;
    let shared = match stream {
        Stream::ReviewComments => get(txn, Stream::Comments, repo)?,
        _ => None,
    };
    let at = own.or(shared).map_or(start, |mark| mark.min(start));
    txn.execute(
        "INSERT OR IGNORE INTO seeds (name, at) VALUES (?1, ?2)",
        params![stream.of(repo), at.to_string()],
    )?;
    Ok(at)
}

/// Gives the watermarks of a store that knew only one repository, which have no name in them, to
/// `repo`. True when there were any: they are gone then, so it happens once per store.
///
/// # Errors
/// When the store can't be read or written.
pub fn adopt_unqualified(txn: &Txn<'_>, repo: &RepoName) -> Result<bool, StoreError> {
    let mut adopted = false;
    for stream in [Stream::PullRequests, Stream::Comments] {
        let name = stream.as_str();
        let mark = moment(
            txn,
            "watermarks",
            "SELECT at FROM watermarks WHERE name = ?1",
            name,
        )?;
        if let Some(at) = mark {
            advance(txn, stream, repo, at)?;
            txn.execute("DELETE FROM watermarks WHERE name = ?1", [name])?;
            adopted = true;
        }
    }
    Ok(adopted)
}

fn moment(
    txn: &Txn<'_>,
    table: &'static str,
    sql: &str,
    name: &str,
) -> Result<Option<Timestamp>, StoreError> {
    let mut statement = txn.prepare_cached(sql)?;
    let text: Option<String> = statement.query_row([name], |row| row.get(0)).optional()?;
    let place = Place { table, key: name };
    text.map(|text| text.parse().map_err(|error| place.wrong("at", error)))
        .transpose()
}
