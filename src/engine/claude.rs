//! The `claude` command-line tool (Claude Code), run once without a terminal.
//!
//! The tool enforces the answer's schema and can use only `Read`, `Grep` and `Glob`. Nothing of the
//! checkout configures it: no settings, hooks, MCP servers or `CLAUDE.md`. How a run ended is decided
//! by its envelope alone ([`envelope`]).

mod envelope;

use std::ffi::OsString;

use super::answer::{self, Answer, Expected};
use super::environment::{Environment, Lookup};
use super::failure::{EngineFailure, ErrorKind};
use super::{Outcome, Task, Usage};
use crate::config::EngineConfig;
use crate::ids::MicroUsd;
use crate::process::Finished;
use crate::secret::Secret;
use envelope::Envelope;

/// The program's usual name.
pub(super) const NAME: &str = "claude";

/// Flags that keep the tool to what it is meant to do. `--help` has to list each; an engine that has
/// lost one is not started.
pub(super) const CONTAINMENT: [&str; 8] = [
    "--print",
    "--output-format",
    "--json-schema",
    "--tools",
    "--strict-mcp-config",
    "--setting-sources",
    "--permission-mode",
    "--no-session-persistence",
];

/// Variables that carry the account; any of them makes a login in `HOME` unnecessary.
const CREDENTIALS: [&str; 3] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Other variables of the tool that are passed on.
const VARIABLES: [&str; 3] = [
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CONFIG_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Attempts that the tool makes by itself after the first. Its own default goes on silently for
/// minutes; the queue tries again later instead.
const RETRIES: &str = "2";

/// The arguments. The operator's come first: where one is given twice, ours, the later, holds. `money`
/// is the most that the run may cost, zero for no limit; the tool stops after it was passed.
pub(super) fn args(config: &EngineConfig, task: Task<'_>, money: MicroUsd) -> Vec<OsString> {
    let schema = answer::schema(task).to_string();
    let mut args: Vec<OsString> = vec!["--print".into()];
    args.extend(config.args.iter().map(OsString::from));
    if let Some(model) = &config.model {
        args.extend(["--model".into(), model.into()]);
    }
    args.extend(["--output-format", "json", "--json-schema", &schema].map(OsString::from));
    args.extend(["--tools", "Read,Grep,Glob", "--strict-mcp-config"].map(OsString::from));
    args.extend(["--setting-sources", ""].map(OsString::from));
    args.extend(["--permission-mode", "dontAsk"].map(OsString::from));
    args.push("--no-session-persistence".into());
    if money > MicroUsd::ZERO {
        let dollars = money.to_string();
        let dollars = dollars.trim_start_matches('$');
        args.extend(["--max-budget-usd", dollars].map(OsString::from));
    }
    args
}

/// The environment. Without a credential in it, the login is where the daemon's account has it.
pub(super) fn environment(
    lookup: &Lookup,
    scratch: &std::ffi::OsStr,
    configured: &[String],
    tokens: &[Secret],
) -> Environment {
    let known = CREDENTIALS.iter().chain(&VARIABLES).copied();
    let names = known.chain(configured.iter().map(String::as_str));
    let mut environment = Environment::new(lookup, scratch, names, tokens);
    if !CREDENTIALS.iter().any(|name| environment.has(name))
        && let Some(home) = lookup("HOME")
    {
        environment.set("HOME", home);
    }
    environment.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    environment.set("CLAUDE_CODE_MAX_RETRIES", RETRIES);
    environment.set("DISABLE_AUTOUPDATER", "1");
    environment
}

/// What a finished run says.
pub(super) fn read(finished: &Finished, expected: &Expected<'_>) -> Outcome {
    let Some(envelope) = Envelope::find(&finished.stdout) else {
        return Outcome {
            result: Err(super::crashed(finished, "without a result")),
            usage: Usage::UNKNOWN,
            model: None,
        };
    };
    let usage = envelope.usage();
    let model = envelope.model();
    let result = match envelope.failure(usage) {
        Some(failure) => Err(failure),
        None if finished.code != Some(0) => {
            Err(super::crashed(finished, "although its result is a success"))
        }
        None => match envelope.structured_output {
            Some(value) => Answer::read(value, expected).map_err(super::no_answer),
            None => Err(EngineFailure::Error {
                kind: ErrorKind::Answer,
                message: "the model ended without giving its answer in the required structure"
                    .to_owned(),
            }),
        },
    };
    Outcome {
        result,
        usage,
        model,
    }
}

#[cfg(test)]
mod tests;
