//! The built-in checks: deterministic, on the added lines, without network or tokens.
//!
//! They are meant to be right whenever they speak: what is often wrong is left out. Each finding says
//! why it is one and what to do, and none repeats a secret.

pub mod credentials;
mod describe;
mod files;
pub mod place;
pub mod private_key;
mod text;
mod workflows;

#[cfg(test)]
mod tests;

pub use describe::describe;

use crate::findings::{Finding, Severity};
use crate::workspace::{Change, FileChange};

/// Findings of one rule in one file above this number are summed up.
const PER_RULE_AND_FILE: usize = 10;

/// Every finding in the change, in the order of its files and lines.
pub fn check(change: &Change) -> Vec<Finding> {
    change.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &FileChange) -> Vec<Finding> {
    let mut found = files::check(file);
    found.extend(credentials::check(file));
    found.extend(text::check(file));
    found.extend(workflows::check(file));
    found.sort_by_key(|finding| finding.line);
    let mut kept: Vec<Finding> = Vec::new();
    for finding in found {
        let same = kept
            .iter()
            .filter(|known| known.rule == finding.rule)
            .count();
        if same < PER_RULE_AND_FILE {
            kept.push(finding);
        }
    }
    kept
}

/// A finding of the built-in rule `rule`.
fn finding(
    file: &FileChange,
    line: Option<u32>,
    severity: Severity,
    rule: &str,
    title: impl Into<String>,
    body: impl Into<String>,
) -> Finding {
    Finding {
        path: file.path.to_text(),
        line,
        severity,
        title: title.into(),
        body: body.into(),
        number: None,
        confidence: None,
        rule: Some(rule.to_owned()),
    }
}

/// The lines that are text, as text.
fn texts(file: &FileChange) -> impl Iterator<Item = (u32, std::borrow::Cow<'_, str>)> {
    file.added
        .iter()
        .map(|line| (line.number, String::from_utf8_lossy(&line.text)))
}
