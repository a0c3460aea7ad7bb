//! The poll thread: each repository when it is due, on one schedule.

use std::path::Path;
use std::time::Duration;

use crossbeam_channel::Sender;

use crate::clock::Timestamp;
use crate::context::Context;
use crate::github::ApiError;
use crate::intake::interval::{Interval, Outcome};
use crate::intake::repository::{PollError, Polled, RepositorySource};
use crate::store::{Store, StoreError};

/// The longest wait without looking at the stop.
const TICK: Duration = Duration::from_secs(1);

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
    due: Timestamp,
    /// The last failure, so that a lasting one is said once.
    failing: Option<String>,
}

impl<'a> Poller<'a> {
    /// A poller for all that `context` serves; every repository is due, spread over the first
    /// interval when there are many.
    pub fn new(context: &'a Context, start: Start) -> Self {
        let now = context.clock.now();
        let count = context.served.len();
        let spread = context.config.poll.floor;
        let entries = context
            .served
            .iter()
            .enumerate()
            .map(|(index, served)| Entry {
                source: RepositorySource::new(served, &context.config.poll, now),
                interval: Interval::new(&context.config.poll, count),
                due: now.plus(spread.mul_f64(index as f64 / count as f64)),
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
    pub fn run(mut self, store: &Path, wake: &Sender<()>) -> Result<(), StoreError> {
        let mut store = Store::open_existing(store)?;
        if self.start == Start::Daemon {
            for entry in &self.entries {
                entry.source.forget_pulls(&mut store)?;
            }
        }
        while !self.context.drain.is_set() {
            let now = self.context.clock.now();
            let Some(next) = self.entries.iter_mut().min_by_key(|entry| entry.due) else {
                return Ok(());
            };
            // The clock may have been set back: never wait longer than the interval's own ceiling.
            let wait = next.due.since(now).min(self.context.config.poll.ceiling);
            if !wait.is_zero() && next.due > now {
                self.context.clock.wait(wait.min(TICK), &self.context.drain);
                continue;
            }
            let queued = poll_entry(next, &mut store, self.context)?;
            for _ in 0..queued {
                // A full channel means that every worker will look anyway.
                let _ = wake.try_send(());
            }
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
    let now = context.clock.now();
    let repo = entry.source.name().clone();
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
    entry.due = entry.interval.next(outcome, entry.source.rate(), now);
    Ok(queued)
}
