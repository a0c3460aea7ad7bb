//! The work: one row per trigger, claimed by lease.
//!
//! Rows stay when they are finished, because the key is what makes "already reviewed" a fact. Every
//! statement that looks for work therefore reads only the live rows, through `queue_live`.

use std::time::Duration;

use rusqlite::{Row, named_params};

use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::ids::{
    CommentId, CommentRef, CommentSource, CommitSha, DedupeKey, OwnerName, PrNumber, RepoName,
    UserId,
};

/// An automatic review that waited this long is as urgent as a person's request.
const AGED: Duration = Duration::from_secs(30 * 60);

/// The longest that a released row waits; GitHub's limits start anew every hour.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2 * 3600);

/// What caused a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An automatic review of a head.
    PrOpened,
    /// A person's request in a comment.
    Mention,
    /// A recorded run that is to become visible.
    Publish,
    /// A visible run that is to be shown otherwise.
    Render,
}

impl Kind {
    /// It writes what is stored already: nothing can be spent on it.
    pub fn only_writes(self) -> bool {
        matches!(self, Self::Publish | Self::Render)
    }

    /// The word in the `kind` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PrOpened => "pr_opened",
            Self::Mention => "mention",
            Self::Publish => "publish",
            Self::Render => "render",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        [Self::PrOpened, Self::Mention, Self::Publish, Self::Render]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no kind of trigger"))
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// A review.
    Review,
    /// A description of the change.
    Describe,
    /// An answer to a question.
    Ask,
    /// A fix of what was found.
    Fix,
    /// A merge.
    Merge,
    /// The list of commands.
    Help,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Review,
        Self::Describe,
        Self::Ask,
        Self::Fix,
        Self::Merge,
        Self::Help,
    ];

    /// The word in a comment and in the `command` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Describe => "describe",
            Self::Ask => "ask",
            Self::Fix => "fix",
            Self::Merge => "merge",
            Self::Help => "help",
        }
    }

    /// The command of this name, without regard to case.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|command| command.as_str().eq_ignore_ascii_case(word))
    }
}

impl Command {
    /// No engine is asked for it.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Help | Self::Fix | Self::Merge)
    }

    /// Whose work it is.
    pub fn role(self) -> Role {
        match self {
            Self::Fix => Role::Fix,
            Self::Merge => Role::Merge,
            Self::Review | Self::Describe | Self::Ask | Self::Help => Role::Review,
        }
    }
}

/// What is done on a pull request, each with its own share of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads and comments.
    Review,
    /// Changes the branch.
    Fix,
    /// Merges.
    Merge,
}

impl Role {
    /// The word in the configuration and in `role` columns.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Fix => "fix",
            Self::Merge => "merge",
        }
    }

    /// The role of a `role` column.
    ///
    /// # Errors
    /// For a word that names none.
    pub fn parse(text: &str) -> Result<Self, String> {
        [Self::Review, Self::Fix, Self::Merge]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role"))
    }
}

/// A trigger that is to be queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrigger {
    /// Its name.
    pub key: DedupeKey,
    /// What caused it.
    pub kind: Kind,
    /// Where.
    pub repo: RepoName,
    /// On which pull request.
    pub pr: PrNumber,
    /// The head it is about; `None` for a mention, which means whatever the head is.
    pub head: Option<CommitSha>,
    /// Who caused it.
    pub actor: UserId,
    /// The comment that asked.
    pub comment: Option<CommentRef>,
    /// What is asked for.
    pub command: Command,
}

/// A trigger in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub key: DedupeKey,
    /// What caused it.
    pub kind: Kind,
    /// Where.
    pub repo: RepoName,
    /// On which pull request.
    pub pr: PrNumber,
    /// The head it is about.
    pub head: Option<CommitSha>,
    /// Who caused it.
    pub actor: UserId,
    /// The comment that asked.
    pub comment: Option<CommentRef>,
    /// What is asked for.
    pub command: Command,
    /// How often it was claimed before.
    pub attempts: u32,
    /// Since when it waits.
    pub enqueued_at: Timestamp,
}

/// Which rows may be claimed.
#[derive(Debug, Clone, Copy)]
pub struct Claimable<'a> {
    /// The repositories that this process serves.
    pub repos: &'a [RepoName],
    /// Rows with this many attempts are not claimed again.
    pub max_attempts: u32,
    /// Now.
    pub now: Timestamp,
}

impl Claimable<'_> {
    fn repos_as_json(&self) -> String {
        let repos: Vec<&str> = self.repos.iter().map(RepoName::as_str).collect();
        serde_json::Value::from(repos).to_string()
    }
}

/// Queues a trigger; false when its key was queued before. A new automatic one stands for the older
/// automatic ones of its pull request that still wait.
///
/// # Errors
/// When the store can't be written.
pub fn enqueue(txn: &Txn<'_>, new: &NewTrigger, now: Timestamp) -> Result<bool, StoreError> {
    let inserted = txn
        .prepare_cached(include_str!("../../sql/queue/enqueue.sql"))?
        .execute(named_params! {
            ":key": new.key.as_str(),
            ":kind": new.kind.as_str(),
            ":repo": new.repo.as_str(),
            ":pr": new.pr.get(),
            ":head": new.head.as_ref().map(CommitSha::as_str),
            ":actor": new.actor.get(),
            ":now": now.to_string(),
            ":comment": new.comment.map(|comment| comment.id.get()),
            ":source": new.comment.map(|comment| comment.source.as_str()),
            ":command": new.command.as_str(),
        })?;
    if inserted > 0 && new.kind == Kind::PrOpened {
        replace_older(txn, new)?;
    }
    Ok(inserted > 0)
}

fn replace_older(txn: &Txn<'_>, new: &NewTrigger) -> Result<(), StoreError> {
    txn.prepare_cached(include_str!("../../sql/queue/replace_older.sql"))?
        .execute(named_params! {
            ":repo": new.repo.as_str(), ":pr": new.pr.get(), ":key": new.key.as_str(),
        })?;
    Ok(())
}

/// Queues again an automatic trigger whose row came to an end without a run, because its head has come
/// back; false when there is none.
///
/// # Errors
/// When the store can't be written.
pub fn reopen(txn: &Txn<'_>, new: &NewTrigger, now: Timestamp) -> Result<bool, StoreError> {
    let reopened = txn
        .prepare_cached(include_str!("../../sql/queue/reopen.sql"))?
        .execute(named_params! { ":key": new.key.as_str(), ":now": now.to_string() })?;
    if reopened > 0 {
        replace_older(txn, new)?;
    }
    Ok(reopened > 0)
}

/// Abandons the rows of the served repositories that used up their attempts and are held by nobody,
/// and tells which, as far as they can be read.
///
/// # Errors
/// When the store can't be written.
pub fn abandon_exhausted(
    txn: &Txn<'_>,
    claimable: Claimable<'_>,
) -> Result<Vec<Trigger>, StoreError> {
    let mut statement =
        txn.prepare_cached(include_str!("../../sql/queue/abandon_exhausted.sql"))?;
    let mut rows = statement.query(named_params! {
        ":repos": claimable.repos_as_json(),
        ":max_attempts": claimable.max_attempts,
        ":now": claimable.now.to_string(),
    })?;
    let mut abandoned = Vec::new();
    while let Some(row) = rows.next()? {
        match trigger(row) {
            Err(StoreError::Column { .. }) => {}
            read => abandoned.push(read?),
        }
    }
    Ok(abandoned)
}

/// Cuts leases of more than `lease` and pauses of more than [`LONGEST_PAUSE`], which only a clock that
/// was set back leaves.
///
/// # Errors
/// When the store can't be written.
pub fn bound_future(
    txn: &Txn<'_>,
    claimable: Claimable<'_>,
    lease: Duration,
) -> Result<usize, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/bound_future.sql"))?;
    // Another process's lease begins up to its wait for the lock later.
    let (now, slack) = (claimable.now, Duration::from_secs(60));
    Ok(statement.execute(named_params! {
        ":repos": claimable.repos_as_json(),
        ":lease_end": now.plus(lease).plus(slack).to_string(),
        ":pause_end": now.plus(LONGEST_PAUSE).to_string(),
    })?)
}

/// A row that holds a value that this program doesn't know.
#[derive(Debug)]
pub struct Unreadable {
    /// Its key.
    pub key: DedupeKey,
    /// Table, key, column and value.
    pub why: String,
}

/// Calls `visit` with the claimable rows, best first, until it returns something or no row is left.
///
/// # Errors
/// Those of `visit`, and when the store can't be read.
pub fn walk<T>(
    txn: &Txn<'_>,
    claimable: Claimable<'_>,
    mut visit: impl FnMut(Result<Trigger, Unreadable>) -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/claimable.sql"))?;
    let mut rows = statement.query(named_params! {
        ":repos": claimable.repos_as_json(),
        ":max_attempts": claimable.max_attempts,
        ":now": claimable.now.to_string(),
        ":aged": claimable.now.minus(AGED).to_string(),
    })?;
    while let Some(row) = rows.next()? {
        let read = match trigger(row) {
            Err(error @ StoreError::Column { .. }) => Err(Unreadable {
                key: DedupeKey::from_stored(row.get("dedupe_key")?),
                why: error.to_string(),
            }),
            other => Ok(other?),
        };
        if let Some(found) = visit(read)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// How much work there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// Rows that wait.
    pub waiting: u32,
    /// Rows under a live lease.
    pub claimed: u32,
    /// Since when the oldest of them waits.
    pub oldest: Option<Timestamp>,
}

/// How much work there is at `now`.
///
/// # Errors
/// When the store can't be read.
pub fn depth(txn: &Txn<'_>, now: Timestamp) -> Result<Depth, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/depth.sql"))?;
    let (waiting, claimed, oldest): (u32, u32, Option<String>) = statement
        .query_row(named_params! { ":now": now.to_string() }, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let place = Place {
        table: "queue",
        key: "the oldest row",
    };
    let oldest = oldest.map(|text| {
        text.parse()
            .map_err(|error| place.wrong("enqueued_at", error))
    });
    Ok(Depth {
        waiting,
        claimed,
        oldest: oldest.transpose()?,
    })
}

/// A row that waits or is worked on, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Its key.
    pub key: DedupeKey,
    /// `pending` or `claimed`.
    pub status: String,
    /// Until when it is not claimed, as the store has it.
    pub not_before: Option<String>,
}

/// The rows that wait or are worked on, oldest first.
///
/// # Errors
/// When the store can't be read.
pub fn live(txn: &Txn<'_>) -> Result<Vec<Live>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/live.sql"))?;
    let rows = statement.query_map([], |row| {
        Ok(Live {
            key: DedupeKey::from_stored(row.get(0)?),
            status: row.get(1)?,
            not_before: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The row of this key, whatever its status.
///
/// # Errors
/// When the store or the row can't be read.
pub fn get(txn: &Txn<'_>, key: &DedupeKey) -> Result<Option<Trigger>, StoreError> {
    let mut statement = txn.prepare_cached("SELECT * FROM queue WHERE dedupe_key = ?1")?;
    let mut rows = statement.query([key.as_str()])?;
    rows.next()?.map(trigger).transpose()
}

/// Leases the row to `owner`; the attempt counts from here on, so that a row that kills its worker is
/// not tried for ever.
///
/// # Errors
/// When the store can't be written.
pub fn lease(
    txn: &Txn<'_>,
    key: &DedupeKey,
    owner: &OwnerName,
    until: Timestamp,
) -> Result<(), StoreError> {
    txn.prepare_cached(include_str!("../../sql/queue/lease.sql"))?
        .execute(named_params! {
            ":key": key.as_str(), ":owner": owner.0, ":until": until.to_string(),
        })?;
    Ok(())
}

/// Prolongs the lease; false when `owner` does not hold it any more.
///
/// # Errors
/// When the store can't be written.
pub fn renew(
    txn: &Txn<'_>,
    key: &DedupeKey,
    owner: &OwnerName,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "UPDATE queue SET leased_until = ?3 \
               WHERE dedupe_key = ?1 AND owner = ?2 AND status = 'claimed'";
    let mut statement = txn.prepare_cached(sql)?;
    Ok(statement.execute((key.as_str(), &owner.0, until.to_string()))? > 0)
}

/// The row is done; false when `owner` does not hold it any more.
///
/// # Errors
/// When the store can't be written.
pub fn complete(txn: &Txn<'_>, key: &DedupeKey, owner: &OwnerName) -> Result<bool, StoreError> {
    finish(txn, key, owner, "done", 0, None)
}

/// The row is given up; false when `owner` does not hold it any more.
///
/// # Errors
/// When the store can't be written.
pub fn abandon(txn: &Txn<'_>, key: &DedupeKey, owner: &OwnerName) -> Result<bool, StoreError> {
    finish(txn, key, owner, "abandoned", 0, None)
}

/// The row waits again until `not_before`, and the attempt counts; false when `owner` does not hold
/// it any more.
///
/// # Errors
/// When the store can't be written.
pub fn release(
    txn: &Txn<'_>,
    key: &DedupeKey,
    owner: &OwnerName,
    not_before: Timestamp,
) -> Result<bool, StoreError> {
    finish(txn, key, owner, "pending", 0, Some(not_before))
}

/// The row waits again until `not_before`, and the attempt does not count, because nothing was spent;
/// false when `owner` does not hold it any more.
///
/// # Errors
/// When the store can't be written.
pub fn release_unattempted(
    txn: &Txn<'_>,
    key: &DedupeKey,
    owner: &OwnerName,
    not_before: Timestamp,
) -> Result<bool, StoreError> {
    finish(txn, key, owner, "pending", 1, Some(not_before))
}

fn finish(
    txn: &Txn<'_>,
    key: &DedupeKey,
    owner: &OwnerName,
    status: &str,
    uncounted: u32,
    not_before: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/finish.sql"))?;
    let changed = statement.execute(named_params! {
        ":key": key.as_str(),
        ":owner": owner.0,
        ":status": status,
        ":uncounted": uncounted,
        ":not_before": not_before.map(|time| time.to_string()),
    })?;
    Ok(changed > 0)
}

/// What waited when the run of `row` started, asked for the same and names no other head than the
/// reviewed one is done with it. Tells how many rows that were.
///
/// # Errors
/// When the store can't be written.
pub fn fold(
    txn: &Txn<'_>,
    row: &Trigger,
    reviewed: &CommitSha,
    started: Timestamp,
) -> Result<usize, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/fold.sql"))?;
    Ok(statement.execute(named_params! {
        ":repo": row.repo.as_str(),
        ":pr": row.pr.get(),
        ":command": row.command.as_str(),
        ":key": row.key.as_str(),
        ":started": started.to_string(),
        ":head": reviewed.as_str(),
    })?)
}

/// Adds the row that makes the recorded run of `run` visible, leased from the start if `leased` names an
/// owner and the lease's end.
///
/// # Errors
/// When the store can't be written.
pub fn insert_publish(
    txn: &Txn<'_>,
    run: &DedupeKey,
    leased: Option<(&OwnerName, Timestamp)>,
    now: Timestamp,
) -> Result<(), StoreError> {
    txn.prepare_cached(include_str!("../../sql/queue/insert_publish.sql"))?
        .execute(named_params! {
            ":key": run.as_str(),
            ":publish_key": DedupeKey::publish(run).as_str(),
            ":owner": leased.map(|(owner, _)| &owner.0),
            ":until": leased.map(|(_, until)| until.to_string()),
            ":now": now.to_string(),
        })?;
    Ok(())
}

/// Queues showing the stored run of `shown` again; false when that is queued already.
///
/// # Errors
/// When the store can't be written.
pub fn insert_render(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    shown: &DedupeKey,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let key = DedupeKey::render(repo, pr);
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/insert_render.sql"))?;
    Ok(statement.execute(named_params! {
        ":key": key.as_str(), ":shown": shown.as_str(), ":now": now.to_string(),
    })? > 0)
}

/// Queues again the row of this key, which came to an end; false when there is none.
///
/// # Errors
/// When the store can't be written.
pub fn requeue(txn: &Txn<'_>, key: &DedupeKey, now: Timestamp) -> Result<bool, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/queue/requeue.sql"))?;
    let values = named_params! { ":key": key.as_str(), ":now": now.to_string() };
    Ok(statement.execute(values)? > 0)
}

fn trigger(row: &Row<'_>) -> Result<Trigger, StoreError> {
    let key: String = row.get("dedupe_key")?;
    let place = Place {
        table: "queue",
        key: &key,
    };
    let comment = place
        .number_or_null(row, "comment_id", CommentId::try_from)?
        .map(|id| {
            let source = place.parsed(row, "comment_source", comment_source)?;
            Ok::<_, StoreError>(CommentRef { source, id })
        })
        .transpose()?;
    Ok(Trigger {
        kind: place.parsed(row, "kind", Kind::parse)?,
        repo: place.parsed(row, "repo", str::parse)?,
        pr: place.number(row, "pr_number", PrNumber::try_from)?,
        head: place.parsed_or_null(row, "head_sha", str::parse)?,
        actor: place.number(row, "actor_id", UserId::try_from)?,
        comment,
        command: place.parsed(row, "command", |word| {
            Command::from_word(word).ok_or_else(|| format!("{word:?} is no command"))
        })?,
        attempts: place.number(row, "attempts", u32::try_from)?,
        enqueued_at: place.parsed(row, "enqueued_at", str::parse)?,
        key: DedupeKey::from_stored(key),
    })
}

fn comment_source(text: &str) -> Result<CommentSource, String> {
    [CommentSource::Issue, CommentSource::Review]
        .into_iter()
        .find(|source| source.as_str() == text)
        .ok_or_else(|| format!("{text:?} is no source of comments"))
}
