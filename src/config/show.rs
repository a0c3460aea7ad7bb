//! The effective configuration as TOML that loads again.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use globset::GlobMatcher;
use toml::Value;

use super::convert::{DAY, FORMATS, LEVELS, WHEN_EXHAUSTED};
use super::keys;
use super::rules::{KINDS, MODES};
use super::types::*;
use crate::ids::{MicroUsd, Tokens};

/// One key with its value: section, name, value. An empty text means "not set".
type Entry = (&'static keys::Section, &'static str, Value);

/// Every key with the value that is in force; a repository shows what differs from the sections above
/// it. Loading the text gives the same configuration.
pub fn show(config: &Config) -> String {
    let mut out = match &config.file {
        Some(file) => format!("# Effective configuration of {file:?}\n"),
        None => "# Defaults: no configuration file\n".to_owned(),
    };
    let rules = rules(&config.defaults);
    for section in keys::SECTIONS {
        if section.name == keys::REPO.name {
            continue;
        }
        let global = process(config);
        let all = global.iter().chain(&rules);
        let set = all.filter(|(_, _, value)| !is_unset(value));
        write_section(&mut out, section, "", set);
    }
    for repo in &config.repos {
        // Writing to a String can't fail.
        let _ = writeln!(out, "\n[[repo]]\nname = {}", text(repo.name.as_str()));
        if let Some(TokenSource::File(path)) = &repo.token {
            let _ = writeln!(out, "token_file = {}", path_value(path));
        }
        let own = self::rules(&repo.rules);
        let changed: Vec<_> = own
            .iter()
            .zip(&rules)
            .filter(|(own, base)| own.2 != base.2)
            .map(|(own, _)| own)
            .collect();
        for section in keys::SECTIONS {
            write_section(&mut out, section, "repo.", changed.iter().copied());
        }
    }
    out
}

fn write_section<'a>(
    out: &mut String,
    section: &'static keys::Section,
    prefix: &str,
    entries: impl Iterator<Item = &'a Entry>,
) {
    let entries: Vec<_> = entries
        .filter(|(of, _, _)| of.name == section.name)
        .collect();
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n[{prefix}{}]", section.name);
    for (_, key, value) in entries {
        let _ = writeln!(out, "{key} = {value}");
    }
}

fn process(config: &Config) -> Vec<Entry> {
    let Config {
        github,
        poll,
        budget,
        worker,
        store_path,
        workspace,
        retention,
        log,
        ..
    } = config;
    let (token_env, token_file) = match &github.token {
        TokenSource::Env(name) => (text(name), unset()),
        TokenSource::File(path) => (unset(), path_value(path)),
    };
    let mut entries = vec![
        (&keys::GITHUB, "api_url", text(github.api_url.as_str())),
        (&keys::GITHUB, "web_url", text(github.web_url.as_str())),
        (&keys::GITHUB, "token_env", token_env),
        (&keys::GITHUB, "token_file", token_file),
        (
            &keys::GITHUB,
            "ca_file",
            optional_path(github.ca_file.as_deref()),
        ),
        (&keys::POLL, "floor_seconds", seconds(poll.floor)),
        (&keys::POLL, "ceiling_seconds", seconds(poll.ceiling)),
        (&keys::POLL, "overlap_seconds", seconds(poll.overlap)),
        (
            &keys::POLL,
            "max_requests_per_hour",
            whole(poll.max_requests_per_hour),
        ),
        (&keys::BUDGET, "enabled", Value::Boolean(budget.enabled)),
    ];
    if let Some(plan) = &budget.plan {
        let contributor = plan.per_contributor_pct.map_or_else(unset, whole);
        entries.extend([
            (&keys::BUDGET, "session_tokens", tokens(plan.session_tokens)),
            (&keys::BUDGET, "weekly_tokens", tokens(plan.weekly_tokens)),
            (&keys::BUDGET, "max_run_tokens", tokens(plan.max_run_tokens)),
            (
                &keys::BUDGET,
                "max_ask_tokens",
                plan.max_ask_tokens.map_or_else(unset, tokens),
            ),
            (
                &keys::BUDGET,
                "reviewer_share_pct",
                whole(plan.reviewer_share_pct),
            ),
            (&keys::BUDGET, "per_contributor_pct", contributor),
        ]);
        if let Some(money) = plan.money {
            let limit = |limit: Option<MicroUsd>| limit.map_or_else(unset, dollars);
            entries.extend([
                (&keys::BUDGET, "daily_usd", limit(money.daily_microusd)),
                (&keys::BUDGET, "weekly_usd", limit(money.weekly_microusd)),
                (
                    &keys::BUDGET,
                    "max_run_usd",
                    dollars(money.max_run_microusd),
                ),
            ]);
        }
    }
    let (authority, comply) = match budget.pool {
        Pool::Alone => (unset(), true),
        Pool::Authority => (Value::Boolean(true), true),
        Pool::Member => (Value::Boolean(false), true),
        Pool::Apart => (Value::Boolean(false), false),
    };
    entries.push((&keys::BUDGET, "authority", authority));
    if !comply {
        entries.push((&keys::BUDGET, "comply", Value::Boolean(comply)));
    }
    entries.extend([
        (
            &keys::BUDGET,
            "min_review_interval_seconds",
            seconds(budget.pacing.review_interval),
        ),
        (
            &keys::BUDGET,
            "min_mention_interval_seconds",
            seconds(budget.pacing.mention_interval),
        ),
        (
            &keys::BUDGET,
            "max_reviews_per_pull_request",
            budget.pacing.max_reviews.map_or_else(unset, whole),
        ),
        (
            &keys::BUDGET,
            "when_exhausted",
            named(WHEN_EXHAUSTED, budget.when_exhausted),
        ),
        (&keys::WORKER, "count", whole(worker.count)),
        (&keys::WORKER, "lease_seconds", seconds(worker.lease)),
        (&keys::WORKER, "max_attempts", whole(worker.max_attempts)),
        (
            &keys::WORKER,
            "shutdown_grace_seconds",
            seconds(worker.shutdown_grace),
        ),
        (
            &keys::REVIEW_ROLE,
            "share_pct",
            budget.shares.review.map_or_else(unset, whole),
        ),
        (&keys::STORE, "path", path_value(store_path)),
        (
            &keys::WORKSPACE,
            "cache_dir",
            path_value(&workspace.cache_dir),
        ),
        (&keys::WORKSPACE, "git", path_value(&workspace.git)),
        (
            &keys::WORKSPACE,
            "min_free_mb",
            integer(workspace.min_free_mb),
        ),
        (
            &keys::RETENTION,
            "max_age_days",
            integer(retention.max_age.as_secs() / DAY),
        ),
        (&keys::LOG, "level", named(LEVELS, log.level)),
        (&keys::LOG, "format", named(FORMATS, log.format)),
    ]);
    entries
}

/// The keys that may differ between repositories, always all and in the same order.
fn rules(rules: &RepoRules) -> Vec<Entry> {
    let RepoRules {
        triggers,
        engine,
        review,
        caps,
        publish,
    } = rules;
    let allowlist = triggers.allowlist.iter();
    let allowlist = allowlist.map(|id| Value::Integer(id.get())).collect();
    vec![
        (&keys::TRIGGERS, "allowlist", Value::Array(allowlist)),
        (&keys::TRIGGERS, "handle", text(triggers.handle.as_str())),
        (&keys::TRIGGERS, "on_push", Value::Boolean(triggers.on_push)),
        (
            &keys::TRIGGERS,
            "on_ready",
            Value::Boolean(triggers.on_ready),
        ),
        (&keys::TRIGGERS, "on_edit", Value::Boolean(triggers.on_edit)),
        (&keys::TRIGGERS, "never", texts(&triggers.never)),
        (&keys::IGNORE, "labels", texts(&triggers.ignore.labels)),
        (&keys::IGNORE, "base", globs(&triggers.ignore.base)),
        (&keys::IGNORE, "head", globs(&triggers.ignore.head)),
        (&keys::IGNORE, "title", texts(&triggers.ignore.title)),
        (
            &keys::BUDGET,
            "max_changed_files",
            whole(caps.max_changed_files),
        ),
        (
            &keys::BUDGET,
            "max_changed_lines",
            whole(caps.max_changed_lines),
        ),
        (
            &keys::BUDGET,
            "default_exclusions",
            Value::Boolean(caps.default_exclusions),
        ),
        (&keys::BUDGET, "excluded_paths", texts(&caps.excluded_paths)),
        (&keys::ENGINE, "kind", named(KINDS, engine.kind)),
        (
            &keys::ENGINE,
            "binary",
            optional_path(engine.binary.as_deref()),
        ),
        (&keys::ENGINE, "command", texts(&engine.command)),
        (&keys::ENGINE, "args", texts(&engine.args)),
        (
            &keys::ENGINE,
            "model",
            optional_text(engine.model.as_deref()),
        ),
        (
            &keys::ENGINE,
            "expected_version",
            optional_text(engine.expected_version.as_deref()),
        ),
        (&keys::ENGINE, "timeout_seconds", seconds(engine.timeout)),
        (&keys::ENGINE, "env", texts(&engine.env)),
        (
            &keys::ENGINE,
            "standards_paths",
            texts(&engine.standards_paths),
        ),
        (
            &keys::REVIEW,
            "language",
            optional_text(review.language.as_deref()),
        ),
        (
            &keys::REVIEW,
            "instructions",
            optional_text(review.instructions.as_deref()),
        ),
        (&keys::PUBLISH, "mode", named(MODES, publish.mode)),
        (&keys::PUBLISH, "dry_run", Value::Boolean(publish.dry_run)),
        (
            &keys::PUBLISH,
            "post_superseded",
            Value::Boolean(publish.post_superseded),
        ),
        (
            &keys::PUBLISH,
            "max_publish_attempts",
            whole(publish.max_publish_attempts),
        ),
    ]
}

fn unset() -> Value {
    text("")
}

fn is_unset(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty)
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn optional_text(value: Option<&str>) -> Value {
    text(value.unwrap_or_default())
}

fn texts(list: &[String]) -> Value {
    Value::Array(list.iter().map(|one| text(one)).collect())
}

fn globs(list: &[GlobMatcher]) -> Value {
    Value::Array(list.iter().map(|one| text(one.glob().glob())).collect())
}

fn path_value(path: &Path) -> Value {
    text(&path.to_string_lossy())
}

fn optional_path(path: Option<&Path>) -> Value {
    path.map_or_else(unset, path_value)
}

fn whole(number: u32) -> Value {
    Value::Integer(number.into())
}

/// Every number in a configuration was an `i64` in its file.
fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn tokens(amount: Tokens) -> Value {
    integer(amount.0)
}

fn dollars(amount: MicroUsd) -> Value {
    text(amount.to_string().trim_start_matches('$'))
}

fn seconds(span: Duration) -> Value {
    integer(span.as_secs())
}

fn named<T: PartialEq>(names: &[(&str, T)], value: T) -> Value {
    let found = names.iter().find(|(_, one)| *one == value);
    optional_text(found.map(|(name, _)| *name))
}
