//! `prwarden demo`: the whole chain against a GitHub double on the loopback interface.
//!
//! Everything but GitHub is the real thing: the store, git over HTTP, the engine as a confined
//! subprocess, the comment. It needs no token and no network.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::Demo;
use super::exit::{Exit, Failed};
use super::{Ended, Globals, config as configuration, env, print};
use crate::clock::{Clock, Stop, SystemClock};
use crate::config::{Config, EngineKind, PlanBudget, RepoConfig};
use crate::daemon::once::{Bounds, Cycle, cycle};
use crate::daemon::startup::start;
use crate::double::sample::{self, Sample};
use crate::double::{Double, NewPull, UserKind};
use crate::ids::{RepoName, Tokens, UserId, nonce};
use crate::store::{Store, ledger};

const REPO: &str = "acme/widgets";
const AUTHOR: &str = "mona";
const AUTHOR_ID: i64 = 1001;
const BOT: &str = "prwarden-bot";
const BOT_ID: i64 = 2001;

/// Shows the chain and what came of it.
pub(super) fn demo(globals: &Globals, args: &Demo) -> Ended {
    let failed = |error: &dyn std::fmt::Display| Failed::new(Exit::Failure, error);
    let (dir, _temporary) = directory(args)?;
    let (config, token) = configure(&dir)?;
    configuration::start_log(globals, &config)?;
    let sample = sample::build(&dir, &config.workspace.git).map_err(|error| failed(&error))?;
    let double = Double::start().map_err(|error| failed(&error))?;
    double.add_user(AUTHOR_ID, AUTHOR, UserKind::User);
    double.add_user(BOT_ID, BOT, UserKind::User);
    double.set_token(&token, BOT);
    double.add_repo(REPO, &sample.bare);
    let config = aim_at(config, &double)?;

    print(&format!(
        "A GitHub double runs at {}, with one repository, {REPO}.\n\n",
        double.url()
    ))?;
    run_cycle(&config, &token)?;
    print(
        "Cycle 1: nothing has happened yet. What is older than prwarden's start is never reviewed.\n",
    )?;
    let number = open_pull(&double, &sample);
    print(&format!(
        "\n{AUTHOR} opens pull request #{number}: {}\n",
        sample.title
    ))?;
    let cycle = run_cycle(&config, &token)?;
    let [worked] = cycle.worked.as_slice() else {
        return Err(failed(&format!(
            "one review was expected, {} ran",
            cycle.worked.len()
        )));
    };
    print(
        "\nCycle 2: the pull request is found, claimed, checked out, reviewed and answered.\n\n",
    )?;
    for (phase, took) in &worked.phases {
        print(&format!(
            "  {:<9} {:>8.1} ms\n",
            phase.as_str(),
            took.as_secs_f64() * 1000.0
        ))?;
    }
    show_ledger(&config)?;
    for comment in double.comments(REPO, number) {
        print(&format!(
            "\nThe comment on #{number}, as {} posted it:\n\n{}\n",
            comment.author,
            indent(&comment.body)
        ))?;
    }
    for (number, remark) in [(3, "our own comment is new"), (4, "nothing is")] {
        double.clear_requests();
        run_cycle(&config, &token)?;
        let statuses: Vec<String> = double
            .requests()
            .iter()
            .map(|request| request.status.to_string())
            .collect();
        print(&format!(
            "\nCycle {number}: {remark}; GitHub answered {}.\n",
            statuses.join(", ")
        ))?;
    }
    if let Some(kept) = &args.keep {
        print(&format!(
            "\nThe store, the sample repository and the mirror are kept in {}.\n",
            kept.display()
        ))?;
    }
    Ok(Exit::Success)
}

/// A new directory: the one that is to be kept, or one that vanishes with the returned guard.
fn directory(args: &Demo) -> Result<(PathBuf, Option<tempfile::TempDir>), Failed> {
    let failed = |what: &Path, error: std::io::Error| {
        Failed::new(
            Exit::Failure,
            format!("cannot create {}: {error}", what.display()),
        )
    };
    match &args.keep {
        Some(dir) => {
            fs::create_dir(dir).map_err(|error| failed(dir, error))?;
            let dir = dir.canonicalize().map_err(|error| failed(dir, error))?;
            Ok((dir, None))
        }
        None => {
            let temporary = tempfile::Builder::new()
                .prefix("prwarden-demo-")
                .tempdir()
                .map_err(|error| failed(&std::env::temp_dir(), error))?;
            Ok((temporary.path().to_owned(), Some(temporary)))
        }
    }
}

/// The embedded defaults with a store of their own, a budget and the sample engine.
fn configure(dir: &Path) -> Result<(Config, String), Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::new(Exit::Failure, error);
    let own = std::env::current_exe().map_err(|error| failed(&error))?;
    let token = nonce().map_err(|error| failed(&error))?;
    let mut config = Config::embedded(&env).map_err(|error| failed(&error))?;
    config.store_path = dir.join("demo.db");
    config.workspace.cache_dir = dir.join("cache");
    config.workspace.min_free_mb = 0;
    config.budget.plan = Some(PlanBudget {
        session_tokens: Tokens(2_000_000),
        weekly_tokens: Tokens(20_000_000),
        max_run_tokens: Tokens(150_000),
        max_ask_tokens: None,
        reviewer_share_pct: 40,
        per_contributor_pct: None,
        money: None,
    });
    let author = UserId::try_from(AUTHOR_ID).map_err(|error| failed(&error))?;
    config.defaults.triggers.allowlist.insert(author);
    config.defaults.engine.kind = EngineKind::Command;
    config.defaults.engine.command = vec![
        own.to_string_lossy().into_owned(),
        "sample-engine".to_owned(),
    ];
    Ok((config, token))
}

fn aim_at(mut config: Config, double: &Double) -> Result<Config, Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::new(Exit::Failure, error);
    let name: RepoName = REPO.parse().map_err(|error| failed(&error))?;
    let url: url::Url = double.url().parse().map_err(|error| failed(&error))?;
    config.github.api_url = url.clone();
    config.github.web_url = url;
    config.repos.push(RepoConfig {
        name,
        token: None,
        rules: config.defaults.clone(),
    });
    Ok(config)
}

/// One `prwarden once`, in this process.
fn run_cycle(config: &Config, token: &str) -> Result<Cycle, Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::new(Exit::Failure, error);
    let only_token = |name: &str| {
        (name == "GITHUB_TOKEN")
            .then(|| token.to_owned())
            .or_else(|| env(name))
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let started = start(config.clone(), clock, Stop::new(), Stop::new(), &only_token)
        .map_err(|error| failed(&error))?;
    let bounds = Bounds {
        max_time: Duration::from_secs(300),
        max_reviews: None,
    };
    cycle(started, bounds).map_err(|error| failed(&error))
}

fn open_pull(double: &Double, sample: &Sample) -> i64 {
    double.open_pull(
        REPO,
        NewPull {
            author: AUTHOR.to_owned(),
            title: sample.title.clone(),
            body: sample.body.clone(),
            head_ref: sample.head_branch.clone(),
            base_ref: sample.base_branch.clone(),
            draft: false,
        },
    )
}

fn show_ledger(config: &Config) -> Result<(), Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::new(Exit::Failure, error);
    let mut store = Store::open_existing(&config.store_path).map_err(|error| failed(&error))?;
    let rows = store
        .read(|txn| ledger::newest(txn, 1))
        .map_err(|error| failed(&error))?;
    for row in rows {
        print(&format!(
            "\nThe ledger row: {} reserved, {} used ({}), engine {}, mode {}, {}\n",
            row.reserved,
            row.used.unwrap_or_default(),
            row.confidence.as_deref().unwrap_or("open"),
            row.engine.as_deref().unwrap_or("-"),
            row.mode,
            row.reason.as_deref().unwrap_or("open"),
        ))?;
    }
    Ok(())
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
