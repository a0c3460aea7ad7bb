//! Workflow files of GitHub Actions that gain power
//! (<https://docs.github.com/actions/security-for-github-actions>).

use std::sync::LazyLock;

use regex::Regex;

use super::{finding, texts};
use crate::findings::{Finding, Severity};
use crate::workspace::FileChange;

/// A scope that may be written, on a line of its own or in braces.
static WRITES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let scopes = "actions|artifact-metadata|attestations|checks|contents|deployments|discussions|\
                  id-token|issues|models|packages|pages|pull-requests|repository-projects|\
                  security-events|statuses";
    let write = format!(r#"["']?(?:{scopes})["']?\s*:\s*["']?write["']?"#);
    Regex::new(&format!(
        r"^\s*(?:{write}|permissions\s*:\s*\{{.*\b{write}.*\}})\s*(?:#.*)?$"
    ))
    .ok()
});

static WRITES_ALL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"^\s*permissions\s*:\s*["']?write-all["']?\s*(?:#.*)?$"#).ok());

/// The event as a key, as an item of a list, or after `on:`.
static TARGET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"^\s*(?:-\s*|["']?on["']?\s*:\s*(?:[\[{].*)?)?["']?\bpull_request_target\b["']?\s*(?:$|[:,\]}#].*)"#,
    )
    .ok()
});

pub(super) fn check(file: &FileChange) -> Vec<Finding> {
    let path = file.path.to_text();
    let is_workflow = path.starts_with(".github/workflows/")
        && (path.ends_with(".yml") || path.ends_with(".yaml"));
    if !is_workflow {
        return Vec::new();
    }
    let matches = |regex: &Option<Regex>, line: &str| {
        regex.as_ref().is_some_and(|regex| regex.is_match(line))
            && !line.trim_start().starts_with('#')
    };
    let mut findings = Vec::new();
    for (number, line) in texts(file) {
        if matches(&TARGET, &line) {
            findings.push(finding(
                file,
                Some(number),
                Severity::Major,
                "workflow/pull-request-target",
                "The workflow runs on pull_request_target",
                "It runs with the repository's secrets and a token that may write, for pull requests of \
                 strangers too. Use `pull_request`, or make sure that nothing of the pull request is \
                 checked out or run.",
            ));
        }
        if matches(&WRITES_ALL, &line) {
            findings.push(finding(
                file,
                Some(number),
                Severity::Major,
                "workflow/write-permission",
                "The workflow gains every write permission",
                "Whoever controls any step of it can change code, releases and settings. Grant the \
                 scopes that are needed to the one job that needs them.",
            ));
        } else if matches(&WRITES, &line) {
            findings.push(finding(
                file,
                Some(number),
                Severity::Minor,
                "workflow/write-permission",
                "The workflow gains a write permission",
                "Whoever controls a step of the job can use it. Grant it to the one job that needs it.",
            ));
        }
    }
    findings
}
