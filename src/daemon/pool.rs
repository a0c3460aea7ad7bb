//! A worker thread: work off the queue, then wait for a wake-up.

use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::daemon::startup::{StartError, Started};
use crate::store::{Store, StoreError};
use crate::worker::{Step, Worker};

/// The longest wait without looking at the stop.
const TICK: Duration = Duration::from_secs(1);

/// Without a wake-up the queue is looked at this often: leases lapse and windows move on by
/// themselves.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// One life of worker `number`: ends with `Ok` when the daemon drains.
///
/// # Errors
/// When the store fails; contention is not a failure.
pub fn work(
    context: &Arc<Context>,
    process_name: &str,
    number: u32,
    life: u32,
) -> Result<(), StartError> {
    let mut store = Store::open_existing(&context.store_path)?;
    let name = Started::name_worker(&mut store, context, process_name, number, life)?;
    let mut worker = Worker::new(Arc::clone(context), name, store);
    while !context.drain.is_set() {
        match worker.step() {
            Ok(Step::Worked(_)) => {}
            Ok(Step::Idle) => wait_for_work(context),
            Err(StoreError::Busy { .. }) => {
                log::warn!("the store is busy; worker {number} tries again");
                context.clock.wait(TICK, &context.drain);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait_for_work(context: &Context) {
    let mut waited = Duration::ZERO;
    while waited < LOOK_AGAIN && !context.drain.is_set() {
        if context.woken(TICK) {
            return;
        }
        waited += TICK;
    }
}
