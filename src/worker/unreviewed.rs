//! The end of a row that has no engine's answer to show: how it is settled and finished, and what is
//! told.

use std::time::Duration;

use super::{End, Worker};
use crate::budget::{self, Reservation};
use crate::clock::Timestamp;
use crate::config::PublishMode;
use crate::context::Served;
use crate::findings::notice::Notice;
use crate::github::ApiError;
use crate::ids::{CommitSha, Tokens};
use crate::store::ledger::{Confidence, Settlement, StopReason};
use crate::store::queue::{self, Trigger};
use crate::store::{StoreError, Txn, runs};

/// The first pause before an attempt is repeated; it doubles with each attempt.
const FIRST_RETRY: Duration = Duration::from_secs(30);

/// How long a row waits when GitHub can't be asked about it.
const OUTAGE_WAIT: Duration = Duration::from_secs(300);

/// How a row that was not reviewed leaves the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// It is done.
    Complete,
    /// Never again.
    Abandon,
    /// Again later, unless this was the last attempt.
    Release,
    /// Again later; nothing was spent, the attempt does not count.
    Unattempted(Duration),
}

/// Why a run ends without an engine's answer: how it is settled, how its row is finished, what is said.
#[derive(Debug)]
pub(super) struct Unreviewed {
    pub(super) settlement: Settlement,
    pub(super) finish: Finish,
    pub(super) end: End,
    /// What is told on the pull request, and of which commit, when the row is never tried again.
    pub(super) notice: Option<(CommitSha, Notice)>,
}

impl Worker {
    /// Settles and finishes the row and records what is to be told, in one transaction; then tells it.
    pub(super) fn finish(
        &mut self,
        served: &Served,
        row: &Trigger,
        reservation: Reservation,
        unreviewed: Unreviewed,
    ) -> Result<End, StoreError> {
        let Unreviewed {
            settlement,
            mut finish,
            end,
            notice,
        } = unreviewed;
        let now = self.context.clock.now();
        if finish == Finish::Release && row.attempts + 1 >= self.context.config.worker.max_attempts
        {
            finish = Finish::Abandon;
        }
        let notice = notice.filter(|_| matches!(finish, Finish::Complete | Finish::Abandon));
        let sticky = self.context.publish(served).mode == PublishMode::Sticky;
        let lease = now.plus(self.context.config.worker.lease);
        let owner = self.name.clone();
        let mut tripped = None;
        let (held, told) = self.store.write_patiently(|txn| {
            budget::settle(txn, reservation, &settlement)?;
            if settlement.reason == StopReason::UsageLimit {
                tripped = Some(budget::trip(txn, now)?);
            }
            let held = match finish {
                Finish::Complete => queue::complete(txn, &row.key, &owner)?,
                Finish::Abandon => queue::abandon(txn, &row.key, &owner)?,
                Finish::Release => {
                    let pause = FIRST_RETRY.saturating_mul(1 << row.attempts.min(7));
                    queue::release(txn, &row.key, &owner, now.plus(pause))?
                }
                Finish::Unattempted(pause) => {
                    queue::release_unattempted(txn, &row.key, &owner, now.plus(pause))?
                }
            };
            let Some((head, notice)) = notice.filter(|_| held) else {
                return Ok::<_, StoreError>((held, false));
            };
            // In the one comment, telling again only rewrites what is there.
            if !sticky && is_told(txn, row, &notice)? {
                return Ok((held, false));
            }
            runs::record_notice(txn, row, head, notice, now)?;
            queue::insert_publish(txn, &row.key, Some((&owner, lease)), now)?;
            Ok((held, true))
        })?;
        if let Some(until) = tripped.and_then(|breaker| breaker.tripped_until) {
            log::error!(
                "the engine's account has met its own usage limit: nothing that spends starts before {}",
                until.to_minute()
            );
        }
        if !held {
            log::warn!(key = row.key.as_str(); "the lease was lost before the row was finished");
        }
        if !told {
            return Ok(end);
        }
        let published = self.publish_run(served, row)?;
        Ok(match finish {
            Finish::Complete => End::Recorded(published),
            _ => end,
        })
    }
}

/// Whether the refusal of an automatic trigger was the last thing told on its pull request. What a
/// person asks for is answered each time.
fn is_told(txn: &Txn<'_>, row: &Trigger, notice: &Notice) -> Result<bool, StoreError> {
    if row.comment.is_some() {
        return Ok(false);
    }
    let last = runs::last_notice(txn, &row.repo, row.pr)?;
    Ok(last.is_some_and(|last| last.is_like(notice)))
}

/// GitHub could not be asked. That is no fault of this pull request, so the attempt does not count:
/// an outage or an expired token must not use up what people asked for.
pub(super) fn unreachable(error: &ApiError, now: Timestamp) -> Unreviewed {
    let wait = match error {
        ApiError::Stopped => Duration::ZERO,
        error => error.retry_at().map_or(OUTAGE_WAIT, |at| at.since(now)),
    };
    if !matches!(error, ApiError::Stopped) {
        log::warn!("not reviewed yet, again in {} s: {error}", wait.as_secs());
    }
    Unreviewed {
        settlement: settlement(StopReason::Infrastructure, now),
        finish: Finish::Unattempted(wait),
        end: End::Released(error.to_string()),
        notice: None,
    }
}

/// The settlement of a run that reached no engine: nothing was spent, and that is known exactly.
pub(super) fn settlement(reason: StopReason, at: Timestamp) -> Settlement {
    Settlement {
        used: Tokens::ZERO,
        money: None,
        confidence: Confidence::Exact,
        engine: None,
        model: None,
        lines: None,
        reason,
        at,
    }
}
