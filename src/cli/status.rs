//! `prwarden status`: one screen about the budget and the queue.

use std::fmt::Write as _;

use super::exit::{Exit, Failed};
use super::{Ended, Globals, config, print};
use crate::budget::{Measured, Mode, Outlook, outlook};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::config::Config;
use crate::store::queue::{self, Depth};
use crate::store::{Store, StoreError, runs};

/// Cells of a bar.
const BAR: u64 = 20;

pub(super) fn status(globals: &Globals) -> Ended {
    let config = config::load(globals)?;
    let now = SystemClock.now();
    let failed = |error: StoreError| Failed::new(Exit::Failure, error);
    let mut store = Store::open_existing(&config.store_path).map_err(failed)?;
    let (outlook, depth) = store
        .read(|txn| Ok((outlook(txn, &config.budget, now)?, queue::depth(txn, now)?)))
        .map_err(failed)?;
    let unpublished = store.read(runs::unpublished).map_err(failed)?.len();
    print(&screen(&config, outlook.as_ref(), depth, unpublished, now))?;
    Ok(Exit::Success)
}

// Writing to a String can't fail.
fn screen(
    config: &Config,
    outlook: Option<&Outlook>,
    depth: Depth,
    unpublished: usize,
    now: Timestamp,
) -> String {
    let mut out = String::new();
    if !config.budget.enabled {
        out.push_str("budget: off (budget.enabled = false), no review starts\n");
    }
    match outlook {
        Some(outlook) => budget(&mut out, outlook, now),
        None => out.push_str("budget: no limits, reviews that spend tokens don't start\n"),
    }
    let _ = write!(
        out,
        "queue: {} waiting, {} in work",
        depth.waiting, depth.claimed
    );
    if let Some(oldest) = depth.oldest {
        let minutes = now.since(oldest).as_secs() / 60;
        let _ = write!(out, "; the oldest waits for {minutes} min");
    }
    out.push('\n');
    if unpublished > 0 {
        let _ = writeln!(
            out,
            "unpublished: {unpublished} given up; see prwarden queue list, and put one back with \
             prwarden queue publish KEY"
        );
    }
    out
}

fn budget(out: &mut String, outlook: &Outlook, now: Timestamp) {
    let mode = outlook.windows.iter().map(|window| window.mode()).max();
    let says = match mode.unwrap_or(Mode::Full) {
        Mode::Full => "full reviews",
        Mode::Focused => "focused reviews (correctness and security only)",
        Mode::MentionOnly => "only what a person asks for",
        Mode::Exhausted => "exhausted",
    };
    let _ = writeln!(out, "budget: {says}");
    for window in &outlook.windows {
        let _ = writeln!(out, "  {}", line(*window));
    }
    if outlook.percent < 100 {
        let _ = writeln!(
            out,
            "  {} % of the configured limits hold since the account met its own",
            outlook.percent
        );
    }
    if let Some(until) = outlook.breaker.blocks_until(now) {
        let _ = writeln!(
            out,
            "  the account met its own limit: nothing that spends starts before {}",
            until.to_minute()
        );
    }
    let _ = writeln!(
        out,
        "  next requested review: {}; next automatic one: {}",
        when(outlook.requested, now),
        when(outlook.automatic, now)
    );
}

/// A window as a bar with its amounts.
fn line(measured: Measured) -> String {
    let Measured { window, charged } = measured;
    let percent = (charged.saturating_mul(100))
        .checked_div(window.limit)
        .unwrap_or(100);
    let filled = (percent.min(100) * BAR / 100) as usize;
    let bar = format!("{:-<width$}", "#".repeat(filled), width = BAR as usize);
    format!(
        "{:<20} [{bar}] {percent:>3} %  {} of {}",
        window.kind.to_string(),
        window.kind.shown(charged).trim_end_matches(" tokens"),
        window.kind.shown(window.limit)
    )
}

fn when(fits: Option<Timestamp>, now: Timestamp) -> String {
    match fits {
        Some(at) if at <= now => "fits now".to_owned(),
        Some(at) => format!("fits at {}", at.to_minute()),
        None => "never fits these limits".to_owned(),
    }
}
