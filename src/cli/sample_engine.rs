//! The demo's engine: a real `command` engine, small enough to read, that knows one thing.
//!
//! It looks for loops whose inclusive range ends at a length, the classic off-by-one. The rule is too
//! often wrong in real code to be one of the built-in checks; in the demo it stands in for a model,
//! so that the demo needs neither a token nor a network. It counts the words it reads as tokens.

use std::io::{self, Read};

use regex::Regex;
use serde::Deserialize;
use serde_json::json;

use super::exit::{Exit, Failed};
use super::{Ended, print};

/// The part of a request that this engine reads; the contract is in prwarden-engine(7).
#[derive(Debug, Deserialize)]
struct Request {
    head: String,
    nonce: String,
    diff: String,
}

/// Reads one request on stdin and answers on stdout.
pub(super) fn run() -> Ended {
    let failed = |error: &dyn std::fmt::Display| Failed::new(Exit::Failure, error);
    let mut input = String::new();
    io::stdin()
        .read_to_string(&mut input)
        .map_err(|error| failed(&error))?;
    let request: Request = serde_json::from_str(&input).map_err(|error| failed(&error))?;
    let rule = Regex::new(r"(\.\.=\s*[\w.]+\.len\(\))|(range\([^)]*len\([^)]*\)\s*\+\s*1\))")
        .map_err(|error| failed(&error))?;
    let findings: Vec<_> = added_lines(&request.diff)
        .filter(|line| rule.is_match(line.text))
        .map(|line| {
            json!({
                "path": line.path,
                "line": line.number,
                "severity": "major",
                "title": "The loop runs one step too far",
                "body": "The range includes the length itself, but the last index is the length \
                         minus one: the final step reads past the end. Use the exclusive range.",
            })
        })
        .collect();
    let (risk, recommendation) = if findings.is_empty() {
        (
            "No loop of the change reaches past a length.",
            "Nothing found by this engine.",
        )
    } else {
        (
            "A loop reads past the end of its data.",
            "Correct the range before merging.",
        )
    };
    let answer = json!({
        "head": request.head,
        "nonce": request.nonce,
        "findings": findings,
        "assessment": {
            "effort": 1, "risk": risk, "recommendation": recommendation, "priority_files": [],
        },
        "usage": { "input_tokens": input.split_whitespace().count(), "output_tokens": 0 },
    });
    print(&format!("{answer}\n"))?;
    Ok(Exit::Success)
}

struct Added<'a> {
    path: &'a str,
    number: u32,
    text: &'a str,
}

/// The added lines of a unified diff with their places in the head.
fn added_lines(diff: &str) -> impl Iterator<Item = Added<'_>> {
    let (mut path, mut number, mut in_hunk) = ("", 0, false);
    diff.lines().filter_map(move |line| {
        if let Some(hunk) = line.strip_prefix("@@ ") {
            let start = hunk
                .split_once('+')
                .and_then(|(_, new)| new.split([',', ' ']).next());
            number = start.and_then(|digits| digits.parse().ok()).unwrap_or(0);
            in_hunk = true;
            return None;
        }
        if line.starts_with("diff --git ") {
            in_hunk = false;
        }
        if !in_hunk {
            if let Some(new) = line.strip_prefix("+++ b/") {
                path = new;
            }
            return None;
        }
        let this = number;
        match line.as_bytes().first() {
            Some(b'+') => {
                number += 1;
                Some(Added {
                    path,
                    number: this,
                    text: &line[1..],
                })
            }
            Some(b' ') | None => {
                number += 1;
                None
            }
            _ => None,
        }
    })
}
