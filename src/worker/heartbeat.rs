//! Keeps a lease alive while an engine runs, and ends the run when the lease is lost.

use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::clock::Stop;
use crate::context::Context;
use crate::ids::{DedupeKey, OwnerName};
use crate::store::{Store, StoreError, queue};

/// The longest wait without looking at the stop.
const TICK: Duration = Duration::from_millis(200);

/// A deviation of the clock from the time that passed after which the lease is renewed at once.
const MOVED: Duration = Duration::from_secs(10);

/// Runs `body` with a stop of its own, which is set when the daemon stops or the lease is lost, and
/// renews the lease three times in its length until `body` returns.
pub(super) fn while_leased<T>(
    context: &Context,
    key: &DedupeKey,
    owner: &OwnerName,
    body: impl FnOnce(&Stop) -> T,
) -> T {
    let stop = Stop::new();
    let (finished, watched) = bounded::<()>(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let clock = &context.clock;
            let mut renewed = (clock.now(), clock.elapsed());
            let mut store = None;
            loop {
                match watched.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
                if context.kill.is_set() {
                    stop.set();
                }
                let (now, elapsed) = (clock.now(), clock.elapsed());
                let passed = elapsed.saturating_sub(renewed.1);
                // The lease's end is a moment on the clock, so one that was set makes it wrong.
                let expected = renewed.0.plus(passed);
                let was_set = now.since(expected).max(expected.since(now)) > MOVED;
                if passed < context.config.worker.lease / 3 && !was_set {
                    continue;
                }
                match renew(context, &mut store, key, owner) {
                    Ok(true) => renewed = (now, elapsed),
                    Ok(false) => {
                        log::error!(key = key.as_str(); "the lease was lost; the run is ended");
                        stop.set();
                        return;
                    }
                    // Tried again at the next tick; the lease has most of its length left.
                    Err(error) => {
                        log::warn!(key = key.as_str(); "the lease is not renewed: {error}")
                    }
                }
            }
        });
        let result = body(&stop);
        drop(finished);
        result
    })
}

/// Renews over a connection of this thread's own, made when it is first needed.
fn renew(
    context: &Context,
    store: &mut Option<Store>,
    key: &DedupeKey,
    owner: &OwnerName,
) -> Result<bool, StoreError> {
    let store = match store {
        Some(store) => store,
        None => store.insert(Store::open_existing(&context.store_path)?),
    };
    let until = context.clock.now().plus(context.config.worker.lease);
    store.write(|txn| queue::renew(txn, key, owner, until))
}
