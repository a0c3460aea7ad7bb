//! What must hold between keys.

use std::time::Duration;

use toml::de::DeTable;

use super::error::Wrong;
use super::raw::{Report, Section, find};
use super::types::*;
use crate::ids::Tokens;

/// What a claim's lease must cover besides the engine's run: checkout and publishing.
const AROUND_A_RUN: Duration = Duration::from_secs(300);

/// The warning about an empty allowlist.
pub(super) const NOBODY: &str = "it is empty: nobody can start a review. Add the numeric ids that https://api.github.com/users/LOGIN shows";

/// A poll interval can't shrink below its floor.
pub(super) fn interval(section: &Section<'_>, poll: &PollConfig) {
    if poll.floor <= poll.ceiling {
        return;
    }
    let key = if section.has("floor_seconds") {
        "floor_seconds"
    } else {
        "ceiling_seconds"
    };
    let (floor, ceiling) = (poll.floor.as_secs(), poll.ceiling.as_secs());
    let wrong = Wrong::new(
        format!("floor_seconds ({floor}) is above ceiling_seconds ({ceiling})"),
        "write a floor that is at most the ceiling",
    );
    section.wrong(key, wrong);
}

/// A claim that lapses while its run goes on would be run, and paid for, twice.
pub(super) fn timeout(section: &Section<'_>, key: &str, timeout: Duration, lease: Duration) {
    let needed = timeout + AROUND_A_RUN;
    if lease > needed {
        return;
    }
    let wrong = Wrong::new(
        format!(
            "a claim held for {} s lapses before an engine's run of {} s with {} s for checkout and publishing",
            lease.as_secs(),
            timeout.as_secs(),
            AROUND_A_RUN.as_secs()
        ),
        format!(
            "set worker.lease_seconds above {}, or a shorter engine.timeout_seconds",
            needed.as_secs()
        ),
    );
    section.wrong(key, wrong);
}

/// The same for an engine whose time-out isn't in the file.
pub(super) fn default_timeout(
    worker: &Section<'_>,
    root: &DeTable<'_>,
    engine: &EngineConfig,
    lease: Duration,
) {
    if find(root, ["engine", "timeout_seconds"]).is_none() {
        timeout(worker, "lease_seconds", engine.timeout, lease);
    }
}

/// A file that polls nothing, or where nobody may ask for anything, is allowed but hardly meant.
pub(super) fn somebody_is_allowed(
    report: &Report<'_>,
    root: &DeTable<'_>,
    defaults: &RepoRules,
    repos: &[RepoConfig],
) {
    if repos.is_empty() && !root.contains_key("repo") {
        let message = "there is no [[repo]]: nothing is polled. Add one with name = \"owner/name\"";
        report.warn(None, Some("repo".to_owned()), message);
    }
    let nobody = |rules: &RepoRules| rules.triggers.allowlist.is_empty();
    if nobody(defaults) && repos.iter().any(|repo| nobody(&repo.rules)) {
        let at = find(root, ["triggers", "allowlist"]);
        report.warn(at, Some("triggers.allowlist".to_owned()), NOBODY);
    }
}

/// The keys of `[budget]` that an authority decides on.
const LIMITS: [&str; 3] = ["session_tokens", "weekly_tokens", "max_run_tokens"];
const MORE_LIMITS: [&str; 6] = [
    "max_ask_tokens",
    "reviewer_share_pct",
    "per_contributor_pct",
    "daily_usd",
    "weekly_usd",
    "max_run_usd",
];

/// Limits in the file of a process that keeps to those of another one mislead whoever reads them.
pub(super) fn limits_elsewhere(section: &Section<'_>) {
    for key in LIMITS.into_iter().chain(MORE_LIMITS) {
        if section.has(key) {
            let message = "it has no effect with authority = false: the authority's limits hold";
            section.warn(key, message);
        }
    }
}

/// Without all three limits there is nothing to run in or to publish; some of them alone mean that
/// one was forgotten.
pub(super) fn missing_limits(section: &Section<'_>, needed: bool) {
    if !needed && !LIMITS.iter().any(|key| section.has(key)) {
        return;
    }
    for key in LIMITS.into_iter().filter(|key| !section.has(key)) {
        let why = if needed {
            "it is missing, and the configured engine or authority needs it"
        } else {
            "it is missing beside the other limits"
        };
        let remedy = format!("write your estimate of the plan, like {key} = \"1.5m\"");
        section.wrong(key, Wrong::new(why, remedy));
    }
}

/// A run whose reservation is larger than a window could never be admitted.
pub(super) fn admissible(section: &Section<'_>, plan: &PlanBudget) {
    if plan.max_ask_tokens > Some(plan.max_run_tokens) {
        let wrong = Wrong::new(
            format!("it is above max_run_tokens ({})", plan.max_run_tokens),
            "write a smaller number: an answer is no larger than a review",
        );
        section.wrong("max_ask_tokens", wrong);
    }
    let week = plan.weekly_tokens.percent(plan.reviewer_share_pct);
    let windows = [
        (
            "session",
            Some(plan.session_tokens.percent(plan.reviewer_share_pct)),
        ),
        ("daily", Some(Tokens(week.0 / 7))),
        ("weekly", Some(week)),
        (
            "contributor",
            plan.per_contributor_pct.map(|pct| week.percent(pct)),
        ),
    ];
    let limits = windows
        .into_iter()
        .filter_map(|(window, limit)| limit.map(|limit| (limit, window)));
    let Some((limit, window)) = limits.min() else {
        return;
    };
    if plan.max_run_tokens <= limit {
        return;
    }
    let wrong = Wrong::new(
        format!(
            "{} is above the {window} window's limit of {limit} (the plan times reviewer_share_pct), \
             so that no run could ever start",
            plan.max_run_tokens
        ),
        format!(
            "write at most {}, or raise the plan's limits or shares",
            limit.0
        ),
    );
    section.wrong("max_run_tokens", wrong);
}

/// The same for a role's own window.
pub(super) fn admissible_role(section: &Section<'_>, plan: &PlanBudget, share: u32) {
    let week = plan.weekly_tokens.percent(plan.reviewer_share_pct);
    let limit = week.percent(share);
    if plan.max_run_tokens <= limit {
        return;
    }
    let wrong = Wrong::new(
        format!(
            "{share} % of the agent's week are {limit} tokens, less than budget.max_run_tokens ({}), \
             so that no run could ever start",
            plan.max_run_tokens
        ),
        "write a larger share, or a smaller budget.max_run_tokens",
    );
    section.wrong("share_pct", wrong);
}

/// The same in money.
pub(super) fn admissible_money(section: &Section<'_>, money: MoneyBudget) {
    let windows = [
        ("daily_usd", money.daily_microusd),
        ("weekly_usd", money.weekly_microusd),
    ];
    for (key, limit) in windows {
        if limit.is_some_and(|limit| limit < money.max_run_microusd) {
            let wrong = Wrong::new(
                format!(
                    "it is below max_run_usd ({}), so that no run could ever start",
                    money.max_run_microusd
                ),
                "write a larger limit, or a smaller max_run_usd",
            );
            section.wrong(key, wrong);
        }
    }
}
