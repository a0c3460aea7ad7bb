//! Credentials by their formats: issuers give theirs prefixes and lengths that nothing else has.
//! What is only assigned to a telling name has to look random as well, in a file where a real secret
//! would stand.
//!
//! Patterns work on bytes without Unicode classes, so that the search stays linear and fast on a line
//! of any length; each secret they capture is ASCII, so that ranges are boundaries of characters.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::place::Place;
use super::private_key::KeyReader;
use super::{finding, texts};
use crate::findings::{Finding, Severity};
use crate::workspace::FileChange;

/// How sure a format alone makes us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Nothing else looks like it.
    Format,
    /// The text has to look random, and the file must be one where real secrets stand.
    Guess,
    /// As [`Trust::Guess`], and only in files whose values need no quotation marks.
    UnquotedGuess,
}

/// A kind of credential: rule, name with its article, trust, and a pattern whose group 1 is the
/// secret itself.
type Format = (&'static str, &'static str, Trust, &'static str);

const FORMATS: &[Format] = &[
    (
        "credential/github-token",
        "a GitHub token",
        Trust::Format,
        r"\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b",
    ),
    (
        "credential/gitlab-token",
        "a GitLab token",
        Trust::Format,
        r"\b(gl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{20,64})",
    ),
    (
        "credential/aws-access-key",
        "an AWS access key id",
        Trust::Format,
        r"\b((?:AKIA|ASIA)[A-Z0-9]{16})\b",
    ),
    (
        "credential/aws-secret-key",
        "an AWS secret access key",
        Trust::Format,
        r#"(?i:aws_?secret_?(?:access_?)?key|secretAccessKey)["']?\s*(?::|=|:=|=>)\s*["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
    ),
    (
        "credential/azure-storage-key",
        "an Azure storage key",
        Trust::Format,
        r"AccountKey=([A-Za-z0-9+/]{86}==)",
    ),
    (
        "credential/google-api-key",
        "a Google API key",
        Trust::Format,
        r"\b(AIza[A-Za-z0-9_-]{35})(?:[^A-Za-z0-9_-]|$)",
    ),
    (
        "credential/google-oauth-secret",
        "a Google OAuth client secret",
        Trust::Format,
        r"\b(GOCSPX-[A-Za-z0-9_-]{28})(?:[^A-Za-z0-9_-]|$)",
    ),
    (
        "credential/slack-token",
        "a Slack token",
        Trust::Format,
        r"\b(xox[abeoprs]-[0-9]{8,}-[A-Za-z0-9-]{20,}|xapp-[0-9]-[A-Z0-9]{8,}-[0-9]{8,}-[a-f0-9]{64})",
    ),
    (
        "credential/slack-webhook",
        "a Slack webhook",
        Trust::Format,
        r"(https://hooks\.slack\.com/services/T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,})",
    ),
    (
        "credential/stripe-key",
        "a Stripe live key",
        Trust::Format,
        r"\b([rs]k_live_[A-Za-z0-9]{20,})\b",
    ),
    (
        "credential/npm-token",
        "an npm token",
        Trust::Format,
        r"\b(npm_[A-Za-z0-9]{36})\b",
    ),
    (
        "credential/pypi-token",
        "a PyPI token",
        Trust::Format,
        r"\b(pypi-AgE[A-Za-z0-9_-]{60,})",
    ),
    (
        "credential/rubygems-key",
        "a RubyGems key",
        Trust::Format,
        r"\b(rubygems_[a-f0-9]{48})\b",
    ),
    (
        "credential/docker-token",
        "a Docker Hub token",
        Trust::Format,
        r"\b(dckr_pat_[A-Za-z0-9_-]{27})(?:[^A-Za-z0-9_-]|$)",
    ),
    (
        "credential/digitalocean-token",
        "a DigitalOcean token",
        Trust::Format,
        r"\b(do[opr]_v1_[a-f0-9]{64})\b",
    ),
    (
        "credential/huggingface-token",
        "a Hugging Face token",
        Trust::Format,
        r"\b(hf_[A-Za-z]{34})\b",
    ),
    (
        "credential/anthropic-key",
        "an Anthropic API key",
        Trust::Format,
        r"\b(sk-ant-[a-z]{3,10}[0-9]{2}-[A-Za-z0-9_-]{80,})",
    ),
    (
        "credential/openai-key",
        "an OpenAI API key",
        Trust::Format,
        r"\b(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
    ),
    (
        "credential/sendgrid-key",
        "a SendGrid key",
        Trust::Format,
        r"\b(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})(?:[^A-Za-z0-9_-]|$)",
    ),
    (
        "credential/telegram-token",
        "a Telegram bot token",
        Trust::Format,
        r"\b([0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|$)",
    ),
    (
        "credential/age-key",
        "an age identity",
        Trust::Format,
        r"\b(AGE-SECRET-KEY-1[A-Z0-9]{58})\b",
    ),
    (
        "credential/vault-token",
        "a HashiCorp Vault token",
        Trust::Format,
        r"\b(hv[sb]\.[A-Za-z0-9_-]{90,})",
    ),
    (
        "credential/signed-token",
        "a signed token (JWT)",
        Trust::Guess,
        r#"(?i:authorization|bearer|secret|token|service_role|api_?key)["']?[ \t:=>,(]{1,8}["']?(?i:bearer )?["']?(eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{20,2000})"#,
    ),
    (
        "credential/url-password",
        "a password in an address",
        Trust::Guess,
        r"\b[a-z][a-z0-9+.-]{1,15}://[A-Za-z0-9._~+-]{1,64}:([A-Za-z0-9._~!&()*+,;=^-]{8,128})@[A-Za-z0-9.-]+",
    ),
    (
        "credential/assigned-secret",
        "a secret in an assignment",
        Trust::Guess,
        r#"(?i:password|passwd|passphrase|secret|token|(?:api|access|auth|private|secret|signing|encryption)[_-]?key)["']?[ \t]{0,40}(?::[ \t]{0,8}[A-Za-z&'<>: ]{1,24}=|:=|=>|:|=)[ \t]{0,40}["'`]([A-Za-z0-9+/=_.!@#%^&*~-]{16,128})["'`]"#,
    ),
    (
        "credential/assigned-secret",
        "a secret in an assignment",
        Trust::UnquotedGuess,
        r"^[+ -]?[ \t]*(?:export[ \t]+|- )?[A-Za-z0-9_.-]{0,60}(?i:password|passwd|passphrase|secret|token|(?:api|access|auth|private|secret|signing|encryption)[_-]?key)[ \t]*[:=][ \t]*([A-Za-z0-9+/=_.!@#%^&*~-]{16,128})[ \t]*(?:#.*)?$",
    ),
];

/// A compiled [`Format`].
struct Kind {
    rule: &'static str,
    name: &'static str,
    trust: Trust,
    regex: Regex,
}

/// Compiled once. A format that does not compile would be a slip of this file, which a test finds.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let compiled = FORMATS.iter().map(|&(rule, name, trust, format)| {
        let regex = RegexBuilder::new(format).unicode(false).build();
        regex.map(|regex| Kind {
            rule,
            name,
            trust,
            regex,
        })
    });
    compiled.filter_map(Result::ok).collect()
});

/// A credential in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its bytes in the line.
    pub range: Range<usize>,
    /// The rule that found it.
    pub rule: &'static str,
    /// What it is, with its article.
    pub name: &'static str,
}

/// The credentials in one line of a file at `place`, without overlaps, in order. The line may have
/// the first column of a diff. Private keys span lines: [`KeyReader`] finds them.
pub fn find(line: &str, place: Place) -> Vec<Credential> {
    // By their start; what is found first, by the more certain format, wins.
    let mut found: BTreeMap<usize, Credential> = BTreeMap::new();
    for kind in KINDS.iter().filter(|kind| applies(kind.trust, place)) {
        for captures in kind.regex.captures_iter(line.as_bytes()) {
            let Some(secret) = captures.get(1) else {
                continue;
            };
            let Some(text) = line.get(secret.range()) else {
                continue;
            };
            let before = found.range(..secret.end()).next_back();
            let overlaps = before.is_some_and(|(_, known)| known.range.end > secret.start());
            let name = captures.get(0).map_or("", |all| &line[..all.start()]);
            let public = kind.trust != Trust::Format && names_public_value(name);
            if !overlaps && !public && is_real(kind, text, &line[secret.end()..]) {
                let credential = Credential {
                    range: secret.range(),
                    rule: kind.rule,
                    name: kind.name,
                };
                found.insert(secret.start(), credential);
            }
        }
    }
    found.into_values().collect()
}

fn applies(trust: Trust, place: Place) -> bool {
    match trust {
        Trust::Format => true,
        Trust::Guess => !place.example,
        Trust::UnquotedGuess => !place.example && place.unquoted,
    }
}

pub(super) fn check(file: &FileChange) -> Vec<Finding> {
    let place = Place::of(&file.path.to_text());
    let mut findings = Vec::new();
    let mut keys = KeyReader::default();
    let mut key = None;
    let mut last = None;
    for (number, line) in texts(file) {
        if last.is_some_and(|last: u32| last.checked_add(1) != Some(number)) {
            keys = KeyReader::default();
        }
        last = Some(number);
        let read = keys.read(&line);
        if read.begins {
            key = Some(number);
        }
        if read.is_key
            && let Some(begin) = key.take()
        {
            findings.push(leak(
                file,
                place,
                begin,
                "credential/private-key",
                "a private key",
            ));
        }
        for credential in find(&line, place) {
            let known = findings.last().is_some_and(|last: &Finding| {
                last.line == Some(number) && last.rule.as_deref() == Some(credential.rule)
            });
            if !known {
                findings.push(leak(file, place, number, credential.rule, credential.name));
            }
        }
    }
    findings
}

fn leak(file: &FileChange, place: Place, line: u32, rule: &str, name: &str) -> Finding {
    let severity = match (place.example, rule) {
        (false, _) => Severity::Blocker,
        // Tests of cryptography need keys of their own.
        (true, "credential/private-key") => Severity::Minor,
        (true, _) => Severity::Major,
    };
    finding(
        file,
        Some(line),
        severity,
        rule,
        format!("This line holds {name}"),
        "Everybody who can read the repository can use it, and it stays in the history when the line \
         is removed. Revoke it at its issuer, then load the new one from the environment or a secret \
         store. If it was made up, write `EXAMPLE` into it, so that nobody has to wonder.",
    )
}

/// Placeholders, examples and repeated characters have the shape of a secret without being one.
fn is_real(kind: &Kind, secret: &str, after: &str) -> bool {
    const PLACEHOLDERS: [&str; 16] = [
        "example",
        "sample",
        "dummy",
        "placeholder",
        "changeme",
        "change_me",
        "change-me",
        "xxxx",
        "redacted",
        "insert",
        "replace",
        "....",
        "****",
        "1234567890",
        "abcdefgh",
        "0123456",
    ];
    let lower = secret.to_ascii_lowercase();
    if PLACEHOLDERS.iter().any(|word| lower.contains(word)) {
        return false;
    }
    match (kind.trust, kind.rule) {
        (Trust::Format, _) => entropy(secret) >= 2.5,
        (_, "credential/signed-token") => is_secret_jwt(secret),
        (_, "credential/url-password") => looks_random(secret) && !is_local(after),
        (..) => looks_random(secret),
    }
}

/// Whether the name that ends before `token` or `key` says that its value is no secret.
fn names_public_value(before: &str) -> bool {
    const PUBLIC: [&str; 9] = [
        "continuation",
        "page",
        "next",
        "cursor",
        "sync",
        "public",
        "pagination",
        "csrf",
        "pad",
    ];
    let name = before.trim_end_matches(['_', '-']);
    PUBLIC.iter().any(|word| {
        let tail = name.len().checked_sub(word.len());
        let tail = tail.and_then(|start| name.get(start..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word))
    })
}

/// The token of the format's own documentation is public.
fn is_secret_jwt(token: &str) -> bool {
    // `{"sub":"1234567890"` in base64.
    !token.contains("eyJzdWIiOiIxMjM0NTY3ODkwI") && entropy(token) >= 4.0
}

/// Whether what follows an address's password is a host that only the developer reaches.
fn is_local(after: &str) -> bool {
    let host = after.trim_start_matches('@').to_ascii_lowercase();
    [
        "localhost",
        "127.",
        "0.0.0.0",
        "example.",
        "host.docker.internal",
    ]
    .iter()
    .any(|local| host.starts_with(local))
        || [".example.", ".example/", ".test/", ".invalid"]
            .iter()
            .any(|part| host.contains(part))
}

/// Whether a text is a random one rather than a name, a path, a phrase, a hash or a version: letters
/// and digits are mixed, and the kind of character changes often.
fn looks_random(text: &str) -> bool {
    const NAMES: [&str; 14] = [
        "your", "fake", "test", "todo", "secret", "passw", "token", "mock", "demo", "qwerty",
        "foobar", "some", "${", "%s",
    ];
    let lower = text.to_ascii_lowercase();
    let mixed =
        text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic());
    let is_digest = ["sha1-", "sha256-", "sha384-", "sha512-", "md5-"]
        .iter()
        .any(|name| lower.starts_with(name));
    mixed
        && !is_digest
        && !NAMES.iter().any(|name| lower.contains(name))
        && !is_hex_or_dotted(text)
        && entropy(text) >= 3.3
        && changes(text) * 4 >= text.len()
}

/// Hashes, UUIDs, versions and dotted names are long and mixed, but public.
fn is_hex_or_dotted(text: &str) -> bool {
    let all_hex = text
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || b"-._".contains(&byte));
    let dotted = text.contains('.') && !text.bytes().any(|byte| b"+/=!@#%^&*~".contains(&byte));
    all_hex || dotted
}

/// How often the kind of character (lower, upper, digit, other) changes, apart from what joins words:
/// separators, and the first letter of a word in `CamelCase`.
fn changes(text: &str) -> usize {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let joined = text
        .bytes()
        .filter(|byte| !b"-_./".contains(byte))
        .map(kind);
    let pairs = joined.clone().zip(joined.skip(1));
    pairs
        .filter(|pair| pair.0 != pair.1 && *pair != (1, 0))
        .count()
}

/// Shannon's entropy in bits for each character.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len() as f64;
    let bits = |count: &u32| {
        let part = f64::from(*count) / length;
        -part * part.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

#[cfg(test)]
pub(super) fn compiled_formats() -> (usize, usize) {
    (KINDS.len(), FORMATS.len())
}
