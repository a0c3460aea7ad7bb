//! What engines produced, recorded before anything is posted.

use rusqlite::{Row, named_params, params};
use serde::{Deserialize, Serialize};

use super::ledger::{Confidence, Mode};
use super::queue::{Command, Trigger};
use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::findings::notice::Notice;
use crate::findings::{Assessment, Finding, Omitted, Reply};
use crate::ids::{CommentId, CommitSha, DedupeKey, PrNumber, RepoName, Tokens, nonce};

/// Whether a run's result is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Whole.
    Completed,
    /// Usable, but cut short.
    Truncated,
    /// Nothing to show.
    Failed,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Truncated => "truncated",
            Self::Failed => "failed",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        [Self::Completed, Self::Truncated, Self::Failed]
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no outcome"))
    }
}

/// How a publication ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// A comment shows it.
    Published,
    /// The head had moved on, and outdated reviews are not wanted.
    Superseded,
    /// Nothing was written, as configured.
    DryRun,
    /// The text held a secret.
    Refused,
}

impl PublishOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Superseded => "superseded",
            Self::DryRun => "dry_run",
            Self::Refused => "refused",
        }
    }
}

/// How a run was made, as the report tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The merge base.
    pub base: CommitSha,
    /// Commits from there to the head.
    pub commits: u32,
    /// Files reviewed.
    pub files: u32,
    /// Lines added and removed in them.
    pub lines: u32,
    /// Which completed review of the pull request this is, counted from 1.
    pub round: u32,
    /// The engine.
    pub engine: String,
    /// Its model.
    pub model: Option<String>,
    /// What it used.
    pub tokens: Tokens,
    /// How well that is known.
    pub confidence: Confidence,
    /// How much it was asked for.
    pub mode: Mode,
    /// Findings that were dropped because their place does not exist.
    pub dropped: u32,
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The trigger.
    pub key: DedupeKey,
    /// The repository.
    pub repo: RepoName,
    /// The pull request.
    pub pr: PrNumber,
    /// The commit that was reviewed.
    pub head: CommitSha,
    /// Whether it is whole.
    pub outcome: Outcome,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What was not looked at.
    pub omitted: Vec<Omitted>,
    /// The change as a whole.
    pub assessment: Option<Assessment>,
    /// What was asked for.
    pub command: Command,
    /// The answer to what was no review.
    pub reply: Option<Reply>,
    /// What is told when there is nothing to show.
    pub notice: Option<Notice>,
    /// How it was made; `None` in a store of another tool.
    pub provenance: Option<Provenance>,
    /// The random part of its hidden marker.
    pub nonce: Option<String>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Where it stands with being published.
    pub publication: Publication,
}

/// How far the publication of a run has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Publication {
    /// The comment that shows it.
    pub comment: Option<CommentId>,
    /// When it was settled what becomes of it: posted, or deliberately not.
    pub published_at: Option<Timestamp>,
    /// Attempts that did not end it.
    pub attempts: u32,
    /// Since when it is given up.
    pub failed_at: Option<Timestamp>,
    /// When the first POST was noted whose outcome may be unknown.
    pub began_at: Option<Timestamp>,
    /// When the retention took its content.
    pub purged_at: Option<Timestamp>,
}

/// Records a run. It replaces a failed or unpublished run of the same trigger.
///
/// # Errors
/// When the store can't be written.
pub fn record(txn: &Txn<'_>, run: &Run) -> Result<(), StoreError> {
    let place = Place {
        table: "runs",
        key: run.key.as_str(),
    };
    let json = |column, value: Result<String, serde_json::Error>| {
        value.map_err(|error| place.wrong(column, error))
    };
    let assessment = run
        .assessment
        .as_ref()
        .map(serde_json::to_string)
        .transpose();
    let provenance = run
        .provenance
        .as_ref()
        .map(serde_json::to_string)
        .transpose();
    let reply = run.reply.as_ref().map(serde_json::to_string).transpose();
    let notice = run.notice.as_ref().map(serde_json::to_string).transpose();
    txn.prepare_cached(include_str!("../../sql/runs/record.sql"))?
        .execute(named_params! {
            ":key": run.key.as_str(),
            ":repo": run.repo.as_str(),
            ":pr": run.pr.get(),
            ":head": run.head.as_str(),
            ":outcome": run.outcome.as_str(),
            ":findings": json("findings", serde_json::to_string(&run.findings))?,
            ":now": run.recorded_at.to_string(),
            ":omitted": json("omitted", serde_json::to_string(&run.omitted))?,
            ":assessment": assessment.map_err(|error| place.wrong("assessment", error))?,
            ":nonce": run.nonce,
            ":command": run.command.as_str(),
            ":reply": reply.map_err(|error| place.wrong("reply", error))?,
            ":notice": notice.map_err(|error| place.wrong("notice", error))?,
            ":provenance": provenance.map_err(|error| place.wrong("provenance", error))?,
        })?;
    Ok(())
}

/// Records a run that has nothing but a notice to show.
///
/// # Errors
/// When the store can't be written.
pub fn record_notice(
    txn: &Txn<'_>,
    row: &Trigger,
    head: CommitSha,
    notice: Notice,
    now: Timestamp,
) -> Result<(), StoreError> {
    record(
        txn,
        &Run {
            key: row.key.clone(),
            repo: row.repo.clone(),
            pr: row.pr,
            head,
            outcome: Outcome::Failed,
            findings: Vec::new(),
            omitted: Vec::new(),
            assessment: None,
            command: row.command,
            reply: None,
            notice: Some(notice),
            provenance: None,
            // Without one, publishing makes it.
            nonce: nonce().ok(),
            recorded_at: now,
            publication: Publication::default(),
        },
    )
}

/// The run of a trigger, if one is recorded.
///
/// # Errors
/// When the store or the row can't be read.
pub fn get(txn: &Txn<'_>, key: &DedupeKey) -> Result<Option<Run>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/runs/get.sql"))?;
    let mut rows = statement.query(named_params! { ":key": key.as_str() })?;
    rows.next()?.map(run).transpose()
}

/// Whether a run with something to show is recorded for the trigger.
///
/// # Errors
/// When the store can't be read.
pub fn is_recorded(txn: &Txn<'_>, key: &DedupeKey) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM runs WHERE dedupe_key = ?1 AND outcome <> 'failed')";
    Ok(txn
        .prepare_cached(sql)?
        .query_row([key.as_str()], |row| row.get(0))?)
}

/// Whether a review of this head is recorded.
///
/// # Errors
/// When the store can't be read.
pub fn completed_for_head(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    head: &CommitSha,
) -> Result<bool, StoreError> {
    let mut statement =
        txn.prepare_cached(include_str!("../../sql/runs/completed_for_head.sql"))?;
    let values = named_params! { ":repo": repo.as_str(), ":pr": pr.get(), ":head": head.as_str() };
    Ok(statement.query_row(values, |row| row.get(0))?)
}

/// The number that the pull request's next review has, counted from 1.
///
/// # Errors
/// When the store can't be read.
pub fn next_round(txn: &Txn<'_>, repo: &RepoName, pr: PrNumber) -> Result<u32, StoreError> {
    let sql = "SELECT count(*) + 1 FROM runs \
               WHERE repo = ?1 AND pr_number = ?2 AND command = 'review' \
               AND outcome IN ('completed', 'truncated')";
    let mut statement = txn.prepare_cached(sql)?;
    Ok(statement.query_row(params![repo.as_str(), pr.get()], |row| row.get(0))?)
}

/// The newest review of the pull request that was published and still has its content.
///
/// # Errors
/// When the store or the row can't be read.
pub fn newest_shown(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
) -> Result<Option<Run>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/runs/newest_shown.sql"))?;
    let mut rows = statement.query(named_params! { ":repo": repo.as_str(), ":pr": pr.get() })?;
    rows.next()?.map(run).transpose()
}

/// What was told last on the pull request, if that was no review.
///
/// # Errors
/// When the store or the row can't be read.
pub fn last_notice(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
) -> Result<Option<Notice>, StoreError> {
    let sql = "SELECT dedupe_key, notice FROM runs \
               WHERE repo = ?1 AND pr_number = ?2 AND command = 'review' \
               ORDER BY recorded_at DESC, rowid DESC LIMIT 1";
    let mut statement = txn.prepare_cached(sql)?;
    let mut rows = statement.query(params![repo.as_str(), pr.get()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let key: String = row.get("dedupe_key")?;
    let place = Place {
        table: "runs",
        key: &key,
    };
    place.json_or_null(row, "notice")
}

/// The findings of the pull request's reviews that are older than the run of `before` (all of them when
/// it is `None`), newest review first. Those that the retention emptied have none.
///
/// # Errors
/// When the store or a row can't be read.
pub fn earlier_findings(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    before: Option<&DedupeKey>,
) -> Result<Vec<Vec<Finding>>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/runs/reviews.sql"))?;
    let mut rows = statement.query(named_params! { ":repo": repo.as_str(), ":pr": pr.get() })?;
    let mut reached = before.is_none();
    let mut reviews = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get("dedupe_key")?;
        let place = Place {
            table: "runs",
            key: &key,
        };
        if reached {
            reviews.push(place.json(row, "findings")?);
        }
        reached |= before.is_some_and(|before| before.as_str() == key);
    }
    Ok(reviews)
}

/// A run that could not be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpublished {
    /// Its trigger.
    pub key: DedupeKey,
    /// Its repository.
    pub repo: String,
    /// Its pull request.
    pub pr: i64,
    /// Attempts made.
    pub attempts: u32,
    /// Since when it is given up, as the store has it.
    pub since: String,
}

/// The runs whose publication is given up, oldest first.
///
/// # Errors
/// When the store can't be read.
pub fn unpublished(txn: &Txn<'_>) -> Result<Vec<Unpublished>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/runs/unpublished.sql"))?;
    let rows = statement.query_map([], |row| {
        Ok(Unpublished {
            key: DedupeKey::from_stored(row.get("dedupe_key")?),
            repo: row.get("repo")?,
            pr: row.get("pr_number")?,
            attempts: row.get("publish_attempts")?,
            since: row.get("publish_failed_at")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Puts a publication that was given up back; false when there is none of this key.
///
/// # Errors
/// When the store can't be written.
pub fn retry_publish(txn: &Txn<'_>, key: &DedupeKey) -> Result<bool, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/runs/retry_publish.sql"))?;
    Ok(statement.execute(named_params! { ":key": key.as_str() })? > 0)
}

/// Whose content is not needed any more.
#[derive(Debug, Clone, Copy)]
pub enum Stale<'a> {
    /// What was recorded before a moment.
    Before(Timestamp),
    /// All of one pull request.
    Pull(PrNumber),
    /// What was recorded before `as_of` of pull requests that are not among those open then.
    Closed {
        /// All that were open.
        open: &'a [PrNumber],
        /// When.
        as_of: Timestamp,
    },
}

/// Empties what settled runs of a repository said, as far as it is stale. Tells how many runs that
/// were. Their findings' numbers stay taken.
///
/// # Errors
/// When the store can't be written.
pub fn purge(
    txn: &Txn<'_>,
    repo: &RepoName,
    stale: Stale<'_>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let (pr, open, before) = match stale {
        Stale::Before(moment) => (None, None, moment),
        Stale::Pull(pr) => (Some(pr.get()), None, now),
        Stale::Closed { open, as_of } => {
            let open: Vec<i64> = open.iter().map(|pr| pr.get()).collect();
            (None, Some(serde_json::Value::from(open).to_string()), as_of)
        }
    };
    txn.prepare_cached(include_str!("../../sql/runs/greatest_numbers.sql"))?
        .execute(named_params! { ":repo": repo.as_str() })?;
    let mut statement = txn.prepare_cached(include_str!("../../sql/runs/purge.sql"))?;
    Ok(statement.execute(named_params! {
        ":repo": repo.as_str(), ":pr": pr, ":open": open, ":before": before.to_string(),
        ":now": now.to_string(),
    })?)
}

/// Notes durably that a POST is about to be made. From now on its outcome may be unknown, and the
/// first note stands: a comment that any later attempt may have made is not older.
///
/// # Errors
/// When the store can't be written.
pub fn begin_publish(txn: &Txn<'_>, key: &DedupeKey, now: Timestamp) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET publish_began_at = coalesce(publish_began_at, ?2) \
               WHERE dedupe_key = ?1";
    txn.prepare_cached(sql)?
        .execute(params![key.as_str(), now.to_string()])?;
    Ok(())
}

/// Gives a run of another tool the random part of its marker.
///
/// # Errors
/// When the store can't be written.
pub fn set_nonce(txn: &Txn<'_>, key: &DedupeKey, nonce: &str) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET nonce = ?2 WHERE dedupe_key = ?1 AND nonce IS NULL";
    txn.prepare_cached(sql)?
        .execute(params![key.as_str(), nonce])?;
    Ok(())
}

/// Whether a run of the pull request has this random name.
///
/// # Errors
/// When the store can't be read.
pub fn has_nonce(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    nonce: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM runs \
               WHERE repo = ?1 AND pr_number = ?2 AND nonce = ?3)";
    let mut statement = txn.prepare_cached(sql)?;
    Ok(statement.query_row(params![repo.as_str(), pr.get(), nonce], |row| row.get(0))?)
}

/// Counts an attempt that did not end the publication.
///
/// # Errors
/// When the store can't be written.
pub fn count_publish_attempt(txn: &Txn<'_>, key: &DedupeKey) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET publish_attempts = publish_attempts + 1 WHERE dedupe_key = ?1";
    txn.prepare_cached(sql)?.execute([key.as_str()])?;
    Ok(())
}

/// Records what became of the publication, with the comment that shows it.
///
/// # Errors
/// When the store can't be written.
pub fn published(
    txn: &Txn<'_>,
    key: &DedupeKey,
    comment: Option<CommentId>,
    outcome: PublishOutcome,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET comment_id = ?2, publish_outcome = ?3, published_at = ?4 \
               WHERE dedupe_key = ?1";
    let comment = comment.map(CommentId::get);
    txn.prepare_cached(sql)?.execute(params![
        key.as_str(),
        comment,
        outcome.as_str(),
        now.to_string()
    ])?;
    Ok(())
}

/// Records that the publication is given up.
///
/// # Errors
/// When the store can't be written.
pub fn publish_failed(txn: &Txn<'_>, key: &DedupeKey, now: Timestamp) -> Result<(), StoreError> {
    let sql = "UPDATE runs SET publish_failed_at = ?2 WHERE dedupe_key = ?1";
    txn.prepare_cached(sql)?
        .execute(params![key.as_str(), now.to_string()])?;
    Ok(())
}

fn run(row: &Row<'_>) -> Result<Run, StoreError> {
    let key: String = row.get("dedupe_key")?;
    let place = Place {
        table: "runs",
        key: &key,
    };
    Ok(Run {
        repo: place.parsed(row, "repo", str::parse)?,
        pr: place.number(row, "pr_number", PrNumber::try_from)?,
        head: place.parsed(row, "head_sha", str::parse)?,
        outcome: place.parsed(row, "outcome", Outcome::parse)?,
        findings: place.json(row, "findings")?,
        omitted: place.json(row, "omitted")?,
        assessment: place.json_or_null(row, "assessment")?,
        provenance: place.json_or_null(row, "provenance")?,
        command: place.parsed(row, "command", |word| {
            Command::from_word(word).ok_or_else(|| format!("{word:?} is no command"))
        })?,
        reply: place.json_or_null(row, "reply")?,
        notice: place.json_or_null(row, "notice")?,
        nonce: row.get("nonce")?,
        recorded_at: place.parsed(row, "recorded_at", str::parse)?,
        publication: Publication {
            comment: place.number_or_null(row, "comment_id", CommentId::try_from)?,
            published_at: place.time_or_null(row, "published_at")?,
            attempts: place.number(row, "publish_attempts", u32::try_from)?,
            failed_at: place.time_or_null(row, "publish_failed_at")?,
            began_at: place.time_or_null(row, "publish_began_at")?,
            purged_at: place.time_or_null(row, "content_purged_at")?,
        },
        key: DedupeKey::from_stored(key),
    })
}
