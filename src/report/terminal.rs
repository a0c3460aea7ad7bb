//! A local review for reading in a terminal.

use std::fmt::Write;

use super::sanitise::visible;
use super::{LocalReport, place};
use crate::findings::Severity;
use crate::output::clip;
use crate::output::count;

/// The text; with `colour` the severities stand out.
pub fn render(report: &LocalReport<'_>, colour: bool) -> String {
    let change = report.change;
    let mut text = String::new();
    for severity in Severity::ALL {
        for finding in report
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
        {
            let word = severity.as_str();
            let word = if colour {
                format!("{}{word}\x1b[0m", ansi(severity))
            } else {
                word.to_owned()
            };
            let _ = writeln!(
                text,
                "{word}: {}: {}",
                clip(&place(finding)),
                clip(&finding.title)
            );
            for line in visible(&finding.body).lines() {
                let _ = writeln!(text, "    {line}");
            }
            text.push('\n');
        }
    }
    if let Some(assessment) = report.assessment {
        let (risk, advice) = (clip(&assessment.risk), clip(&assessment.recommendation));
        let _ = writeln!(
            text,
            "effort {} of 5; {risk}; {advice}\n",
            assessment.effort
        );
    }
    let _ = writeln!(
        text,
        "{} in {} ({}..{}, engine {})",
        count(report.findings.len(), "finding"),
        count(change.files.len(), "file"),
        change.base.short(),
        change.head.short(),
        clip(report.engine),
    );
    if !change.omitted.is_empty() {
        let _ = writeln!(
            text,
            "not reviewed: {}",
            count(change.omitted.len(), "file")
        );
    }
    text
}

fn ansi(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocker => "\x1b[1;31m",
        Severity::Major => "\x1b[31m",
        Severity::Minor => "\x1b[33m",
        Severity::Nit => "\x1b[36m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Finding;
    use crate::workspace::Change;

    #[test]
    fn findings_are_listed_gravest_first_and_nothing_in_them_reaches_the_terminal() {
        let finding = |severity, title: &str| Finding {
            path: "src/a.rs".into(),
            line: Some(3),
            severity,
            title: title.into(),
            body: "why\u{1b}[2J\nhow\u{202e}".into(),
            number: None,
            confidence: None,
            rule: None,
        };
        let sha = |digit: &str| digit.repeat(40).parse().unwrap();
        let change = Change {
            base: sha("b"),
            head: sha("a"),
            commits: 1,
            files: vec![],
            patch: vec![],
            lines: 0,
            omitted: vec![],
        };
        let findings = [
            finding(Severity::Nit, "small"),
            finding(Severity::Blocker, "grave\u{7}"),
        ];
        let report = LocalReport {
            change: &change,
            findings: &findings,
            assessment: None,
            engine: "builtin",
        };
        let wanted = "blocker: src/a.rs:3: grave\\u{7}\n    why[U+001B][2J\n    how[U+202E]\n\n\
                      nit: src/a.rs:3: small\n    why[U+001B][2J\n    how[U+202E]\n\n\
                      2 findings in 0 files (bbbbbbbbbb..aaaaaaaaaa, engine builtin)\n";
        assert_eq!(render(&report, false), wanted);
        let coloured = render(&report, true);
        assert!(coloured.starts_with("\u{1b}[1;31mblocker\u{1b}[0m: src/a.rs:3: "));
        assert_eq!(coloured.matches('\u{1b}').count(), 4);
    }
}
