//! What was reserved and spent. Append-only: a row is opened at the claim, closed once, and never
//! deleted.

use rusqlite::{ToSql, named_params, params};
use serde::{Deserialize, Serialize};

use super::queue::Role;
use super::{StoreError, Txn, columns::Place};
use crate::clock::Timestamp;
use crate::ids::{DedupeKey, MicroUsd, OwnerName, PrNumber, RepoName, Tokens, UserId};

/// How much a run may ask of the engine, by how full the windows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Below 60 %: everything.
    Full,
    /// From 60 %: correctness and security only.
    Focused,
    /// From 85 %: only what a person asked for.
    MentionOnly,
    /// From 100 %: nothing.
    Exhausted,
}

impl Mode {
    /// The word in the `mode` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Focused => "focused",
            Self::MentionOnly => "mention_only",
            Self::Exhausted => "exhausted",
        }
    }
}

/// How well the usage of a run is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The engine measured it.
    Exact,
    /// It was derived from something else.
    Estimated,
    /// Nobody knows; the full reservation counts.
    Unavailable,
}

impl Confidence {
    /// The word in the `usage_confidence` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Estimated => "estimated",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The review is whole.
    Completed,
    /// The review is usable but cut short.
    Truncated,
    /// The engine said that it failed.
    Failed,
    /// The time-out passed.
    Timeout,
    /// The engine crashed or its answer can't be used.
    EngineError,
    /// The engine could not be started.
    EngineUnavailable,
    /// The rules or the pre-flight forbade it.
    Refused,
    /// The pull request was closed.
    Closed,
    /// The worker died; the full reservation counts.
    Lost,
    /// GitHub, git or this machine failed before the engine was asked.
    Infrastructure,
    /// The account's limit at the model's vendor is used up.
    UsageLimit,
}

impl StopReason {
    /// The word in the `stop_reason` column.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Truncated => "truncated",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::EngineError => "engine_error",
            Self::EngineUnavailable => "engine_unavailable",
            Self::Refused => "refused",
            Self::Closed => "closed",
            Self::Lost => "lost",
            Self::Infrastructure => "infrastructure",
            Self::UsageLimit => "usage_limit",
        }
    }
}

/// A reservation to be opened.
#[derive(Debug, Clone, Copy)]
pub struct NewReservation<'a> {
    /// The trigger.
    pub key: &'a DedupeKey,
    /// Who runs it.
    pub owner: &'a OwnerName,
    /// Whose request it is.
    pub actor: UserId,
    /// Whose work it is.
    pub role: Role,
    /// The rung at admission.
    pub mode: Mode,
    /// The most that the run may use.
    pub cost: Cost,
    /// The repository.
    pub repo: &'a RepoName,
    /// The pull request.
    pub pr: PrNumber,
    /// Now.
    pub at: Timestamp,
}

/// How a reservation is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// What counts from now on.
    pub used: Tokens,
    /// What it cost, if the engine told.
    pub money: Option<MicroUsd>,
    /// How well that is known.
    pub confidence: Confidence,
    /// The engine that ran.
    pub engine: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The reviewable lines of the change.
    pub lines: Option<u32>,
    /// Why the run ended.
    pub reason: StopReason,
    /// Now.
    pub at: Timestamp,
}

/// Opens a reservation and returns its id. An open row of the same key belongs to a worker that died
/// and is closed first, as lost at its full reservation.
///
/// # Errors
/// When the store can't be written.
pub fn open(txn: &Txn<'_>, new: NewReservation<'_>) -> Result<i64, StoreError> {
    txn.prepare_cached(include_str!("../../sql/ledger/close_lost.sql"))?
        .execute(named_params! { ":key": new.key.as_str(), ":now": new.at.to_string() })?;
    txn.prepare_cached(include_str!("../../sql/ledger/open.sql"))?
        .execute(named_params! {
            ":key": new.key.as_str(),
            ":owner": new.owner.0,
            ":actor": new.actor.get(),
            ":role": new.role.as_str(),
            ":mode": new.mode.as_str(),
            ":tokens": stored(new.cost.tokens.0, Tokens::MOST.0),
            ":money": stored(new.cost.money.0, MicroUsd::MOST.0),
            ":now": new.at.to_string(),
            ":repo": new.repo.as_str(),
            ":pr": new.pr.get(),
        })?;
    Ok(txn.last_insert_rowid())
}

/// Closes the open reservation `id` of `owner`; false when it is closed already or not his.
///
/// # Errors
/// When the store can't be written.
pub fn settle(
    txn: &Txn<'_>,
    id: i64,
    owner: &OwnerName,
    settlement: &Settlement,
) -> Result<bool, StoreError> {
    let changed = txn
        .prepare_cached(include_str!("../../sql/ledger/settle.sql"))?
        .execute(named_params! {
            ":id": id,
            ":owner": owner.0,
            ":used": stored(settlement.used.0, Tokens::MOST.0),
            ":money": settlement.money.map(|money| stored(money.0, MicroUsd::MOST.0)),
            ":confidence": settlement.confidence.as_str(),
            ":engine": settlement.engine,
            ":model": settlement.model,
            ":lines": settlement.lines,
            ":reason": settlement.reason.as_str(),
            ":now": settlement.at.to_string(),
        })?;
    Ok(changed > 0)
}

/// Tokens and money together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Of any kind.
    pub tokens: Tokens,
    /// As the engine tells it.
    pub money: MicroUsd,
}

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self {
        tokens: Tokens::ZERO,
        money: MicroUsd::ZERO,
    };
}

/// One row of the ledger as a window sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Its place in the ledger.
    pub id: i64,
    /// When it was reserved.
    pub at: Timestamp,
    /// The account's id; stores of other tools may hold any number.
    pub actor: i64,
    /// Whose work it was.
    pub role: Role,
    /// What was used, or is reserved.
    pub cost: Cost,
    /// It is not settled: its cost changes once more.
    pub open: bool,
}

/// The charges since `since` (exclusive), oldest first.
///
/// # Errors
/// When the store or a row can't be read.
pub fn charges(txn: &Txn<'_>, since: Timestamp) -> Result<Vec<Charge>, StoreError> {
    let sql = include_str!("../../sql/ledger/charges.sql");
    read_charges(txn, sql, named_params! { ":since": since.to_string() })
}

/// The charges behind the one with the id `last`, in the order in which they were made.
///
/// # Errors
/// When the store or a row can't be read.
pub fn charges_after(txn: &Txn<'_>, last: i64) -> Result<Vec<Charge>, StoreError> {
    let sql = include_str!("../../sql/ledger/charges_after.sql");
    read_charges(txn, sql, named_params! { ":last": last })
}

/// One charge as it stands.
///
/// # Errors
/// When the store or the row can't be read.
pub fn charge(txn: &Txn<'_>, id: i64) -> Result<Option<Charge>, StoreError> {
    let sql = include_str!("../../sql/ledger/charge.sql");
    Ok(read_charges(txn, sql, named_params! { ":id": id })?.pop())
}

/// The largest id that was given; 0 when there is none.
///
/// # Errors
/// When the store can't be read.
pub fn last_id(txn: &Txn<'_>) -> Result<i64, StoreError> {
    let sql = "SELECT coalesce(max(id), 0) FROM ledger";
    Ok(txn.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn read_charges(
    txn: &Txn<'_>,
    sql: &str,
    values: &[(&str, &dyn ToSql)],
) -> Result<Vec<Charge>, StoreError> {
    let mut statement = txn.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut charges = Vec::new();
    while let Some(row) = rows.next()? {
        let (at, role): (String, String) = (row.get(1)?, row.get(3)?);
        let place = Place {
            table: "ledger",
            key: &at,
        };
        charges.push(Charge {
            id: row.get(0)?,
            at: at
                .parse()
                .map_err(|error| place.wrong("reserved_at", error))?,
            actor: row.get(2)?,
            role: Role::parse(&role).map_err(|error| place.wrong("role", error))?,
            cost: Cost {
                tokens: Tokens(loaded("ledger", &at, "used_tokens", row.get(4)?)?),
                money: MicroUsd(loaded("ledger", &at, "used_microusd", row.get(5)?)?),
            },
            open: row.get(6)?,
        });
    }
    Ok(charges)
}

/// The reviews of one pull request in some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecentReviews {
    /// When the newest and the oldest of them started.
    pub newest_and_oldest: Option<(Timestamp, Timestamp)>,
    /// How many.
    pub count: u32,
}

/// The reviews of a pull request that started after `since` and gave a result.
///
/// # Errors
/// When the store can't be read.
pub fn recent_reviews(
    txn: &Txn<'_>,
    repo: &RepoName,
    pr: PrNumber,
    since: Timestamp,
) -> Result<RecentReviews, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/ledger/recent_reviews.sql"))?;
    let values =
        named_params! { ":repo": repo.as_str(), ":pr": pr.get(), ":since": since.to_string() };
    let (newest, oldest, count): (Option<String>, Option<String>, u32) =
        statement.query_row(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let key = format!("{repo}#{pr}");
    let place = Place {
        table: "ledger",
        key: &key,
    };
    let time = |text: String| {
        text.parse()
            .map_err(|error| place.wrong("reserved_at", error))
    };
    let newest_and_oldest = match (newest, oldest) {
        (Some(newest), Some(oldest)) => Some((time(newest)?, time(oldest)?)),
        _ => None,
    };
    Ok(RecentReviews {
        newest_and_oldest,
        count,
    })
}

/// What full rounds have cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// How many rounds it is taken from.
    pub rounds: u32,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their reviewable lines.
    pub lines: u64,
}

/// The newest exactly measured full rounds, at most a hundred.
///
/// # Errors
/// When the store can't be read.
pub fn rate_sample(txn: &Txn<'_>) -> Result<RateSample, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/ledger/rate_sample.sql"))?;
    let (rounds, tokens, lines): (u32, i64, i64) = statement
        .query_row(named_params! { ":rows": 100 }, |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let lines = u64::try_from(lines).unwrap_or(0);
    Ok(RateSample {
        rounds,
        tokens: Tokens(loaded("ledger", "sum", "used_tokens", tokens)?),
        lines,
    })
}

/// A row for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// The trigger.
    pub key: DedupeKey,
    /// The rung at admission.
    pub mode: String,
    /// What was reserved.
    pub reserved: Tokens,
    /// What was used; `None` while it is open.
    pub used: Option<Tokens>,
    /// How well that is known.
    pub confidence: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Why it ended.
    pub reason: Option<String>,
}

/// The newest `rows` rows, newest first.
///
/// # Errors
/// When the store can't be read.
pub fn newest(txn: &Txn<'_>, rows: u32) -> Result<Vec<LedgerRow>, StoreError> {
    let mut statement = txn.prepare_cached(include_str!("../../sql/ledger/newest.sql"))?;
    let mut found = statement.query(params![rows])?;
    let mut list = Vec::new();
    while let Some(row) = found.next()? {
        let key: String = row.get("dedupe_key")?;
        let place = Place {
            table: "ledger",
            key: &key,
        };
        let amount = |amount| u64::try_from(amount).map(Tokens);
        list.push(LedgerRow {
            mode: row.get("mode")?,
            reserved: place.number(row, "reserved_tokens", amount)?,
            used: place.number_or_null(row, "used_tokens", amount)?,
            confidence: row.get("usage_confidence")?,
            engine: row.get("engine")?,
            model: row.get("model")?,
            reason: row.get("stop_reason")?,
            key: DedupeKey::from_stored(key),
        });
    }
    Ok(list)
}

/// What an engine tells may be absurd: an amount above `most` is held at it, so that no sum overflows.
fn stored(amount: u64, most: u64) -> i64 {
    i64::try_from(amount.min(most)).unwrap_or(i64::MAX)
}

fn loaded(
    table: &'static str,
    key: &str,
    column: &'static str,
    amount: i64,
) -> Result<u64, StoreError> {
    let place = Place { table, key };
    u64::try_from(amount).map_err(|error| place.wrong(column, error))
}
