//! A single cycle for cron: poll each repository once, work off the queue, end.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::daemon::poller::{Poller, Start};
use crate::daemon::startup::{StartError, Started};
use crate::store::{Store, StoreError, budget_state};
use crate::worker::{End, Step, Told, Worked, Worker};

/// The bounds of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// After this long nothing more is claimed and runs in flight are ended.
    pub max_time: Duration,
    /// At most this many rows are worked on.
    pub max_reviews: Option<u32>,
}

/// What a cycle did.
#[derive(Debug)]
pub struct Cycle {
    /// How many repositories could be polled.
    pub reached: usize,
    /// The rows that were worked on, in the order in which they ended.
    pub worked: Vec<Worked>,
}

impl Cycle {
    /// Whether GitHub could not be polled at all or an engine could not be started.
    pub fn unavailable(&self) -> bool {
        let engine = |worked: &Worked| matches!(worked.end, End::EngineUnavailable(_));
        self.reached == 0 || self.worked.iter().any(engine)
    }
}

/// Runs one cycle.
///
/// # Errors
/// When the store fails.
pub fn cycle(started: Started, bounds: Bounds) -> Result<Cycle, StartError> {
    let Started {
        context,
        store,
        process_name,
        ..
    } = &started;
    let path = store.path().to_owned();
    let mut store = Store::open_existing(&path)?;
    let (finished, deadline) = bounded::<()>(0);
    let worked = Mutex::new(Vec::new());
    let left = AtomicU32::new(bounds.max_reviews.unwrap_or(u32::MAX));
    let reached = thread::scope(|scope| {
        let watched = Arc::clone(context);
        scope.spawn(move || {
            if deadline.recv_timeout(bounds.max_time) == Err(RecvTimeoutError::Timeout) {
                log::warn!("the cycle's time is over; what runs is ended");
                watched.drain.set();
                watched.kill.set();
            }
        });
        let _finished = finished;
        let reached = Poller::new(context, Start::Cycle).once(&mut store)?;
        // The next cycle is another process, which is not to repeat what this one says.
        let told = store.read(budget_state::told)?;
        *context.told() = Told::new(told.clone());
        let mut workers = Vec::new();
        for number in 1..=context.config.worker.count {
            let mut store = Store::open_existing(&path)?;
            let name = Started::name_worker(&mut store, context, process_name, number, 0)?;
            let worker = Worker::new(Arc::clone(context), name, store);
            workers.push(scope.spawn(|| drain_queue(worker, &left, &worked)));
        }
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => log::error!("a worker panicked; this is a defect of prwarden"),
            }
        }
        let tells = context.told().states().clone();
        if tells != told {
            store.write_patiently(|txn| budget_state::remember_told(txn, &tells))?;
        }
        Ok::<_, StartError>(reached)
    })?;
    let worked = worked.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Cycle { reached, worked })
}

/// Works off the queue until nothing can be claimed, the count is used up or the context drains.
fn drain_queue(
    mut worker: Worker,
    left: &AtomicU32,
    done: &Mutex<Vec<Worked>>,
) -> Result<(), StoreError> {
    let take = |count: u32| count.checked_sub(1);
    while !worker.draining()
        && left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
            .is_ok()
    {
        match worker.step() {
            Ok(Step::Worked(worked)) => {
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(*worked);
            }
            Ok(Step::Idle) => {
                left.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
            Err(StoreError::Busy { .. }) => {
                left.fetch_add(1, Ordering::SeqCst);
                worker.pause(Duration::from_secs(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
