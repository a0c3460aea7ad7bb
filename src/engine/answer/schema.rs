//! The form of an answer, for engines that are told one.

use serde_json::{Value, json};

use super::{MAX_FINDINGS, MAX_PRIORITY_FILES, Severity};

/// The JSON schema of an answer. It asks for `head` and `nonce` as plain strings and doesn't hold
/// them: only who has read the request can repeat them.
pub fn schema() -> Value {
    let severities = Severity::ALL.map(Severity::as_str);
    let finding = json!({
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
    });
    let assessment = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["effort", "risk", "recommendation", "priority_files"],
        "properties": {
            "effort": {"type": "integer", "minimum": 1, "maximum": 5,
                "description": "Effort of a human review, from 1 (a glance) to 5 (a day)."},
            "risk": {"type": "string", "description": "What could go wrong, one line."},
            "recommendation": {"type": "string", "description": "What to do, one line."},
            "priority_files": {"type": "array", "maxItems": MAX_PRIORITY_FILES,
                "items": {"type": "string"}, "description": "Files to read first."},
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["head", "nonce", "findings", "assessment"],
        "properties": {
            "head": {"type": "string", "description": "The head that the request names."},
            "nonce": {"type": "string", "description": "The nonce that the request names."},
            "findings": {"type": "array", "maxItems": MAX_FINDINGS, "items": finding},
            "assessment": assessment,
        },
    })
}
