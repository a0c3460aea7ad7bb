//! `prwarden run` and `prwarden once`.

use std::sync::Arc;
use std::time::Duration;

use super::args::Once;
use super::exit::{Exit, Failed};
use super::{Ended, Globals, config, env};
use crate::budget::pool::PoolError;
use crate::clock::{Clock, Stop, SystemClock};
use crate::config::Config;
use crate::daemon::lock::LockError;
use crate::daemon::once::{Bounds, cycle};
use crate::daemon::startup::{StartError, Started, start};
use crate::daemon::{self, reload, signals};
use crate::process;

/// `run`: the daemon in the foreground.
pub(super) fn run(globals: &Globals) -> Ended {
    let config = config::load(globals)?;
    daemon::run(begin(config)?).map_err(|error| failed(&error))?;
    Ok(Exit::Success)
}

/// `once`: a single cycle. Another instance at work is not worth a mail from cron, so it is said at
/// debug only.
pub(super) fn once(globals: &Globals, args: &Once) -> Ended {
    let config = config::load(globals)?;
    let started = match begin(config) {
        Err(Failed {
            exit: Exit::Busy,
            message,
        }) => {
            log::debug!("{message}");
            return Ok(Exit::Busy);
        }
        other => other?,
    };
    let bounds = Bounds {
        max_time: Duration::from_secs(args.max_seconds),
        max_reviews: args.max_reviews,
    };
    let cycle = cycle(started, bounds).map_err(|error| failed(&error))?;
    Ok(if cycle.unavailable() {
        Exit::Unavailable
    } else {
        Exit::Success
    })
}

fn begin(config: Config) -> Result<Started, Failed> {
    let (drain, kill) = (Stop::new(), Stop::new());
    let grace = config.worker.shutdown_grace;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let file = config.file.clone();
    process::adopt_orphans()
        .map_err(|error| Failed::new(Exit::Failure, format!("cannot adopt orphans: {error}")))?;
    let started =
        start(config, clock, drain.clone(), kill.clone(), &env).map_err(|error| failed(&error))?;
    let context = Arc::clone(&started.context);
    let reload = move || {
        if let Some(file) = &file {
            reload::reload(&context, file, &env);
        }
    };
    signals::listen(drain, kill, grace, reload)
        .map_err(|error| Failed::new(Exit::Failure, format!("cannot catch signals: {error}")))?;
    Ok(started)
}

fn failed(error: &StartError) -> Failed {
    let exit = match error {
        StartError::Config(_) | StartError::Pool(PoolError::Second { .. }) => Exit::Config,
        StartError::Pool(PoolError::NoPolicy) => Exit::NoPolicy,
        StartError::Lock(LockError::Held(_)) => Exit::Busy,
        _ => Exit::Failure,
    };
    Failed::new(exit, error)
}
