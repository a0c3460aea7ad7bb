//! Claiming and admitting in one transaction: the only place that makes a [`Reservation`].

use std::collections::HashMap;
use std::time::Duration;

use super::model::{self, Ask, Limits, Verdict};
use super::refusal::{Reason, Refusal, Scope};
use super::reservation::Reservation;
use super::windows::{Measured, Window, WindowKind};
use super::{Breaker, Charges, Mode, TooLarge, estimate, pool};
use crate::clock::Timestamp;
use crate::config::{BudgetConfig, Pool, WhenExhausted};
use crate::findings::notice::{Failure, Notice};
use crate::ids::{MicroUsd, OwnerName, RepoName, Tokens};
use crate::store::ledger::{
    self, Charge, Confidence, Cost, NewReservation, Settlement, StopReason,
};
use crate::store::queue::{self, Claimable, Command, Trigger, Unreadable};
use crate::store::{Store, StoreError, Txn, budget_state, pulls, runs};

/// What a claim needs to know.
#[derive(Clone, Copy)]
pub struct ClaimRequest<'a> {
    /// The worker's name.
    pub owner: &'a OwnerName,
    /// The repositories that this process serves; the first one names it in a shared pool.
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
        /// Why, in claim order, each state once.
        refused: Vec<Refusal>,
    },
}

/// Picks the best claimable row that is admitted, leases it and reserves its tokens, in one
/// transaction. A refused row is skipped and keeps its status and attempts. `charges` is what this
/// worker knows of the store's ledger.
///
/// # Errors
/// When the store fails; [`StoreError::Busy`] is contention.
pub fn claim(
    store: &mut Store,
    charges: &mut Charges,
    request: ClaimRequest<'_>,
) -> Result<ClaimOutcome, StoreError> {
    store.write(|txn| {
        let claimable = Claimable {
            repos: request.repos,
            max_attempts: request.max_attempts,
            now: request.now,
        };
        queue::bound_future(txn, claimable, request.lease)?;
        for row in queue::abandon_exhausted(txn, claimable)? {
            tell_interrupted(txn, &row, request.now)?;
        }
        let mut admission = Admission::new(txn, charges, request);
        let found = queue::walk(txn, claimable, |row| admission.visit(row))?;
        match found {
            Some(Considered::Claimed(claim)) => Ok(ClaimOutcome::Claimed(claim)),
            Some(Considered::Ended) | None => Ok(ClaimOutcome::Idle {
                refused: admission.refused,
            }),
        }
    })
}

/// Records what is told of a row whose last attempt nobody ended, and queues telling it. Without a known
/// head there is nothing that it could be told of.
fn tell_interrupted(txn: &Txn<'_>, row: &Trigger, now: Timestamp) -> Result<(), StoreError> {
    let head = match &row.head {
        Some(head) => Some(head.clone()),
        None => pulls::get(txn, &row.repo, row.pr)?.and_then(|seen| seen.head),
    };
    let Some(head) = head else {
        return Ok(());
    };
    let (attempts, failure) = (row.attempts, Failure::Interrupted);
    runs::record_notice(txn, row, head, Notice::Failed { attempts, failure }, now)?;
    queue::insert_publish(txn, &row.key, None, now)
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
    let reserved = reservation.cost;
    // An engine that tells tokens and no cost leaves its cost at what was reserved.
    let (used, money) = match (settlement.reason, settlement.confidence) {
        (StopReason::Refused | StopReason::EngineUnavailable | StopReason::Closed, _) => {
            (Tokens::ZERO, MicroUsd::ZERO)
        }
        (StopReason::Lost, _) | (_, Confidence::Unavailable) => {
            (reserved.tokens, settlement.money.unwrap_or(reserved.money))
        }
        _ if settlement.used == Tokens::ZERO => {
            (Tokens::ZERO, settlement.money.unwrap_or(MicroUsd::ZERO))
        }
        _ => (settlement.used, settlement.money.unwrap_or(reserved.money)),
    };
    let settlement = Settlement {
        used,
        money: Some(money),
        ..settlement.clone()
    };
    ledger::settle(txn, id, &reservation.owner, &settlement)
}

/// Whether a change of `lines` reviewable lines, whose diff has `bytes`, fits the reservation.
///
/// # Errors
/// When the store can't be read.
pub fn preflight(
    txn: &Txn<'_>,
    reservation: &Reservation,
    lines: u32,
    bytes: u64,
) -> Result<Result<(), TooLarge>, StoreError> {
    let sample = ledger::rate_sample(txn)?;
    Ok(estimate::check(
        lines,
        bytes,
        reservation.cost.tokens,
        sample,
    ))
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

/// The breaker's state.
///
/// # Errors
/// When the store or a value can't be read.
pub fn breaker(txn: &Txn<'_>) -> Result<Breaker, StoreError> {
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

fn no_room(full: Measured, need: Cost) -> Reason {
    let kind = full.window.kind;
    Reason::NoRoom {
        window: kind,
        left: full.left(),
        needed: kind.amount(need),
    }
}

/// One walk over the claimable rows. What the store says is asked once, when the first row needs it.
struct Admission<'a> {
    txn: &'a Txn<'a>,
    ledger: &'a mut Charges,
    request: ClaimRequest<'a>,
    all_spend: bool,
    /// The limits in force, once they were asked for; `None` inside when there are none.
    limits: Option<Option<(Limits, Breaker)>>,
    measured: HashMap<WindowKind, Measured>,
    /// No run that spends so much or more can be admitted any more in this walk.
    closed: Option<Tokens>,
    refused: Vec<Refusal>,
}

impl<'a> Admission<'a> {
    fn new(txn: &'a Txn<'a>, ledger: &'a mut Charges, request: ClaimRequest<'a>) -> Self {
        Self {
            txn,
            ledger,
            request,
            all_spend: request.repos.iter().all(request.spends),
            limits: None,
            measured: HashMap::new(),
            closed: None,
            refused: Vec::new(),
        }
    }

    /// A row that can't be read holds up nobody but itself.
    fn visit(
        &mut self,
        row: Result<Trigger, Unreadable>,
    ) -> Result<Option<Considered>, StoreError> {
        match row {
            Ok(row) => self.consider(row),
            Err(Unreadable { key, why }) => {
                self.note(Scope::Row(key), Reason::Unreadable { why }, None);
                Ok(None)
            }
        }
    }

    fn consider(&mut self, row: Trigger) -> Result<Option<Considered>, StoreError> {
        let publish = row.kind.only_writes() || runs::is_recorded(self.txn, &row.key)?;
        let work = if publish {
            Work::Publish
        } else if !self.request.budget.enabled {
            self.refuse_all(Reason::SwitchedOff, None);
            return Ok(Some(Considered::Ended));
        } else if !(self.request.spends)(&row.repo) || row.command.is_free() {
            Work::Run(self.reserve(&row, Cost::ZERO, Mode::Full)?)
        } else {
            match self.admit(&row)? {
                Some((cost, mode)) => Work::Run(self.reserve(&row, cost, mode)?),
                None if self.all_spend && self.is_closed(self.least()) => {
                    return Ok(Some(Considered::Ended));
                }
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
    fn admit(&mut self, row: &Trigger) -> Result<Option<(Cost, Mode)>, StoreError> {
        let Some((limits, breaker)) = self.limits()? else {
            return Ok(None);
        };
        let now = self.request.now;
        if let Some(until) = breaker.blocks_until(now) {
            let percent = limits.percent;
            self.refuse_all(Reason::Tripped { percent }, Some(until));
            return Ok(None);
        }
        let ask = Ask {
            actor: row.actor,
            role: row.command.role(),
            requested: row.comment.is_some(),
        };
        let need = limits.need(row.command);
        if self.is_closed(need.tokens) {
            return Ok(None);
        }
        let windows = limits.windows(ask);
        let measured = windows
            .iter()
            .map(|window| self.measure(*window))
            .collect::<Vec<_>>();
        let admitted = match model::judge(&measured, need, ask.requested) {
            Verdict::Admitted(mode) => (need, mode),
            Verdict::NoRoom(full)
                // The built-in checks answer no questions.
                if full.window.kind.is_everybodys()
                    && row.command != Command::Ask
                    && self.request.budget.when_exhausted == WhenExhausted::Gate =>
            {
                (Cost::ZERO, Mode::Exhausted)
            }
            Verdict::NoRoom(full) if full.window.kind.is_everybodys() => {
                // Of everything that waits, what a person asks for passes first.
                let common: Vec<Window> = windows
                    .into_iter()
                    .filter(|window| window.kind.is_everybodys())
                    .collect();
                let fits = |charges: &[Charge]| {
                    model::next_fit(&common, need, true, charges, breaker, now)
                };
                self.refuse_once(Scope::All, no_room(full, need), fits);
                // What the built-in checks can do is still to be admitted.
                if self.request.budget.when_exhausted != WhenExhausted::Gate {
                    self.closed = Some(need.tokens);
                }
                return Ok(None);
            }
            verdict @ (Verdict::NoRoom(full) | Verdict::MentionOnly(full)) => {
                let reason = match verdict {
                    Verdict::NoRoom(_) => no_room(full, need),
                    _ => Reason::MentionOnly {
                        window: full.window.kind,
                    },
                };
                let scope = match (full.window.kind, &reason) {
                    (WindowKind::Contributor(actor), _) => Scope::Account(actor),
                    (WindowKind::Role(role), Reason::NoRoom { .. }) => Scope::Role(role),
                    _ => Scope::Automatic,
                };
                let fits = |charges: &[Charge]| {
                    model::next_fit(&windows, need, ask.requested, charges, breaker, now)
                };
                self.refuse_once(scope, reason, fits);
                return Ok(None);
            }
        };
        if row.command == Command::Review
            && let Some(until) = self.paced_until(row)?
        {
            let scope = Scope::Row(row.key.clone());
            self.note(scope, Reason::Paced, Some(until));
            return Ok(None);
        }
        Ok(Some(admitted))
    }

    fn is_closed(&self, need: Tokens) -> bool {
        self.closed.is_some_and(|closed| closed <= need)
    }

    /// The least that a run reserves.
    fn least(&self) -> Tokens {
        let limits = self.limits.as_ref().and_then(Option::as_ref);
        limits.map_or(Tokens::ZERO, |(limits, _)| limits.need(Command::Ask).tokens)
    }

    fn reserve(&self, row: &Trigger, cost: Cost, mode: Mode) -> Result<Reservation, StoreError> {
        let owner = self.request.owner;
        let id = ledger::open(
            self.txn,
            NewReservation {
                key: &row.key,
                owner,
                actor: row.actor,
                role: row.command.role(),
                mode,
                cost,
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
            cost,
            mode,
        })
    }

    /// The limits in force and the breaker; `None` with the refusal noted when there are none.
    fn limits(&mut self) -> Result<Option<(Limits, Breaker)>, StoreError> {
        if let Some(known) = &self.limits {
            return Ok(known.clone());
        }
        let found = match self.find_limits() {
            // What can't be read is no limit and no room, and holds up nothing that spends nothing.
            Err(error @ StoreError::Column { .. }) => {
                let why = error.to_string();
                self.refuse_all(Reason::Unreadable { why }, None);
                None
            }
            found => found?,
        };
        Ok(self.limits.insert(found).clone())
    }

    fn find_limits(&mut self) -> Result<Option<(Limits, Breaker)>, StoreError> {
        let (budget, now) = (self.request.budget, self.request.now);
        let plan = match budget.pool {
            Pool::Member => pool::policy(self.txn)?,
            Pool::Alone | Pool::Authority | Pool::Apart => budget.plan.clone(),
        };
        let Some(plan) = plan else {
            let reason = match budget.pool {
                Pool::Member => Reason::NoPolicy,
                _ => Reason::NoPlan,
            };
            self.refuse_all(reason, None);
            return Ok(None);
        };
        if let (Pool::Authority, Some(me)) = (budget.pool, self.request.repos.first())
            && let Some(authority) = pool::stand(self.txn, &plan, me, now)?
        {
            self.refuse_all(Reason::Deposed { authority }, None);
            return Ok(None);
        }
        self.ledger.read(self.txn, now)?;
        let breaker = breaker(self.txn)?;
        let limits = Limits {
            plan,
            shares: budget.shares,
            percent: breaker.percent(now),
        };
        Ok(Some((limits, breaker)))
    }

    /// Each window is added up once, however many rows wait for it.
    fn measure(&mut self, window: Window) -> Measured {
        let (ledger, now) = (&*self.ledger, self.request.now);
        let measure = || {
            if !window.kind.is_everybodys() {
                return Measured::of(window, ledger.rows(), now);
            }
            let charged = ledger.since(window.start(now));
            let charged = window.kind.amount(charged);
            Measured { window, charged }
        };
        *self.measured.entry(window.kind).or_insert_with(measure)
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
        Ok(Some(until.min(now.plus(longest))).filter(|until| *until > now))
    }

    /// Notes that `scope` waits, unless it is noted, and by the week's charges until when.
    fn refuse_once(
        &mut self,
        scope: Scope,
        reason: Reason,
        fits: impl Fn(&[Charge]) -> Option<Timestamp>,
    ) {
        let known = |refusal: &Refusal| refusal.scope == scope && refusal.reason == reason;
        if !self.refused.iter().any(known) {
            let until = fits(self.ledger.rows());
            self.note(scope, reason, until);
        }
    }

    fn refuse_all(&mut self, reason: Reason, until: Option<Timestamp>) {
        self.closed = Some(Tokens::ZERO);
        self.note(Scope::All, reason, until);
    }

    fn note(&mut self, scope: Scope, reason: Reason, until: Option<Timestamp>) {
        self.refused.push(Refusal {
            scope,
            reason,
            until,
        });
    }
}
