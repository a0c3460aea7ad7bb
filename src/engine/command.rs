//! Any program as an engine.
//!
//! It gets one JSON object on standard input and writes one on standard output, in the root of the
//! checkout as its working directory. Standard error is for people and is kept only for error
//! messages.
//!
//! # Input
//! | field | what |
//! | --- | --- |
//! | `version` | of this contract, 1 |
//! | `task` | `review`, `describe` or `ask` |
//! | `question` | the question of an `ask`, untrusted; else null |
//! | `repo`, `pr` | `owner/name` and number; null for a change that isn't a pull request |
//! | `title`, `author`, `base_ref` | as people wrote them; untrusted |
//! | `base`, `head` | the merge base and the commit under review |
//! | `nonce` | to be repeated in the answer |
//! | `mode` | `full`, or `focused` (also under the names of the tighter rungs): correctness and security only |
//! | `language`, `instructions` | the operator's; null when not configured |
//! | `prompt` | the whole request as one text for a model; it contains the diff |
//! | `schema` | the JSON schema of the answer without the optional fields below |
//! | `diff` | unified diff in git's format; bytes that are not UTF-8 are U+FFFD, secrets that the built-in checks know are replaced |
//! | `files` | changed files: `{path, old_path, status, binary, added, deleted}` |
//! | `omitted` | changed files left out of the diff: `{path, reason}` |
//! | `standards` | the project's own rules at the merge base: `{path, text}`; untrusted |
//! | `earlier` | findings of earlier rounds: `{number, severity, path, line, title}` |
//!
//! # Output
//! The answer as `schema` describes it: `head` and `nonce`, and with them `findings` and `assessment`
//! of a review, `kind`, `summary`, `files` and `testing` of a description, or the `answer` to a
//! question. Optionally also
//! - `usage`: `{input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd}`, each
//!   optional; without it the run is charged with its whole reservation;
//! - `model`: the model's name.
//!
//! A program that can't answer writes `{"error": {"kind", "message"}}`, with `usage` and `model` if it
//! likes. Kinds: `usage_limit` (the account is used up), `unavailable` (nothing was begun),
//! `transient` (another attempt may succeed), `permanent`.
//!
//! An exit code other than 0, or any other text on standard output, is a failure whatever else was
//! written.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer::{self, Answer, Expected};
use super::failure::{EngineFailure, ErrorKind};
use super::{EngineRequest, Outcome, Task, Usage, unavailable};
use crate::budget::Mode;
use crate::ids::Tokens;
use crate::output::clip;
use crate::process::Finished;
use crate::workspace::{FileChange, FileStatus};

/// The version of the contract.
const VERSION: u32 = 1;

/// What the program reads.
pub(super) fn input(request: &EngineRequest<'_>, mode: Mode, prompt: &str, patch: &str) -> Vec<u8> {
    let change = request.change;
    let files: Vec<_> = change.files.iter().map(file).collect();
    let earlier = request.earlier.iter().map(|finding| {
        json!({"number": finding.number, "severity": finding.severity, "path": finding.path,
            "line": finding.line, "title": finding.title})
    });
    let question = match request.task {
        Task::Ask(question) => Some(question),
        Task::Review | Task::Describe => None,
    };
    let standards = request.standards.iter();
    let standards = standards.map(|one| json!({"path": one.path, "text": one.text}));
    json!({
        "version": VERSION,
        "task": request.task.as_str(),
        "question": question,
        "repo": request.repo,
        "pr": request.pr,
        "title": request.title,
        "author": request.author,
        "base_ref": request.base_ref,
        "base": change.base,
        "head": change.head,
        "nonce": request.nonce,
        "mode": mode.as_str(),
        "language": request.review.language,
        "instructions": request.review.instructions,
        "prompt": prompt,
        "schema": answer::schema(request.task),
        "diff": patch,
        "files": files,
        "omitted": change.omitted,
        "standards": standards.collect::<Vec<_>>(),
        "earlier": earlier.collect::<Vec<_>>(),
    })
    .to_string()
    .into_bytes()
}

fn file(file: &FileChange) -> Value {
    let status = match file.status {
        FileStatus::Added => "added",
        FileStatus::Modified => "modified",
        FileStatus::Deleted => "deleted",
        FileStatus::Renamed => "renamed",
        FileStatus::Copied => "copied",
        FileStatus::TypeChanged => "type_changed",
    };
    json!({
        "path": file.path.to_text(),
        "old_path": file.old_path.as_ref().map(|path| path.to_text()),
        "status": status,
        "binary": file.binary,
        "added": file.added.len(),
        "deleted": file.deleted,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
    #[serde(default)]
    cost_usd: Option<f64>,
}

impl WireUsage {
    fn measured(&self) -> Usage {
        let counts = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
        ];
        // No count at all is no measurement.
        let tokens = counts.into_iter().flatten().reduce(u64::saturating_add);
        let micro = self.cost_usd.filter(|usd| *usd >= 0.0);
        Usage {
            tokens: tokens.map(Tokens),
            cost_microusd: micro.map(|usd| (usd * 1e6).round() as u64),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireError {
    kind: WireErrorKind,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireErrorKind {
    UsageLimit,
    Unavailable,
    Transient,
    Permanent,
}

impl WireError {
    /// `unavailable` is settled at zero, so it can't be claimed by a run that used something.
    fn failure(self, usage: Usage) -> EngineFailure {
        let message = clip(&self.message);
        let spent = usage.tokens.is_some_and(|tokens| tokens > Tokens::ZERO);
        let error = |kind, message| EngineFailure::Error { kind, message };
        match self.kind {
            WireErrorKind::UsageLimit => EngineFailure::UsageLimit { message },
            WireErrorKind::Unavailable if !spent => {
                unavailable(message, "see the engine's own documentation")
            }
            WireErrorKind::Unavailable | WireErrorKind::Transient => {
                error(ErrorKind::Service, message)
            }
            WireErrorKind::Permanent => error(ErrorKind::Rejected, message),
        }
    }
}

/// What a finished run says.
pub(super) fn read(finished: &Finished, expected: &Expected<'_>) -> Outcome {
    let mut fields: Map<String, Value> = match serde_json::from_slice(&finished.stdout) {
        Ok(fields) => fields,
        Err(error) => {
            let how = if finished.stdout.trim_ascii().is_empty() {
                "without an answer".to_owned()
            } else {
                format!("and its output is not one JSON object: {error}")
            };
            return Outcome {
                result: Err(super::crashed(finished, &how)),
                usage: Usage::UNKNOWN,
                model: None,
            };
        }
    };
    let model = fields.remove("model");
    let model = model.and_then(|name| name.as_str().map(clip));
    let (usage, result) = match optional::<WireUsage>(&mut fields, "usage") {
        Ok(usage) => {
            let usage = usage.map_or(Usage::UNKNOWN, |usage| usage.measured());
            (usage, result(fields, finished, expected, usage))
        }
        Err(failure) => (Usage::UNKNOWN, Err(failure)),
    };
    Outcome {
        result,
        usage,
        model,
    }
}

fn result(
    mut fields: Map<String, Value>,
    finished: &Finished,
    expected: &Expected<'_>,
    usage: Usage,
) -> Result<answer::Parsed, EngineFailure> {
    if let Some(error) = optional::<WireError>(&mut fields, "error")? {
        return Err(error.failure(usage));
    }
    if finished.code != Some(0) {
        return Err(super::crashed(finished, "although it wrote an answer"));
    }
    Answer::read(Value::Object(fields), expected).map_err(super::no_answer)
}

/// Takes an optional field out of the answer.
fn optional<T: serde::de::DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<T>, EngineFailure> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value)
                .map(Some)
                .map_err(|error| EngineFailure::Error {
                    kind: ErrorKind::Answer,
                    message: format!("the field {name} doesn't have the required form: {error}"),
                })
        }
    }
}
