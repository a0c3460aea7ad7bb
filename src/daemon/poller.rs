//! The poll thread: each repository when it is due, on one schedule.

use std::path::Path;
use std::time::Duration;

use crate::clock::ClockWatch;
use crate::context::Context;
use crate::github::ApiError;
use crate::intake::interval::{Interval, Outcome};
use crate::intake::repository::{PollError, Polled, RepositorySource};
use crate::store::runs::{self, Stale};
use crate::store::{Store, StoreError};

/// The longest wait without looking at the stop.
const TICK: Duration = Duration::from_secs(1);

/// How often a daemon empties what is older than the retention.
const SWEEP: Duration = Duration::from_secs(3600);

/// Why the poller was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A daemon: it forgets the `/pulls` ETags, so that the first response fills the set of open
    /// pull requests.
    Daemon,
    /// A single cycle: it keeps them, so that a quiet cycle costs nothing.
    Cycle,
}

/// Polls all served repositories.
#[derive(Debug)]
pub struct Poller<'a> {
    context: &'a Context,
    start: Start,
    entries: Vec<Entry<'a>>,
}

/// One repository on the schedule.
#[derive(Debug)]
struct Entry<'a> {
    source: RepositorySource<'a>,
    interval: Interval,
    /// On [`Clock::elapsed`](crate::clock::Clock::elapsed): a clock that is set moves no poll.
    due: Duration,
    /// When old content was last emptied, on the same scale.
    swept: Option<Duration>,
    /// The last failure, so that a lasting one is said once.
    failing: Option<String>,
}

impl<'a> Poller<'a> {
    /// A poller for all that `context` serves; every repository is due, spread over the first
    /// interval when there are many.
    pub fn new(context: &'a Context, start: Start) -> Self {
        let (now, elapsed) = (context.clock.now(), context.clock.elapsed());
        let count = context.served.len();
        let spread = context.config.poll.floor;
        let entries = context
            .served
            .iter()
            .enumerate()
            .map(|(index, served)| Entry {
                source: RepositorySource::new(served, &context.config.poll, now),
                interval: Interval::new(&context.config.poll, count),
                due: elapsed + spread.mul_f64(index as f64 / count as f64),
                swept: None,
                failing: None,
            })
            .collect();
        Self {
            context,
            start,
            entries,
        }
    }

    /// Polls whatever is due until the daemon drains, and wakes workers when something was queued.
    ///
    /// # Errors
    /// When the store fails; contention is not a failure.
    pub fn run(mut self, store: &Path) -> Result<(), StoreError> {
        let mut store = Store::open_existing(store)?;
        if self.start == Start::Daemon {
            for entry in &self.entries {
                entry.source.forget_pulls(&mut store)?;
            }
        }
        let clock = &*self.context.clock;
        let mut watch = ClockWatch::new(clock);
        while !self.context.drain.is_set() {
            if let Some(set) = watch.look(clock) {
                log::warn!(
                    "the clock was {set}: leases and pauses that now reach too far ahead are cut, and \
                     what was spent leaves its windows by the new time"
                );
                self.context.wake(self.context.config.worker.count as usize);
            }
            let Some(next) = self.entries.iter_mut().min_by_key(|entry| entry.due) else {
                return Ok(());
            };
            let wait = next.due.saturating_sub(clock.elapsed());
            if !wait.is_zero() {
                clock.wait(wait.min(TICK), &self.context.drain);
                continue;
            }
            let queued = poll_entry(next, &mut store, self.context)?;
            self.context.wake(queued);
        }
        Ok(())
    }

    /// Polls every repository once, in order, until the context drains. Tells how many could be
    /// polled.
    ///
    /// # Errors
    /// When the store fails; contention is not a failure.
    pub fn once(mut self, store: &mut Store) -> Result<usize, StoreError> {
        let mut reached = 0;
        for entry in &mut self.entries {
            if self.context.drain.is_set() {
                break;
            }
            poll_entry(entry, store, self.context)?;
            reached += usize::from(entry.failing.is_none());
        }
        Ok(reached)
    }
}

/// Polls one repository, reschedules it, and tells how many triggers were queued.
fn poll_entry(
    entry: &mut Entry<'_>,
    store: &mut Store,
    context: &Context,
) -> Result<usize, StoreError> {
    let polled = entry.source.poll(store, &*context.clock);
    let (now, elapsed) = (context.clock.now(), context.clock.elapsed());
    let repo = entry.source.name().clone();
    if entry
        .swept
        .is_none_or(|swept| elapsed.saturating_sub(swept) >= SWEEP)
    {
        let before = now.minus(context.config.retention.max_age);
        match store.write(|txn| runs::purge(txn, &repo, Stale::Before(before), now)) {
            Ok(_) => entry.swept = Some(elapsed),
            Err(StoreError::Busy { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let (outcome, queued) = match polled {
        Ok(Polled { fresh, queued }) => {
            if entry.failing.take().is_some() {
                log::info!(repo = repo.as_str(); "polling works again");
            }
            (
                if fresh > 0 {
                    Outcome::Changed
                } else {
                    Outcome::Unchanged
                },
                queued,
            )
        }
        Err(PollError::Store(StoreError::Busy { .. })) => {
            log::warn!(repo = repo.as_str(); "the store is busy; this poll is skipped");
            (Outcome::Failed, 0)
        }
        Err(PollError::Store(error)) => return Err(error),
        Err(PollError::Api(ApiError::Stopped)) => (Outcome::Unchanged, 0),
        Err(error) => {
            let text = error.to_string();
            if entry.failing.as_ref() != Some(&text) {
                log::error!(repo = repo.as_str(); "cannot poll: {text}");
            }
            entry.failing = Some(text);
            (Outcome::Failed, 0)
        }
    };
    let wait = entry.interval.next(outcome, entry.source.rate(), now);
    entry.due = context.clock.elapsed() + wait;
    Ok(queued)
}
