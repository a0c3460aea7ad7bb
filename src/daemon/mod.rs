//! The threads and their lives: one poll thread, a fixed pool of workers, a clean stop.
//!
//! The channel between them carries only a wake-up; the row in the store is the work. Every wait is
//! short enough that a stop is seen within a second.

pub mod lock;
pub mod once;
pub mod poller;
pub mod pool;
pub mod reload;
pub mod signals;
pub mod startup;
pub mod supervisor;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::daemon::poller::Poller;
use crate::daemon::startup::{StartError, Started};

/// A stopping daemon leaves after this long even when a thread is stuck; rows come back by their
/// leases.
const STOP_LIMIT: Duration = Duration::from_secs(9);

/// Polls and reviews until the context's `drain` is set.
///
/// # Errors
/// When a thread can't be started.
pub fn run(started: Started) -> Result<(), StartError> {
    let Started {
        context,
        store,
        process_name,
        ..
    } = &started;
    let count = context.config.worker.count;
    let running = Arc::new(AtomicUsize::new(0));
    let spawn = |name: String, life: Box<dyn FnOnce() + Send>| {
        let running = Arc::clone(&running);
        running.fetch_add(1, Ordering::SeqCst);
        let body = move || {
            life();
            running.fetch_sub(1, Ordering::SeqCst);
        };
        thread::Builder::new()
            .name(name)
            .spawn(body)
            .map(drop)
            .map_err(|source| StartError::System {
                what: "cannot start a thread",
                source,
            })
    };
    let path = store.path().to_owned();
    let for_poller = Arc::clone(context);
    let poll = move || {
        supervisor::keep_alive(
            "the poll thread",
            &*for_poller.clock,
            &for_poller.drain,
            |_| Poller::new(&for_poller, poller::Start::Daemon).run(&path),
        );
    };
    spawn("poll".to_owned(), Box::new(poll))?;
    for number in 1..=count {
        let (context, process) = (Arc::clone(context), process_name.clone());
        let work = move || {
            let name = format!("worker {number}");
            supervisor::keep_alive(&name, &*context.clock, &context.drain, |life| {
                pool::work(&context, &process, number, life)
            });
        };
        spawn(format!("worker-{number}"), Box::new(work))?;
    }
    log::info!("watching {}, workers: {count}", context.config.watched());
    while context.drain.wait(Duration::from_secs(3600)) == crate::clock::Waited::Elapsed {}
    context.kill.wait(context.config.worker.shutdown_grace);
    let deadline = Instant::now() + STOP_LIMIT;
    while running.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
