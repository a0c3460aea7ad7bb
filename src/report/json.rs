//! A local review as one JSON object.

use serde_json::json;

use super::LocalReport;

/// The object, on lines, with a newline at the end. Its `version` changes when a field changes its
/// meaning.
pub fn render(report: &LocalReport<'_>) -> String {
    let change = report.change;
    let object = json!({
        "version": 1,
        "base": change.base,
        "head": change.head,
        "commits": change.commits,
        "files": change.files.len(),
        "lines": change.lines,
        "engine": report.engine,
        "findings": report.findings,
        "assessment": report.assessment,
        "omitted": change.omitted,
    });
    format!("{object:#}\n")
}
