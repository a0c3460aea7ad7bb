//! `prwarden review`: a local branch, with no configuration, token, network or store.

use std::io::IsTerminal;
use std::path::Path;

use super::args::{Review, ReviewFormat};
use super::exit::{Exit, Failed};
use super::{Ended, Globals, config, env, print};
use crate::budget::Reservation;
use crate::clock::Stop;
use crate::config::Config;
use crate::engine::answer::{Answer, Assessment, Finding};
use crate::engine::{Engine, EngineRequest, Task, builtin};
use crate::ids::nonce;
use crate::report::{LocalReport, json, layout, sarif, terminal};
use crate::workspace::{self, Git, LocalChange};

/// What a local review found.
struct Reviewed {
    findings: Vec<Finding>,
    assessment: Option<Assessment>,
    engine: String,
}

/// Reviews `base..head` of the working tree around the current directory.
pub(super) fn review(globals: &Globals, args: &Review) -> Ended {
    let config = match Config::locate(globals.config.as_deref()) {
        Some(_) => config::load(globals)?,
        None => {
            let config =
                Config::embedded(&env).map_err(|error| Failed::new(Exit::Config, error))?;
            config::start_log(globals, &config)?;
            config
        }
    };
    let rules = &config.defaults;
    let usage = |error: &dyn std::fmt::Display| Failed::new(Exit::Usage, error);
    let git = Git::find(&config.workspace.git).map_err(|error| usage(&error))?;
    let stop = Stop::new();
    let head = args.head.as_deref();
    let local = workspace::local_change(&git, Path::new("."), &args.base, head, &rules.caps, &stop)
        .map_err(|error| usage(&error))?;
    let reviewed = ask(&config, &local, &stop)?;
    let report = LocalReport {
        change: &local.change,
        findings: &reviewed.findings,
        assessment: reviewed.assessment.as_ref(),
        engine: &reviewed.engine,
    };
    print(&match args.format {
        ReviewFormat::Text => {
            let colour = std::io::stdout().is_terminal() && env("NO_COLOR").is_none();
            terminal::render(&report, colour)
        }
        ReviewFormat::Markdown => layout::render_local(&report),
        ReviewFormat::Json => json::render(&report),
        ReviewFormat::Sarif => sarif::render(&report),
    })?;
    let grave = |finding: &Finding| {
        args.fail_on
            .threshold()
            .is_some_and(|threshold| finding.severity >= threshold)
    };
    Ok(if reviewed.findings.iter().any(grave) {
        Exit::Failure
    } else {
        Exit::Success
    })
}

/// The built-in checks, or the configured engine, whose tokens are the operator's own business.
fn ask(config: &Config, local: &LocalChange, stop: &Stop) -> Result<Reviewed, Failed> {
    let rules = &config.defaults;
    let unavailable = |error: &dyn std::fmt::Display| Failed::new(Exit::Unavailable, error);
    let supervisor = std::env::current_exe().map_err(|error| unavailable(&error))?;
    let engine = Engine::new(&rules.engine, &supervisor);
    if !engine.spends() {
        let findings = builtin::check(&local.change);
        return Ok(Reviewed {
            findings,
            assessment: None,
            engine: "builtin".to_owned(),
        });
    }
    let limit = config
        .budget
        .plan
        .as_ref()
        .map(|plan| plan.max_run_tokens)
        .unwrap_or_default();
    let standards = local
        .standards(&rules.engine.standards_paths, stop)
        .map_err(|error| unavailable(&error))?;
    let tree = local.tree(stop).map_err(|error| unavailable(&error))?;
    let scratch = local.scratch().map_err(|error| unavailable(&error))?;
    let nonce = nonce().map_err(|error| unavailable(&error))?;
    let request = EngineRequest {
        task: Task::Review,
        repo: None,
        pr: None,
        title: "",
        author: "",
        base_ref: "",
        change: &local.change,
        tree: &tree,
        earlier: &[],
        standards: &standards,
        review: &rules.review,
        nonce: &nonce,
        scratch: &scratch,
    };
    let run = engine.run(&Reservation::operator_run(limit), &request, stop);
    let answer = run.outcome.map_err(|error| unavailable(&error))?;
    let Answer::Review(review) = answer else {
        return Err(unavailable(&"the engine gave no review"));
    };
    Ok(Reviewed {
        findings: review.findings,
        assessment: review.assessment,
        engine: run.engine,
    })
}
