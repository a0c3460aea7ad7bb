//! Credentials that stand in the file although they must not.

use super::error::Wrong;
use super::raw::Report;

/// How tokens of GitHub and of the usual model providers begin.
const PREFIXES: [&str; 8] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "sk-ant-",
    "sk-proj-",
];

/// How many letters and digits after a prefix make it more than a word about tokens.
const LEAST: usize = 16;

/// Refuses every line that holds what looks like a credential, in comments too. The message never
/// shows it.
pub(super) fn refuse(report: &Report<'_>, text: &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if holds_credential(line) {
            let wrong = Wrong::new(
                "a credential stands in this line",
                "remove it, revoke it, and name the place of a new one by github.token_env or \
                 github.token_file (an engine's key: by engine.env)",
            );
            report.error(Some(at), None, wrong);
        }
        at += line.len();
    }
}

fn holds_credential(line: &str) -> bool {
    let token = PREFIXES.iter().any(|prefix| {
        line.match_indices(prefix).any(|(start, _)| {
            let rest = &line[start + prefix.len()..];
            let body = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
            rest.chars().take_while(body).count() >= LEAST
        })
    });
    token || line.contains("PRIVATE KEY-----")
}
