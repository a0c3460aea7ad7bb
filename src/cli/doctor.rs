//! `prwarden doctor`: what prwarden needs, checked one by one, each with what to do about it.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use super::exit::Exit;
use super::{Ended, Globals, config, env, print};
use crate::clock::{Clock, Stop, SystemClock, Timestamp};
use crate::config::{Config, RepoConfig};
use crate::engine::Engine;
use crate::github::{ApiError, Client, Conditional, Role};
use crate::ids::RepoName;
use crate::store::Store;
use crate::workspace::{Git, Workspace};

/// A clock that is further off than this makes leases and windows wrong.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Pass,
    Warn,
    Fail,
}

/// The lines printed so far, and the worst of them.
struct Report {
    worst: Verdict,
}

impl Report {
    fn line(
        &mut self,
        verdict: Verdict,
        what: &str,
        text: impl Display,
    ) -> Result<(), super::Failed> {
        self.worst = self.worst.max(verdict);
        let word = match verdict {
            Verdict::Pass => "PASS",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
        };
        print(&format!("{word}  {what}: {text}\n"))
    }

    fn result<T: Display, E: Display>(
        &mut self,
        what: &str,
        result: Result<T, E>,
    ) -> Result<(), super::Failed> {
        match result {
            Ok(text) => self.line(Verdict::Pass, what, text),
            Err(error) => self.line(Verdict::Fail, what, error),
        }
    }
}

/// Runs every check; one that fails does not stop the others. Exits with 1 when any failed.
pub(super) fn doctor(globals: &Globals) -> Ended {
    let config = config::load(globals)?;
    let mut report = Report {
        worst: Verdict::Pass,
    };
    let file = config
        .file
        .as_deref()
        .map_or("defaults".into(), |file| file.to_string_lossy());
    report.line(Verdict::Pass, "configuration", file)?;
    if config.repos.is_empty() {
        report.line(
            Verdict::Fail,
            "repositories",
            "none is configured; add a [[repo]] with its name",
        )?;
    }
    check_store(&config, &mut report)?;
    check_workspace(&config, &mut report)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    for repo in &config.repos {
        check_engine(repo, &mut report)?;
        check_github(&config, repo, &clock, &mut report)?;
    }
    Ok(if report.worst == Verdict::Fail {
        Exit::Failure
    } else {
        Exit::Success
    })
}

fn check_store(config: &Config, report: &mut Report) -> Result<(), super::Failed> {
    let path = &config.store_path;
    if !path.exists() {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let writable = nix::unistd::access(
            parent.unwrap_or(std::path::Path::new(".")),
            nix::unistd::AccessFlags::W_OK,
        );
        let text = format!("{} does not exist yet and will be created", path.display());
        let remedy = |errno| {
            format!(
                "{} can't be created: its directory: {errno}",
                path.display()
            )
        };
        return report.result("store", writable.map(|()| text).map_err(remedy));
    }
    let checked = Store::open_existing(path).and_then(|mut store| store.check());
    match checked {
        Ok(problems) if problems.is_empty() => report.line(
            Verdict::Pass,
            "store",
            format!("{} is whole", path.display()),
        ),
        Ok(problems) => {
            for problem in problems {
                report.line(Verdict::Fail, "store", problem)?;
            }
            Ok(())
        }
        Err(error) => report.line(Verdict::Fail, "store", error),
    }
}

fn check_workspace(config: &Config, report: &mut Report) -> Result<(), super::Failed> {
    let git = Git::find(&config.workspace.git);
    let git = git.map(|git| format!("{} ({})", git.version(), git.path().display()));
    report.result("git", git)?;
    let workspace = Workspace::open(&config.workspace, None);
    let space = workspace.and_then(|workspace| {
        workspace.need_space(0)?;
        Ok(format!(
            "{} is ours, with room",
            config.workspace.cache_dir.display()
        ))
    });
    report.result("cache directory", space)
}

fn check_engine(repo: &RepoConfig, report: &mut Report) -> Result<(), super::Failed> {
    let what = format!("{}: engine", repo.name);
    let supervisor = std::env::current_exe().unwrap_or_default();
    let engine = Engine::new(&repo.rules.engine, &supervisor);
    let checked = engine
        .preflight(&std::env::temp_dir(), &Stop::new())
        .map(|()| engine.name());
    report.result(&what, checked)
}

fn check_github(
    config: &Config,
    repo: &RepoConfig,
    clock: &Arc<dyn Clock>,
    report: &mut Report,
) -> Result<(), super::Failed> {
    let name = &repo.name;
    let source = repo.token.as_ref().unwrap_or(&config.github.token);
    let token = match source.resolve(&env) {
        Ok(token) => token,
        Err(error) => return report.line(Verdict::Fail, &format!("{name}: token"), error),
    };
    let client = Client::new(&config.github, token, Arc::clone(clock), Stop::new());
    let account = client.me();
    let found = account.is_ok();
    report.result(
        &format!("{name}: account"),
        account.map(|me| format!("{} (id {})", me.login, me.id)),
    )?;
    if !found {
        return Ok(());
    }
    let repository = client.repository(name);
    match repository {
        Ok(repository) if repository.full_name != *name => report.line(
            Verdict::Warn,
            &format!("{name}: repository"),
            format!(
                "is called {} now; change its name in the configuration",
                repository.full_name
            ),
        )?,
        other => report.result(
            &format!("{name}: repository"),
            other.map(|repository| format!("id {}", repository.id)),
        )?,
    }
    check_conditional(&client, name, &**clock, report)?;
    let rate = client.rate();
    match (rate.remaining, rate.limit) {
        (Some(remaining), Some(limit)) => {
            let verdict = if remaining <= 50 {
                Verdict::Warn
            } else {
                Verdict::Pass
            };
            report.line(
                verdict,
                &format!("{name}: rate limit"),
                format!("{remaining} of {limit} requests left"),
            )
        }
        _ => report.line(
            Verdict::Pass,
            &format!("{name}: rate limit"),
            "the server names none",
        ),
    }
}

/// A repeated request must cost nothing: a proxy that strips ETags is found here. The same answer
/// shows how far our clock is off.
fn check_conditional(
    client: &Client,
    name: &RepoName,
    clock: &dyn Clock,
    report: &mut Report,
) -> Result<(), super::Failed> {
    let what = format!("{name}: conditional requests");
    let path = format!("/repos/{name}/pulls?state=open&sort=created&direction=desc&per_page=100");
    let fresh = match client.list(&path, None, Role::Poll) {
        Ok(Conditional::Fresh(page)) => page,
        Ok(Conditional::NotModified { .. }) => {
            return report.line(Verdict::Warn, &what, "a 304 came without being asked for");
        }
        Err(error) => return report.line(Verdict::Fail, &what, error),
    };
    if let Some(date) = fresh.date {
        report_clock(date, clock.now(), name, report)?;
    }
    let Some(etag) = fresh.etag else {
        return report.line(
            Verdict::Warn,
            &what,
            "the response has no ETag: a proxy in between may strip it, and every poll costs a request",
        );
    };
    let repeated: Result<Conditional, ApiError> = client.list(&path, Some(&etag), Role::Poll);
    match repeated {
        Ok(Conditional::NotModified { .. }) => {
            report.line(Verdict::Pass, &what, "a repeat costs nothing (304)")
        }
        Ok(Conditional::Fresh(_)) => report.line(
            Verdict::Warn,
            &what,
            "a repeat was answered in full: a proxy in between may strip If-None-Match",
        ),
        Err(error) => report.line(Verdict::Fail, &what, error),
    }
}

fn report_clock(
    theirs: Timestamp,
    ours: Timestamp,
    name: &RepoName,
    report: &mut Report,
) -> Result<(), super::Failed> {
    let off = theirs.since(ours).max(ours.since(theirs));
    let verdict = if off > CLOCK_TOLERANCE {
        Verdict::Warn
    } else {
        Verdict::Pass
    };
    let advice = if verdict == Verdict::Warn {
        "; set this host's clock (NTP)"
    } else {
        ""
    };
    report.line(
        verdict,
        &format!("{name}: clock"),
        format!("{} s from GitHub's{advice}", off.as_secs()),
    )
}
