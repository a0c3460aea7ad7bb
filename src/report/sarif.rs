//! A local review as SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/>), for code
//! scanning tools.

use serde_json::{Value, json};

use super::LocalReport;
use crate::findings::{Finding, Severity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The log, on lines, with a newline at the end.
pub fn render(report: &LocalReport<'_>) -> String {
    let mut rules: Vec<&str> = report.findings.iter().map(rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> = rules.into_iter().map(|id| json!({ "id": id })).collect();
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "prwarden",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn rule(finding: &Finding) -> &str {
    finding.rule.as_deref().unwrap_or("review")
}

fn result(finding: &Finding) -> Value {
    let level = match finding.severity {
        Severity::Blocker | Severity::Major => "error",
        Severity::Minor => "warning",
        Severity::Nit => "note",
    };
    let mut location = json!({ "artifactLocation": { "uri": uri(&finding.path) } });
    if let Some(line) = finding.line {
        location["region"] = json!({ "startLine": line });
    }
    json!({
        "ruleId": rule(finding),
        "level": level,
        "message": { "text": format!("{}. {}", finding.title, finding.body) },
        "locations": [{ "physicalLocation": location }],
        "properties": { "severity": finding.severity.as_str() },
    })
}

/// A path as a relative URI reference (RFC 3986, 4.2).
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
