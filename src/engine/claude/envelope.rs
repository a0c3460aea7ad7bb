//! The JSON object with which the tool ends.
//!
//! Neither the exit code nor `subtype` alone says how a run ended: an HTTP error is a `success` with
//! `is_error`, and a run without an answer is a plain success without `structured_output`. Texts are
//! compared only where the tool itself wrote them: in `errors`, and in `result` of an envelope with
//! `is_error`. What a model wrote decides nothing.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::failure::{EngineFailure, ErrorKind};
use super::super::{Usage, unavailable};
use crate::ids::Tokens;
use crate::output::clip;

#[derive(Deserialize)]
pub(super) struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: String,
    /// Not given counts as true.
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    api_error_status: Option<u16>,
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    terminal_reason: Option<String>,
    #[serde(default)]
    total_cost_usd: Option<f64>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default, rename = "modelUsage")]
    model_usage: Map<String, Value>,
    #[serde(default)]
    pub(super) structured_output: Option<Value>,
}

/// The counters of `usage`.
const TURN_COUNTERS: [&str; 4] = [
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
];

/// The same counters in `modelUsage`.
const MODEL_COUNTERS: [&str; 4] = [
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
];

impl Envelope {
    /// The envelope in the tool's output: the whole of it, or the last line of a stream of events.
    pub(super) fn find(stdout: &[u8]) -> Option<Self> {
        let whole = stdout.trim_ascii();
        let last = || whole.rsplit(|&byte| byte == b'\n').next();
        serde_json::from_slice(whole)
            .ok()
            .or_else(|| serde_json::from_slice(last()?).ok())
            .filter(|envelope: &Self| envelope.kind == "result")
    }

    /// What was used. `usage` can miss turns and `modelUsage` can be empty: the larger sum counts.
    ///
    /// A failure inside the service's answer is reported as zero although tokens were used. Zero is
    /// believed only where the request was turned away before a model saw it.
    pub(super) fn usage(&self) -> Usage {
        let turns = self
            .usage
            .as_ref()
            .map_or(0, |usage| sum(usage, TURN_COUNTERS));
        let models = self.model_usage.values();
        let models = models.fold(0, |total: u64, usage| {
            total.saturating_add(sum(usage, MODEL_COUNTERS))
        });
        let total = turns.max(models);
        let turned_away = match self.api_error_status {
            Some(status) => matches!(status, 400..=499 | 529),
            None => self.not_logged_in() || self.says_usage_limit(),
        };
        if total == 0 && !(self.is_error() && turned_away) {
            return Usage::UNKNOWN;
        }
        let micro = self.total_cost_usd.map(|usd| (usd * 1e6).round());
        Usage {
            tokens: Some(Tokens(total)),
            // A cast of a float to an integer saturates and takes what isn't a number for zero.
            cost_microusd: micro.filter(|usd| *usd >= 0.0).map(|usd| usd as u64),
        }
    }

    /// The model that did the most.
    pub(super) fn model(&self) -> Option<String> {
        let busiest = self
            .model_usage
            .iter()
            .max_by_key(|(_, usage)| sum(usage, MODEL_COUNTERS));
        busiest.map(|(name, _)| clip(name))
    }

    /// Why there is no answer to read; `None` when the tool says that there is one.
    pub(super) fn failure(&self, usage: Usage) -> Option<EngineFailure> {
        if !self.is_error() && self.subtype == "success" {
            return None;
        }
        let message = self.message();
        let error = |kind| EngineFailure::Error {
            kind,
            message: message.clone(),
        };
        let nothing_spent = usage.tokens == Some(Tokens::ZERO);
        // An unavailable engine is settled at zero: only where zero is what was measured.
        let refused = |remedy: &str| {
            if nothing_spent {
                unavailable(message.clone(), remedy)
            } else {
                EngineFailure::Error {
                    kind: ErrorKind::Rejected,
                    message: format!("{message}; {remedy}"),
                }
            }
        };
        Some(match self.api_error_status {
            _ if self.subtype == "error_max_turns" => error(ErrorKind::ToolLimit),
            _ if self.subtype.contains("budget") => error(ErrorKind::ToolLimit),
            _ if self.subtype == "error_max_structured_output_retries" => error(ErrorKind::Answer),
            _ if self.stop_reason.as_deref() == Some("refusal") => error(ErrorKind::Refusal),
            _ if self.prompt_too_long() => error(ErrorKind::PromptTooLong),
            Some(400 | 402 | 429) if self.says_usage_limit() => {
                EngineFailure::UsageLimit { message }
            }
            Some(401 | 403) => refused("give the engine a valid key or login"),
            Some(400 | 402) if self.says("credit balance") => {
                refused("add credit to the engine's account")
            }
            Some(404) => refused("set engine.model to a model that the account may use"),
            Some(408 | 409 | 429 | 500..) => error(ErrorKind::Service),
            Some(_) => error(ErrorKind::Rejected),
            None if self.not_logged_in() => {
                refused("set ANTHROPIC_API_KEY for prwarden, or log in as its account")
            }
            None if self.says("output token maximum") => error(ErrorKind::OutputTooLong),
            // Without a status the text might be a model's, unless no model has said anything.
            None if nothing_spent && self.says_usage_limit() => {
                EngineFailure::UsageLimit { message }
            }
            None => error(ErrorKind::Crashed),
        })
    }

    fn is_error(&self) -> bool {
        self.is_error != Some(false)
    }

    fn prompt_too_long(&self) -> bool {
        self.terminal_reason.as_deref() == Some("prompt_too_long")
            || (self.api_error_status == Some(400) && self.says("prompt is too long"))
    }

    fn not_logged_in(&self) -> bool {
        self.api_error_status.is_none() && self.says("not logged in")
    }

    /// The forms in which a plan's or an account's limit has been reported; a limit of the rate
    /// passes within a minute and is another thing.
    fn says_usage_limit(&self) -> bool {
        [
            "usage limit",
            "hit your limit",
            "session limit",
            "weekly limit",
            "5-hour limit",
            "spend limit",
            "spending limit",
        ]
        .iter()
        .any(|words| self.says(words))
    }

    /// Whether the tool's own error text holds `words` (lower case).
    fn says(&self, words: &str) -> bool {
        let result = self.result.iter().filter(|_| self.is_error());
        self.errors
            .iter()
            .chain(result)
            .any(|text| text.to_lowercase().contains(words))
    }

    /// The tool's own error text, for a log line.
    fn message(&self) -> String {
        match self.errors.first().or(self.result.as_ref()) {
            Some(text) if self.is_error() => clip(text),
            _ => format!("the tool ended with {:?}", clip(&self.subtype)),
        }
    }
}

fn sum(usage: &Value, counters: [&str; 4]) -> u64 {
    let counts = counters.map(|name| usage[name].as_u64().unwrap_or(0));
    counts.into_iter().fold(0, u64::saturating_add)
}
