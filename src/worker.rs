//! One claimed row from claim to finish, in the order of the data: claim, facts, checkout, engine,
//! settle and record, publish, finish.
//!
//! Whatever happens in between, exactly one of the finishing verbs is called on the row, and an
//! admitted run is settled exactly once. A process that dies in between leaves the row to its lease
//! and the reservation charged.

mod facts;
mod heartbeat;
mod review;
mod told;
mod unreviewed;

use std::sync::Arc;
use std::time::Duration;

use crate::budget::{self, Charges, ClaimOutcome, ClaimRequest, Work};
use crate::clock::Timestamp;
use crate::context::{Context, Served};
use crate::ids::{DedupeKey, OwnerName, PrNumber, RepoName, Tokens};
use crate::publish::{self, Published, Publisher};
use crate::store::queue::{self, Kind, Trigger};
use crate::store::{Store, StoreError};

pub use told::Told;

/// One worker: a name for its leases and a connection of its own.
#[derive(Debug)]
pub struct Worker {
    context: Arc<Context>,
    name: OwnerName,
    store: Store,
    charges: Charges,
}

/// What one step came to.
#[derive(Debug)]
pub enum Step {
    /// A row was worked on.
    Worked(Box<Worked>),
    /// Nothing can be claimed now.
    Idle,
}

/// What happened to one row.
#[derive(Debug)]
pub struct Worked {
    /// The row.
    pub key: DedupeKey,
    /// Its repository.
    pub repo: RepoName,
    /// Its pull request.
    pub pr: PrNumber,
    /// How it ended.
    pub end: End,
    /// How long each phase took, in order.
    pub phases: Vec<(Phase, Duration)>,
}

/// How work on a row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The run is recorded; this became of its publication.
    Recorded(Published),
    /// Given up before or instead of a run: closed, too large, not to be reviewed.
    Dropped(String),
    /// It goes back into the queue.
    Released(String),
    /// The engine could not be started.
    EngineUnavailable(String),
}

/// The phases of a run, for timings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Claim with reservation.
    Claim,
    /// The pull request's state from GitHub, and the acknowledgement.
    Facts,
    /// Fetch, diff, tree.
    Checkout,
    /// Built-in checks and the engine's process.
    Engine,
    /// Settlement and record in one transaction.
    Record,
    /// Head re-read and comment.
    Publish,
}

impl Phase {
    /// One lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Facts => "facts",
            Self::Checkout => "checkout",
            Self::Engine => "engine",
            Self::Record => "record",
            Self::Publish => "publish",
        }
    }
}

impl Worker {
    /// A worker called `name`, with its own connection `store`.
    pub fn new(context: Arc<Context>, name: OwnerName, store: Store) -> Self {
        Self {
            context,
            name,
            store,
            charges: Charges::default(),
        }
    }

    /// Claims the best row and works on it to its end.
    ///
    /// # Errors
    /// Only for faults of the store; [`StoreError::Busy`] means that another process holds it and
    /// the next step may succeed.
    pub fn step(&mut self) -> Result<Step, StoreError> {
        let context = Arc::clone(&self.context);
        let mut timer = Timer::start();
        let served = context.names();
        let budget = context.budget();
        let outcome = budget::claim(
            &mut self.store,
            &mut self.charges,
            ClaimRequest {
                owner: &self.name,
                repos: &served,
                spends: &|repo| {
                    context
                        .served(repo)
                        .is_some_and(|served| served.engine.spends())
                },
                budget: &budget,
                lease: context.config.worker.lease,
                max_attempts: context.config.worker.max_attempts,
                now: context.clock.now(),
            },
        )?;
        let claim = match outcome {
            ClaimOutcome::Claimed(claim) => claim,
            ClaimOutcome::Idle { refused } => {
                for refusal in context.told().news(&refused) {
                    log::log!(refusal.level(), "{refusal}");
                }
                return Ok(Step::Idle);
            }
        };
        if let Work::Run(reservation) = &claim.work
            && reservation.tokens() > Tokens::ZERO
        {
            context.told().admitted();
        }
        timer.lap(Phase::Claim);
        let row = claim.trigger;
        let served = context.served(&row.repo).ok_or_else(|| not_served(&row))?;
        log::debug!(repo = row.repo.as_str(), pr = row.pr.get(), key = row.key.as_str(); "claimed");
        let end = match claim.work {
            Work::Publish => {
                let published = self.publish(served, &row)?;
                timer.lap(Phase::Publish);
                End::Recorded(published)
            }
            Work::Run(reservation) => {
                let job = Claimed {
                    served,
                    row: &row,
                    at: claim.at,
                };
                self.review(job, reservation, &mut timer)?
            }
        };
        log::debug!(repo = row.repo.as_str(), pr = row.pr.get(), key = row.key.as_str(); "ended: {end:?}");
        Ok(Step::Worked(Box::new(Worked {
            key: row.key,
            repo: row.repo,
            pr: row.pr,
            end,
            phases: timer.laps,
        })))
    }

    /// Whether nothing more is to be claimed.
    pub fn draining(&self) -> bool {
        self.context.drain.is_set()
    }

    /// Waits, or until nothing more is to be claimed.
    pub fn pause(&self, span: Duration) {
        self.context.clock.wait(span, &self.context.drain);
    }

    /// Publishes the run that was just recorded for `row`.
    fn publish_run(&mut self, served: &Served, row: &Trigger) -> Result<Published, StoreError> {
        let publish_row = Trigger {
            key: DedupeKey::publish(&row.key),
            kind: Kind::Publish,
            ..row.clone()
        };
        self.publish(served, &publish_row)
    }

    fn publish(&mut self, served: &Served, row: &Trigger) -> Result<Published, StoreError> {
        let context = Arc::clone(&self.context);
        let rules = context.publish(served);
        let published = publish::publish(
            &mut self.store,
            row,
            &self.name,
            &Publisher {
                client: &served.client,
                rules: &rules,
                web_url: &context.config.github.web_url,
                secrets: &context.secrets(),
                clock: &*context.clock,
                lease: context.config.worker.lease,
                stop: &context.kill,
            },
        );
        match published {
            // A run that can't be read holds up nothing else; once it is corrected, it is published.
            Err(error @ StoreError::Column { .. }) => {
                log::error!(key = row.key.as_str(); "not published yet: {error}");
                let (until, owner) = (context.clock.now().plus(queue::LONGEST_PAUSE), &self.name);
                self.store.write_patiently(|txn| {
                    queue::release_unattempted(txn, &row.key, owner, until)
                })?;
                Ok(Published::Later(until))
            }
            published => published,
        }
    }
}

/// A claimed row and what serves it.
#[derive(Clone, Copy)]
struct Claimed<'a> {
    served: &'a Served,
    row: &'a Trigger,
    at: Timestamp,
}

/// Only rows of served repositories are claimed; anything else is a defect of the claim.
fn not_served(row: &Trigger) -> StoreError {
    StoreError::Column {
        table: "queue",
        key: row.key.to_string(),
        column: "repo",
        why: format!("{} is not served by this process", row.repo),
    }
}

/// Measures the phases.
struct Timer {
    last: std::time::Instant,
    laps: Vec<(Phase, Duration)>,
}

impl Timer {
    fn start() -> Self {
        Self {
            last: std::time::Instant::now(),
            laps: Vec::new(),
        }
    }

    fn lap(&mut self, phase: Phase) {
        let now = std::time::Instant::now();
        self.laps.push((phase, now - self.last));
        self.last = now;
    }
}
