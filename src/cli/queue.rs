//! `prwarden queue`: what waits, and what could not be published.

use std::fmt::Write as _;

use super::args::QueueCommand;
use super::exit::{Exit, Failed};
use super::{Ended, Globals, config, print};
use crate::clock::{Clock, SystemClock};
use crate::ids::DedupeKey;
use crate::store::{Store, StoreError, queue, runs};

pub(super) fn queue(globals: &Globals, command: &QueueCommand) -> Ended {
    let config = config::load(globals)?;
    let mut store = Store::open_existing(&config.store_path).map_err(failed)?;
    match command {
        QueueCommand::List => list(&mut store),
        QueueCommand::Publish { key } => publish(&mut store, key),
    }
}

fn list(store: &mut Store) -> Ended {
    let (live, unpublished) = store
        .read(|txn| Ok((queue::live(txn)?, runs::unpublished(txn)?)))
        .map_err(failed)?;
    let mut out = String::new();
    // Writing to a String can't fail.
    for row in live {
        let _ = write!(out, "{}  {}", row.key, row.status);
        if let Some(at) = row.not_before {
            let _ = write!(out, "  not before {at}");
        }
        out.push('\n');
    }
    for run in unpublished {
        let _ = writeln!(
            out,
            "{}  unpublished  given up at {} after {} attempts",
            run.key, run.since, run.attempts
        );
    }
    print(&out)?;
    Ok(Exit::Success)
}

/// Takes the key of the run, with or without the `publish:` that its own row has.
fn publish(store: &mut Store, key: &str) -> Ended {
    let given = DedupeKey::from_stored(key.to_owned());
    let run = given.published_run().unwrap_or(given);
    let now = SystemClock.now();
    let found = store
        .write_patiently(|txn| {
            Ok::<_, StoreError>(
                runs::retry_publish(txn, &run)?
                    && queue::requeue(txn, &DedupeKey::publish(&run), now)?,
            )
        })
        .map_err(failed)?;
    if !found {
        return Err(Failed::new(
            Exit::Failure,
            format!(
                "no publication of {run} was given up; prwarden queue list shows those that were"
            ),
        ));
    }
    print(&format!("{run} is published by the next free worker\n"))?;
    Ok(Exit::Success)
}

fn failed(error: StoreError) -> Failed {
    Failed::new(Exit::Failure, error)
}
