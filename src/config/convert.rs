//! The file to the validated configuration: what holds for the whole process, and the list of
//! repositories.

use std::path::{Path, PathBuf};
use std::time::Duration;

use log::LevelFilter;
use toml::de::{DeTable, DeValue};

use super::Env;
use super::error::{Parsed, Wrong, quoted};
use super::keys::{self, Scope};
use super::raw::{Report, Section, elements};
use super::rules::{Context, rules};
use super::types::*;
use super::urls;
use super::values::{
    choice, dollars, flag, path, percent, program, seconds, text, tokens, variable, whole,
};
use super::{check, defaults};
use crate::ids::RepoName;

/// A day, the longest time that any key takes.
pub(super) const DAY: u64 = 86_400;

/// The names of `log.level`.
pub(super) const LEVELS: &[(&str, LevelFilter)] = &[
    ("error", LevelFilter::Error),
    ("warn", LevelFilter::Warn),
    ("info", LevelFilter::Info),
    ("debug", LevelFilter::Debug),
    ("trace", LevelFilter::Trace),
    ("off", LevelFilter::Off),
];

/// The names of `budget.when_exhausted`.
pub(super) const WHEN_EXHAUSTED: &[(&str, WhenExhausted)] =
    &[("wait", WhenExhausted::Wait), ("gate", WhenExhausted::Gate)];

/// The names of `log.format`.
pub(super) const FORMATS: &[(&str, LogFormat)] = &[
    ("auto", LogFormat::Auto),
    ("text", LogFormat::Text),
    ("json", LogFormat::Json),
];

/// Reads the whole file. `None` when `github` can't be used, which the report then knows.
pub(super) fn config(
    report: &Report<'_>,
    root: &DeTable<'_>,
    file: Option<&Path>,
    env: Env<'_>,
) -> Option<Config> {
    let open = |definition| Section::open(report, Some(root), "", definition, Scope::Process);
    let github = github(&open(&keys::GITHUB));
    let worker_section = open(&keys::WORKER);
    let worker = worker(&worker_section);
    let context = Context {
        report,
        lease: worker.lease,
        token_env: github.as_ref().and_then(|github| match &github.token {
            TokenSource::Env(name) => Some(name.clone()),
            TokenSource::File(_) => None,
        }),
    };
    let defaults = rules(&context, Some(root), "", &RepoRules::default());
    let repos = repos(&context, root, &defaults);
    check::default_timeout(&worker_section, root, &defaults.engine, worker.lease);
    check::somebody_is_allowed(report, root, &defaults, &repos);
    let engines = || std::iter::once(&defaults).chain(repos.iter().map(|repo| &repo.rules));
    let spends = engines().any(|rules| rules.engine.kind != EngineKind::Builtin);
    let store = open(&keys::STORE);
    let store_path = store
        .read("path", path)
        .unwrap_or_else(defaults::store_path);
    let poll = poll(&open(&keys::POLL));
    let roles = open(&keys::ROLES);
    let review_role = Section::open(
        report,
        roles.table(),
        "",
        &keys::REVIEW_ROLE,
        Scope::Process,
    );
    let shares = RoleShares {
        review: review_role.read("share_pct", percent),
    };
    let budget_section = Section::reopen(report, root, &keys::BUDGET);
    let budget = budget(&budget_section, shares, spends);
    if let (Some(plan), Some(share)) = (&budget.plan, shares.review) {
        check::admissible_role(&review_role, plan, share);
    }
    let workspace = workspace(&open(&keys::WORKSPACE), &store_path, env);
    let retention = retention(&open(&keys::RETENTION));
    let log = log(&open(&keys::LOG));
    Some(Config {
        file: file.map(Path::to_path_buf),
        github: github?,
        repos,
        defaults,
        poll,
        budget,
        worker,
        store_path,
        workspace,
        retention,
        log,
    })
}

fn github(section: &Section<'_>) -> Option<GithubConfig> {
    let given = section.read("api_url", urls::root);
    let api_url = match given {
        Some(url) => url,
        None if section.has("api_url") => return None,
        None => match urls::parse_root(defaults::API_URL) {
            Ok(url) => url,
            Err(wrong) => {
                section.wrong("api_url", wrong);
                return None;
            }
        },
    };
    let web_url = match section.read("web_url", urls::root) {
        Some(url) => url,
        None => match urls::web_of(&api_url) {
            Ok(url) => url,
            Err(wrong) => {
                section.wrong("api_url", wrong);
                return None;
            }
        },
    };
    let variable = section.read("token_env", variable);
    let token = match (section.read("token_file", path), variable) {
        (Some(_), Some(_)) => {
            let wrong = Wrong::new(
                "token_env is set as well",
                "keep one of the two, so that it is plain which token is used",
            );
            section.wrong("token_file", wrong);
            return None;
        }
        (Some(file), None) => TokenSource::File(file),
        (None, Some(name)) => TokenSource::Env(name),
        (None, None) => TokenSource::Env(defaults::TOKEN_ENV.to_owned()),
    };
    Some(GithubConfig {
        api_url,
        web_url,
        token,
        ca_file: section.read("ca_file", path),
    })
}

fn repos(context: &Context<'_>, root: &DeTable<'_>, defaults: &RepoRules) -> Vec<RepoConfig> {
    let mut repos: Vec<RepoConfig> = Vec::new();
    for section in elements(context.report, root, &keys::REPO) {
        if !section.has("name") {
            let wrong = Wrong::new("it is missing", "write name = \"owner/name\"");
            section.wrong("name", wrong);
        }
        let name = section.read("name", repo_name);
        let rules = rules(context, section.table(), "repo.", defaults);
        let token = section.read("token_file", path).map(TokenSource::File);
        let Some(name) = name else { continue };
        if repos.iter().any(|repo| repo.name == name) {
            let wrong = Wrong::new(
                format!("{name} stands in the file twice (case doesn't count)"),
                "keep one [[repo]] of each name",
            );
            section.wrong("name", wrong);
            continue;
        }
        repos.push(RepoConfig { name, token, rules });
    }
    repos
}

fn repo_name(value: &DeValue<'_>) -> Parsed<RepoName> {
    let text = text(value)?;
    let name: RepoName = text.parse().map_err(|_| {
        Wrong::new(
            format!("{} is not the name of a repository", quoted(text)),
            "write it as owner/name, without a host",
        )
    })?;
    if name
        .as_str()
        .eq_ignore_ascii_case(super::template::PLACEHOLDER)
    {
        return Err(Wrong::new(
            format!("{name} is the template's placeholder"),
            "write the name of your repository",
        ));
    }
    Ok(name)
}

fn poll(section: &Section<'_>) -> PollConfig {
    let base = PollConfig::default();
    let time = |key, least, base| section.read(key, seconds(least..=DAY)).unwrap_or(base);
    let config = PollConfig {
        floor: time("floor_seconds", 1, base.floor),
        ceiling: time("ceiling_seconds", 1, base.ceiling),
        overlap: time("overlap_seconds", 0, base.overlap),
        max_requests_per_hour: section
            .read("max_requests_per_hour", whole(1..=1_000_000))
            .unwrap_or(base.max_requests_per_hour),
    };
    check::interval(section, &config);
    config
}

/// Reads the process-wide keys of `[budget]`; `spends` says whether any engine uses tokens.
fn budget(section: &Section<'_>, shares: RoleShares, spends: bool) -> BudgetConfig {
    let pool = pool(section);
    let plan = if pool == Pool::Member {
        check::limits_elsewhere(section);
        None
    } else {
        plan(section, spends || pool == Pool::Authority)
    };
    let enabled = section.read("enabled", flag).unwrap_or(true);
    if !enabled {
        section.warn("enabled", "spending is off: no review is started");
    }
    BudgetConfig {
        enabled,
        pool,
        plan,
        shares,
        pacing: pacing(section),
        when_exhausted: section
            .read("when_exhausted", choice(WHEN_EXHAUSTED))
            .unwrap_or(WhenExhausted::Wait),
    }
}

fn pool(section: &Section<'_>) -> Pool {
    let authority = section.read("authority", flag);
    let comply = section.read("comply", flag);
    match (authority, comply) {
        (Some(false), Some(false)) => {
            let message = "this process keeps to its own limits, and what it spends fills the windows of the others";
            section.warn("comply", message);
            Pool::Apart
        }
        (Some(false), _) => Pool::Member,
        (Some(true), Some(false)) | (None, Some(false)) => {
            let wrong = Wrong::new(
                "only a process that is not the authority can decide not to comply",
                "remove it, or set budget.authority = false",
            );
            section.wrong("comply", wrong);
            Pool::Alone
        }
        (Some(true), _) => Pool::Authority,
        (None, _) => Pool::Alone,
    }
}

/// The limits; `needed` when there must be some.
fn plan(section: &Section<'_>, needed: bool) -> Option<PlanBudget> {
    let limit = |key| section.read(key, tokens);
    let limits = (
        limit("session_tokens"),
        limit("weekly_tokens"),
        limit("max_run_tokens"),
    );
    let max_ask_tokens = limit("max_ask_tokens");
    let share = section.read("reviewer_share_pct", percent);
    let money = money(section);
    let per_contributor_pct = section.read("per_contributor_pct", percent);
    let plan = match limits {
        (Some(session_tokens), Some(weekly_tokens), Some(max_run_tokens)) => Some(PlanBudget {
            session_tokens,
            weekly_tokens,
            max_run_tokens,
            max_ask_tokens,
            reviewer_share_pct: share.unwrap_or(defaults::REVIEWER_SHARE_PCT),
            per_contributor_pct,
            money,
        }),
        _ => {
            check::missing_limits(section, needed);
            None
        }
    };
    if let Some(plan) = &plan {
        check::admissible(section, plan);
    }
    plan
}

/// The limits in money; at least one window and the reservation belong together.
fn money(section: &Section<'_>) -> Option<MoneyBudget> {
    let daily_microusd = section.read("daily_usd", dollars);
    let weekly_microusd = section.read("weekly_usd", dollars);
    let max_run = section.read("max_run_usd", dollars);
    let limited = section.has("daily_usd") || section.has("weekly_usd");
    if limited != section.has("max_run_usd") {
        let wrong = if limited {
            Wrong::new(
                "it is missing beside a limit in dollars",
                "write what to reserve for each run, like max_run_usd = 0.50",
            )
        } else {
            Wrong::new(
                "there is no limit in dollars to reserve it in",
                "write daily_usd or weekly_usd too, or remove it",
            )
        };
        section.wrong("max_run_usd", wrong);
    }
    let money = MoneyBudget {
        daily_microusd,
        weekly_microusd,
        max_run_microusd: max_run?,
    };
    check::admissible_money(section, money);
    Some(money)
}

fn pacing(section: &Section<'_>) -> Pacing {
    let base = Pacing::default();
    let review = section.read("min_review_interval_seconds", seconds(0..=DAY));
    let mention = section.read("min_mention_interval_seconds", seconds(0..=DAY));
    let review_interval = review.unwrap_or(base.review_interval);
    let mention_interval = mention.unwrap_or(base.mention_interval.min(review_interval));
    if mention_interval > review_interval {
        section.wrong(
            "min_mention_interval_seconds",
            Wrong::new(
                format!(
                    "is longer than min_review_interval_seconds ({} s)",
                    review_interval.as_secs()
                ),
                "a person's request may not wait longer than an automatic review",
            ),
        );
    }
    Pacing {
        review_interval,
        mention_interval,
        max_reviews: section.read("max_reviews_per_pull_request", whole(1..=10_000)),
    }
}

fn worker(section: &Section<'_>) -> WorkerConfig {
    let base = WorkerConfig::default();
    WorkerConfig {
        count: section.read("count", whole(1..=16)).unwrap_or(base.count),
        lease: section
            .read("lease_seconds", seconds(1..=7 * DAY))
            .unwrap_or(base.lease),
        max_attempts: section
            .read("max_attempts", whole(1..=100))
            .unwrap_or(base.max_attempts),
        shutdown_grace: section
            .read("shutdown_grace_seconds", seconds(0..=DAY))
            .unwrap_or(base.shutdown_grace),
    }
}

fn workspace(section: &Section<'_>, store: &Path, env: Env<'_>) -> WorkspaceConfig {
    WorkspaceConfig {
        cache_dir: section
            .read("cache_dir", path)
            .unwrap_or_else(|| cache_dir(store, env)),
        git: section.read("git", program).unwrap_or_else(|| "git".into()),
        min_free_mb: section
            .read("min_free_mb", whole(0..=1 << 30))
            .unwrap_or(defaults::MIN_FREE_MB),
    }
}

fn retention(section: &Section<'_>) -> RetentionConfig {
    let days = section.read("max_age_days", whole(1..=36_500));
    let base = RetentionConfig::default();
    RetentionConfig {
        max_age: days.map_or(base.max_age, |days: u64| Duration::from_secs(days * DAY)),
    }
}

/// The first of `$CACHE_DIRECTORY` (which the service manager sets and makes; the first of its
/// colon-separated list), `$XDG_CACHE_HOME/prwarden`, `$HOME/.cache/prwarden`, and a directory beside
/// the store for cron's bare environment. A relative path counts as not set, as the XDG
/// specification asks.
fn cache_dir(store: &Path, env: Env<'_>) -> PathBuf {
    let absolute = |name: &str| {
        let value = env(name)?;
        let first = value.split(':').next().unwrap_or_default();
        let path = PathBuf::from(if name == "CACHE_DIRECTORY" {
            first
        } else {
            &value
        });
        path.is_absolute().then_some(path)
    };
    absolute("CACHE_DIRECTORY")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|dir| dir.join("prwarden")))
        .or_else(|| absolute("HOME").map(|dir| dir.join(".cache/prwarden")))
        .unwrap_or_else(|| store.with_file_name("prwarden-cache"))
}

fn log(section: &Section<'_>) -> LogConfig {
    let base = LogConfig::default();
    LogConfig {
        level: section.read("level", choice(LEVELS)).unwrap_or(base.level),
        format: section
            .read("format", choice(FORMATS))
            .unwrap_or(base.format),
    }
}
