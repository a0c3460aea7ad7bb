//! Claiming and admitting in one transaction: the only place that makes a [`Reservation`].

use std::collections::HashMap;
use std::time::Duration;

use super::refusal::{Reason, Refusal};
use super::reservation::Reservation;
use super::windows::{Measured, Window, WindowKind};
use super::{Breaker, Mode, TooLarge, estimate};
use crate::clock::Timestamp;
use crate::config::{BudgetConfig, PlanBudget, WhenExhausted};
use crate::ids::{OwnerName, RepoName, Tokens, UserId};
use crate::store::ledger::{self, Confidence, NewReservation, Settlement, StopReason};
use crate::store::queue::{self, Claimable, Kind, Trigger};
use crate::store::{Store, StoreError, Txn, budget_state, runs};

/// What a claim needs to know.
#[derive(Clone, Copy)]
pub struct ClaimRequest<'a> {
    /// The worker's name.
    pub owner: &'a OwnerName,
    /// The repositories that this process serves.
    pub repos: &'a [RepoName],
    /// Whether reviews of a repository spend tokens.
    pub spends: &'a dyn Fn(&RepoName) -> bool,
    /// The limits.
    pub budget: &'a BudgetConfig,
    /// How long the row is leased.
    pub lease: Duration,
    /// Attempts per row.
    pub max_attempts: u32,
    /// Now.
    pub now: Timestamp,
}

/// A row that the worker holds.
#[derive(Debug)]
pub struct Claim {
    /// The row, with the attempts made before this one.
    pub trigger: Trigger,
    /// When it was claimed.
    pub at: Timestamp,
    /// What is to be done.
    pub work: Work,
}

/// What a claimed row asks for.
#[derive(Debug)]
pub enum Work {
    /// A run, whose tokens are reserved.
    Run(Reservation),
    /// The publication of a recorded run, which spends nothing.
    Publish,
}

/// The result of a claim.
#[derive(Debug)]
pub enum ClaimOutcome {
    /// A row.
    Claimed(Box<Claim>),
    /// Nothing can be claimed; these rows wait for the budget.
    Idle {
        /// Why, in claim order. One without a key holds for all that wait.
        refused: Vec<Refusal>,
    },
}

/// Picks the best claimable row that is admitted, leases it and reserves its tokens, in one
/// transaction. A refused row is skipped and keeps its status and attempts.
///
/// # Errors
/// When the store fails; [`StoreError::Busy`] is contention.
pub fn claim(store: &mut Store, request: ClaimRequest<'_>) -> Result<ClaimOutcome, StoreError> {
    store.write(|txn| {
        let claimable = Claimable {
            repos: request.repos,
            max_attempts: request.max_attempts,
            now: request.now,
        };
        queue::abandon_exhausted(txn, claimable)?;
        let mut admission = Admission::new(txn, request);
        let found = queue::walk(txn, claimable, |row| admission.consider(row))?;
        match found {
            Some(Considered::Claimed(claim)) => Ok(ClaimOutcome::Claimed(claim)),
            Some(Considered::Ended) | None => Ok(ClaimOutcome::Idle {
                refused: admission.refused,
            }),
        }
    })
}

/// Closes the reservation with what the run came to, and uses it up; false when the ledger row is
/// closed already or another worker's. Reasons that mean that no model was asked are settled at zero,
/// and a run whose use nobody knows at its full reservation.
///
/// # Errors
/// When the store can't be written.
pub fn settle(
    txn: &Txn<'_>,
    reservation: Reservation,
    settlement: &Settlement,
) -> Result<bool, StoreError> {
    let Some(id) = reservation.ledger_id else {
        return Ok(true);
    };
    let used = match (settlement.reason, settlement.confidence) {
        (StopReason::Refused | StopReason::EngineUnavailable | StopReason::Closed, _) => {
            Tokens::ZERO
        }
        (StopReason::Lost, _) | (_, Confidence::Unavailable) => reservation.tokens,
        _ => settlement.used,
    };
    let settlement = Settlement {
        used,
        ..settlement.clone()
    };
    ledger::settle(txn, id, &reservation.owner, &settlement)
}

/// Whether a change of `lines` reviewable lines fits the reservation.
///
/// # Errors
/// When the store can't be read.
pub fn preflight(
    txn: &Txn<'_>,
    reservation: &Reservation,
    lines: u32,
) -> Result<Result<(), TooLarge>, StoreError> {
    let sample = ledger::rate_sample(txn)?;
    Ok(estimate::check(lines, reservation.tokens, sample))
}

/// The account's own limit was met: nothing is admitted for 5 h, and every limit shrinks by a tenth.
/// Tells the new state.
///
/// # Errors
/// When the store can't be read or written.
pub fn trip(txn: &Txn<'_>, now: Timestamp) -> Result<Breaker, StoreError> {
    let tripped = breaker(txn)?.trip(now);
    budget_state::trip(
        txn,
        tripped.calibrated_pct,
        tripped.tripped_until.unwrap_or(now),
        now,
    )?;
    Ok(tripped)
}

fn breaker(txn: &Txn<'_>) -> Result<Breaker, StoreError> {
    let (percent, tripped_until) = budget_state::breaker(txn)?;
    Ok(Breaker {
        calibrated_pct: percent.unwrap_or(100),
        tripped_until,
    })
}

/// How the walk over the rows ends.
enum Considered {
    Claimed(Box<Claim>),
    /// Nothing further can be admitted.
    Ended,
}

/// One walk over the claimable rows. Windows are measured once, when the first row needs them.
struct Admission<'a> {
    txn: &'a Txn<'a>,
    request: ClaimRequest<'a>,
    all_spend: bool,
    plan: Option<Vec<Measured>>,
    contributors: HashMap<UserId, Measured>,
    /// What the breaker says, once it was asked.
    breaker: Option<Breaker>,
    /// No run that spends can be admitted any more in this walk.
    closed: bool,
    refused: Vec<Refusal>,
}

impl<'a> Admission<'a> {
    fn new(txn: &'a Txn<'a>, request: ClaimRequest<'a>) -> Self {
        Self {
            txn,
            request,
            all_spend: request.repos.iter().all(request.spends),
            plan: None,
            contributors: HashMap::new(),
            breaker: None,
            closed: false,
            refused: Vec::new(),
        }
    }

    fn consider(&mut self, row: Trigger) -> Result<Option<Considered>, StoreError> {
        let publish = row.kind == Kind::Publish || runs::is_recorded(self.txn, &row.key)?;
        let work = if publish {
            Work::Publish
        } else if !self.request.budget.enabled {
            self.refuse_all(Reason::SwitchedOff, None);
            return Ok(Some(Considered::Ended));
        } else if !(self.request.spends)(&row.repo) {
            Work::Run(self.reserve(&row, Tokens::ZERO, Mode::Full)?)
        } else if self.closed {
            return Ok(None);
        } else {
            match self.admit(&row)? {
                Some((tokens, mode)) => Work::Run(self.reserve(&row, tokens, mode)?),
                None if self.closed && self.all_spend => return Ok(Some(Considered::Ended)),
                None => return Ok(None),
            }
        };
        let until = self.request.now.plus(self.request.lease);
        queue::lease(self.txn, &row.key, self.request.owner, until)?;
        let claim = Claim {
            trigger: row,
            at: self.request.now,
            work,
        };
        Ok(Some(Considered::Claimed(Box::new(claim))))
    }

    /// What a spending run of `row` reserves and on which rung it runs, or `None` with the refusal
    /// noted.
    fn admit(&mut self, row: &Trigger) -> Result<Option<(Tokens, Mode)>, StoreError> {
        let Some(plan) = &self.request.budget.plan else {
            self.refuse_all(Reason::NoPlan, None);
            return Ok(None);
        };
        let breaker = self.breaker()?;
        let percent = breaker.percent(self.request.now);
        if let Some(until) = breaker.blocks_until(self.request.now) {
            self.refuse_all(Reason::Tripped { percent }, Some(until));
            return Ok(None);
        }
        if let Some(until) = self.paced_until(row)? {
            self.refuse(row, Reason::Paced, Some(until));
            return Ok(None);
        }
        let needed = plan.max_run_tokens;
        let requested = row.comment.is_some();
        let measured = self.measure_plan(plan)?;
        let tightest = measured.iter().copied().min_by_key(|window| window.left());
        if let Some(tightest) = tightest.filter(|window| window.left() < needed) {
            if self.request.budget.when_exhausted == WhenExhausted::Gate {
                return Ok(Some((Tokens::ZERO, Mode::Exhausted)));
            }
            let until = self.passes_at(&measured, row.actor, needed, true)?;
            let (window, left) = (tightest.window.kind, tightest.left());
            self.refuse_all(
                Reason::NoRoom {
                    window,
                    left,
                    needed,
                },
                until,
            );
            return Ok(None);
        }
        let contributor = self.measure_contributor(plan, row.actor)?;
        let all: Vec<Measured> = measured.into_iter().chain(contributor).collect();
        if let Some(own) = contributor.filter(|own| own.left() < needed) {
            let until = self.passes_at(&all, row.actor, needed, requested)?;
            let reason = Reason::Contributor {
                actor: row.actor,
                left: own.left(),
            };
            self.refuse(row, reason, until);
            return Ok(None);
        }
        let fullest = all.iter().copied().max_by_key(|window| window.mode());
        let mode = fullest.map_or(Mode::Full, Measured::mode);
        if mode >= Mode::MentionOnly && !requested {
            let window = fullest.map_or(WindowKind::Weekly, |full| full.window.kind);
            let until = self.passes_at(&all, row.actor, needed, false)?;
            self.refuse(row, Reason::MentionOnly { window }, until);
            return Ok(None);
        }
        Ok(Some((needed, mode)))
    }

    fn reserve(
        &self,
        row: &Trigger,
        tokens: Tokens,
        mode: Mode,
    ) -> Result<Reservation, StoreError> {
        let owner = self.request.owner;
        let id = ledger::open(
            self.txn,
            NewReservation {
                key: &row.key,
                owner,
                actor: row.actor,
                mode,
                tokens,
                repo: &row.repo,
                pr: row.pr,
                at: self.request.now,
            },
        )?;
        let (key, owner) = (row.key.clone(), owner.clone());
        Ok(Reservation {
            ledger_id: Some(id),
            key,
            owner,
            tokens,
            mode,
        })
    }

    fn measure_plan(&mut self, plan: &PlanBudget) -> Result<Vec<Measured>, StoreError> {
        if let Some(measured) = &self.plan {
            return Ok(measured.clone());
        }
        let measured = Window::of_plan(plan)
            .into_iter()
            .map(|window| self.measure(window, None))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self.plan.insert(measured).clone())
    }

    fn measure_contributor(
        &mut self,
        plan: &PlanBudget,
        actor: UserId,
    ) -> Result<Option<Measured>, StoreError> {
        if let Some(known) = self.contributors.get(&actor) {
            return Ok(Some(*known));
        }
        let Some(window) = Window::of_contributor(plan) else {
            return Ok(None);
        };
        let measured = self.measure(window, Some(actor))?;
        self.contributors.insert(actor, measured);
        Ok(Some(measured))
    }

    /// Until when another review of the same pull request has to wait, if it has to.
    fn paced_until(&self, row: &Trigger) -> Result<Option<Timestamp>, StoreError> {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        let (pacing, now) = (&self.request.budget.pacing, self.request.now);
        let recent = ledger::recent_reviews(self.txn, &row.repo, row.pr, now.minus(DAY))?;
        let Some((newest, oldest)) = recent.newest_and_oldest else {
            return Ok(None);
        };
        let interval = match row.comment {
            Some(_) => pacing.mention_interval,
            None => pacing.review_interval,
        };
        let capped = pacing.max_reviews.is_some_and(|max| recent.count >= max);
        let next = newest.plus(interval);
        let until = if capped {
            next.max(oldest.plus(DAY))
        } else {
            next
        };
        // A clock that was set back must not make it wait for longer than it ever would.
        let longest = if capped { DAY } else { interval };
        Ok((until > now).then(|| until.min(now.plus(longest))))
    }

    fn breaker(&mut self) -> Result<Breaker, StoreError> {
        match self.breaker {
            Some(breaker) => Ok(breaker),
            None => Ok(*self.breaker.insert(breaker(self.txn)?)),
        }
    }

    fn measure(&mut self, window: Window, actor: Option<UserId>) -> Result<Measured, StoreError> {
        let window = window.scaled(self.breaker()?.percent(self.request.now));
        let since = window.start(self.request.now);
        Ok(Measured {
            window,
            charged: ledger::charged(self.txn, since, actor)?,
        })
    }

    /// When all of `windows` have room for a run of `actor`, if nothing else is charged.
    fn passes_at(
        &self,
        windows: &[Measured],
        actor: UserId,
        needed: Tokens,
        requested: bool,
    ) -> Result<Option<Timestamp>, StoreError> {
        let mut latest = None;
        for measured in windows {
            let blocked =
                measured.left() < needed || (!requested && measured.mode() >= Mode::MentionOnly);
            if !blocked {
                continue;
            }
            let whose = (measured.window.kind == WindowKind::Contributor).then_some(actor);
            let since = measured.window.start(self.request.now);
            let charges = ledger::charges(self.txn, since, whose)?;
            match measured.fits_at(&charges, needed, requested) {
                Some(at) => latest = latest.max(Some(at)),
                None => return Ok(None),
            }
        }
        Ok(latest)
    }

    fn refuse(&mut self, row: &Trigger, reason: Reason, until: Option<Timestamp>) {
        self.refused.push(Refusal {
            key: Some(row.key.clone()),
            reason,
            until,
        });
    }

    fn refuse_all(&mut self, reason: Reason, until: Option<Timestamp>) {
        self.closed = true;
        self.refused.push(Refusal {
            key: None,
            reason,
            until,
        });
    }
}
