//! The form of an answer, for engines that are told one.

use serde_json::{Map, Value, json};

use super::super::Task;
use super::{MAX_FILES, MAX_FINDINGS, MAX_PRIORITY_FILES, Severity};
use crate::findings::ChangeKind;

/// The JSON schema of an answer to `task`. It asks for `head` and `nonce` as plain strings and doesn't
/// hold them: only who has read the request can repeat them.
pub fn schema(task: Task<'_>) -> Value {
    match task {
        Task::Review => object(&[
            ("head", text(HEAD)),
            ("nonce", text(NONCE)),
            (
                "findings",
                json!({"type": "array", "maxItems": MAX_FINDINGS, "items": finding()}),
            ),
            ("assessment", assessment()),
        ]),
        Task::Describe => object(&[
            ("head", text(HEAD)),
            ("nonce", text(NONCE)),
            (
                "kind",
                json!({"type": "string", "enum": ChangeKind::ALL.map(ChangeKind::as_str)}),
            ),
            ("summary", text("What the change does and why. Markdown.")),
            (
                "files",
                json!({"type": "array", "maxItems": MAX_FILES, "items": object(&[
                    ("path", text("Path from the root of the checkout.")),
                    ("summary", text("What happened in it, one line.")),
                ])}),
            ),
            (
                "testing",
                text("How to try it, or an empty text. Markdown."),
            ),
        ]),
        Task::Ask(_) => object(&[
            ("head", text(HEAD)),
            ("nonce", text(NONCE)),
            ("answer", text("The answer to the question. Markdown.")),
        ]),
    }
}

const HEAD: &str = "The head that the request names.";

const NONCE: &str = "The nonce that the request names.";

fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

/// An object with these properties, all of them required, and no others.
fn object(properties: &[(&str, Value)]) -> Value {
    let required: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let properties = properties.iter().cloned();
    let properties: Map<_, _> = properties
        .map(|(name, what)| (name.to_owned(), what))
        .collect();
    json!({"type": "object", "additionalProperties": false, "required": required,
        "properties": properties})
}

fn finding() -> Value {
    let severities = Severity::ALL.map(Severity::as_str);
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["path", "line", "severity", "title", "body"],
        "properties": {
            "path": {"type": "string", "description": "Path from the root of the checkout."},
            "line": {"type": ["integer", "null"], "minimum": 1,
                "description": "Line in the head; null for the file as a whole."},
            "severity": {"type": "string", "enum": severities},
            "title": {"type": "string", "description": "One line."},
            "body": {"type": "string",
                "description": "What goes wrong, when, and how to mend it. Markdown."},
            "number": {"type": ["integer", "null"], "minimum": 1,
                "description": "The number of the earlier finding that this one repeats, else null."},
            "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        },
    })
}

fn assessment() -> Value {
    object(&[
        (
            "effort",
            json!({"type": "integer", "minimum": 1, "maximum": 5,
                "description": "Effort of a human review, from 1 (a glance) to 5 (a day)."}),
        ),
        ("risk", text("What could go wrong, one line.")),
        ("recommendation", text("What to do, one line.")),
        (
            "priority_files",
            json!({"type": "array", "maxItems": MAX_PRIORITY_FILES,
                "items": {"type": "string"}, "description": "Files to read first."}),
        ),
    ])
}
