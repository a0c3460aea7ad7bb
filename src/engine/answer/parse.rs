//! Reading an answer. An answer that doesn't hold to the form is an error as a whole: what is left of
//! it can't be told from a review that found nothing.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Answer, Assessment, Finding, MAX_BODY, MAX_FINDINGS, MAX_LINE, MAX_PRIORITY_FILES, Severity,
};
use crate::ids::CommitSha;
use crate::output::clip;

/// What an answer has to fit.
pub struct Expected<'a> {
    /// The head under review, which the answer repeats.
    pub head: &'a CommitSha,
    /// The request's nonce, which the answer repeats: proof that the engine has read the request.
    pub nonce: &'a str,
    /// The checkout's root; a path that starts with it counts from there.
    pub root: &'a Path,
    /// Whether the head has a file of this path.
    pub known: &'a dyn Fn(&str) -> bool,
}

/// An answer and what was taken out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The answer.
    pub answer: Answer,
    /// Findings whose path the head doesn't have.
    pub dropped: u32,
    /// Whether there were more findings than [`MAX_FINDINGS`].
    pub truncated: bool,
}

/// Why a text is no answer to the request.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// No JSON, another shape, a missing or unknown field, a severity that isn't one.
    #[error("the answer doesn't have the required form: {0}")]
    Form(#[from] serde_json::Error),
    /// It is about another commit.
    #[error("the answer is about head {found:?} instead of {wanted}")]
    Head {
        /// What it says.
        found: String,
        /// What was asked.
        wanted: String,
    },
    /// It doesn't repeat the nonce: the engine has not read this request.
    #[error("the answer doesn't repeat the request's nonce; it answers something else")]
    Nonce,
    /// A value outside its range.
    #[error("{place}: {problem}")]
    Value {
        /// For example `findings[3].confidence`.
        place: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireAnswer {
    head: String,
    nonce: String,
    findings: Vec<WireFinding>,
    assessment: WireAssessment,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFinding {
    path: String,
    #[serde(default)]
    line: Option<u32>,
    severity: Severity,
    title: String,
    body: String,
    #[serde(default)]
    number: Option<u32>,
    #[serde(default)]
    confidence: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireAssessment {
    effort: u8,
    risk: String,
    recommendation: String,
    priority_files: Vec<String>,
}

impl Answer {
    /// Reads the JSON text of an answer.
    ///
    /// # Errors
    /// When it isn't an answer to the request of `expected`.
    pub fn parse(text: &[u8], expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
        check(serde_json::from_slice(text)?, expected)
    }

    /// Reads an answer that stood inside other JSON.
    ///
    /// # Errors
    /// When it isn't an answer to the request of `expected`.
    pub fn from_value(value: Value, expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
        check(serde_json::from_value(value)?, expected)
    }
}

fn check(wire: WireAnswer, expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
    if wire.head != expected.head.as_str() {
        return Err(AnswerError::Head {
            found: clip(&wire.head),
            wanted: expected.head.to_string(),
        });
    }
    if wire.nonce != expected.nonce {
        return Err(AnswerError::Nonce);
    }
    let (mut findings, mut dropped) = (Vec::new(), 0);
    for (index, finding) in wire.findings.into_iter().enumerate() {
        let path = relative(&finding.path, expected.root);
        if !(expected.known)(path) {
            dropped += 1;
            continue;
        }
        let path = path.to_owned();
        findings.push(finding.check(index, path)?);
    }
    let truncated = findings.len() > MAX_FINDINGS;
    if truncated {
        // A stable sort: among equals the engine's order stays.
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings.truncate(MAX_FINDINGS);
    }
    let assessment = Some(wire.assessment.check(expected)?);
    Ok(Parsed {
        answer: Answer {
            findings,
            assessment,
        },
        dropped,
        truncated,
    })
}

impl WireFinding {
    fn check(self, index: usize, path: String) -> Result<Finding, AnswerError> {
        let wrong = |field: &str, problem| AnswerError::Value {
            place: format!("findings[{index}].{field}"),
            problem,
        };
        let title = one_line(&self.title);
        if title.is_empty() {
            return Err(wrong("title", "is empty"));
        }
        if self.line == Some(0) {
            return Err(wrong("line", "is 0; lines are counted from 1"));
        }
        if self.number == Some(0) {
            return Err(wrong("number", "is 0; numbers are counted from 1"));
        }
        if self.confidence.is_some_and(|c| !(0.0..=1.0).contains(&c)) {
            return Err(wrong("confidence", "is not between 0 and 1"));
        }
        Ok(Finding {
            path,
            line: self.line,
            severity: self.severity,
            title,
            body: cut(self.body.trim(), MAX_BODY),
            number: self.number,
            confidence: self.confidence,
            rule: None,
        })
    }
}

impl WireAssessment {
    fn check(self, expected: &Expected<'_>) -> Result<Assessment, AnswerError> {
        if !(1..=5).contains(&self.effort) {
            return Err(AnswerError::Value {
                place: "assessment.effort".to_owned(),
                problem: "is not between 1 and 5",
            });
        }
        let files = self.priority_files.iter();
        Ok(Assessment {
            effort: self.effort,
            risk: one_line(&self.risk),
            recommendation: one_line(&self.recommendation),
            priority_files: files
                .map(|path| relative(path, expected.root))
                .filter(|path| (expected.known)(path))
                .take(MAX_PRIORITY_FILES)
                .map(ToOwned::to_owned)
                .collect(),
        })
    }
}

/// The path from the checkout's root: engines that read files there like to name them in full.
fn relative<'a>(path: &'a str, root: &Path) -> &'a str {
    let inside = root
        .to_str()
        .and_then(|root| path.strip_prefix(root))
        .and_then(|rest| rest.strip_prefix('/'));
    let path = inside.unwrap_or(path);
    path.strip_prefix("./").unwrap_or(path)
}

/// White space and control characters become single spaces.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    cut(&line.join(" "), MAX_LINE)
}

/// At most `limit` characters, the last one an ellipsis when something was cut.
fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => text.chars().take(limit - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::schema;
    use super::*;

    const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

    fn read(value: &Value) -> Result<Parsed, AnswerError> {
        read_text(value.to_string().as_bytes())
    }

    fn read_text(text: &[u8]) -> Result<Parsed, AnswerError> {
        let head: CommitSha = HEAD.parse().unwrap();
        let expected = Expected {
            head: &head,
            nonce: "n0nce",
            root: Path::new("/runs/tree"),
            known: &|path| path.starts_with("src/"),
        };
        Answer::parse(text, &expected)
    }

    fn finding() -> Value {
        json!({"path": "src/a.rs", "line": 3, "severity": "major", "title": "Off by one",
            "body": "The last item is skipped.", "number": 2, "confidence": 0.8})
    }

    fn answer(findings: &[Value]) -> Value {
        json!({"head": HEAD, "nonce": "n0nce", "findings": findings, "assessment":
            {"effort": 2, "risk": "r", "recommendation": "x", "priority_files": ["src/a.rs"]}})
    }

    #[test]
    fn a_full_answer_is_read() {
        let parsed = read(&answer(&[finding()])).unwrap();
        assert_eq!((parsed.dropped, parsed.truncated), (0, false));
        let found = &parsed.answer.findings[0];
        assert_eq!((found.line, found.number), (Some(3), Some(2)));
        assert_eq!(found.severity, Severity::Major);
        assert_eq!(parsed.answer.assessment.unwrap().effort, 2);
    }

    #[test]
    fn an_answer_to_another_request_is_refused() {
        let mut other = answer(&[]);
        other["nonce"] = json!("older");
        assert!(matches!(read(&other), Err(AnswerError::Nonce)));
        let mut other = answer(&[]);
        other["head"] = json!(HEAD.replace('0', "1"));
        assert!(matches!(read(&other), Err(AnswerError::Head { .. })));
    }

    #[test]
    fn every_field_that_the_schema_requires_is_required_and_no_other_is_taken() {
        let schema = schema();
        let (finding_schema, assessment_schema) = (
            &schema["properties"]["findings"]["items"],
            &schema["properties"]["assessment"],
        );
        let whole = answer(&[finding()]);
        for (place, described) in [
            ("", &schema),
            ("/findings/0", finding_schema),
            ("/assessment", assessment_schema),
        ] {
            let fields = whole.pointer(place).unwrap().as_object().unwrap();
            let properties = described["properties"].as_object().unwrap();
            let mut named: Vec<_> = fields.keys().collect();
            let mut allowed: Vec<_> = properties.keys().collect();
            named.sort();
            allowed.sort();
            assert_eq!(named, allowed, "{place}");
            for field in described["required"].as_array().unwrap() {
                let field = field.as_str().unwrap();
                let mut less = whole.clone();
                let object = less.pointer_mut(place).unwrap().as_object_mut().unwrap();
                object.remove(field);
                // Who leaves out the line means the file as a whole.
                assert_eq!(read(&less).is_ok(), field == "line", "{place} {field}");
            }
            let mut more = whole.clone();
            more.pointer_mut(place).unwrap()["extra"] = json!(1);
            assert!(read(&more).is_err(), "{place}");
        }
    }

    #[test]
    fn a_value_outside_its_range_spoils_the_answer() {
        for (field, value) in [
            ("severity", json!("critical")),
            ("severity", json!("Major")),
            ("line", json!(0)),
            ("line", json!(-1)),
            ("line", json!("3")),
            ("number", json!(0)),
            ("title", json!(" \n ")),
            ("title", json!(null)),
            ("confidence", json!(95)),
            ("path", json!(7)),
        ] {
            let mut wrong = finding();
            wrong[field] = value.clone();
            let result = read(&answer(&[finding(), wrong]));
            assert!(result.is_err(), "{field} = {value}");
        }
        for effort in [json!(0), json!(6), json!(2.5)] {
            let mut wrong = answer(&[]);
            wrong["assessment"]["effort"] = effort;
            assert!(read(&wrong).is_err());
        }
    }

    #[test]
    fn a_finding_outside_the_head_is_dropped_and_counted() {
        let mut outside = finding();
        outside["path"] = json!("../etc/passwd");
        let parsed = read(&answer(&[outside, finding()])).unwrap();
        assert_eq!(parsed.dropped, 1);
        assert_eq!(parsed.answer.findings.len(), 1);
    }

    #[test]
    fn full_paths_into_the_checkout_are_paths_of_the_head() {
        for path in ["/runs/tree/src/a.rs", "./src/a.rs", "src/a.rs"] {
            let mut named = finding();
            named["path"] = json!(path);
            let parsed = read(&answer(&[named])).unwrap();
            assert_eq!(parsed.answer.findings[0].path, "src/a.rs", "{path}");
        }
        let mut beside = finding();
        beside["path"] = json!("/runs/treesrc/a.rs");
        assert_eq!(read(&answer(&[beside])).unwrap().dropped, 1);
    }

    #[test]
    fn of_too_many_findings_the_gravest_are_kept() {
        let mut findings = vec![finding(); MAX_FINDINGS + 10];
        findings.last_mut().unwrap()["severity"] = json!("blocker");
        let parsed = read(&answer(&findings)).unwrap();
        assert!(parsed.truncated);
        assert_eq!(parsed.answer.findings.len(), MAX_FINDINGS);
        assert_eq!(parsed.answer.findings[0].severity, Severity::Blocker);
    }

    #[test]
    fn long_texts_are_cut_and_titles_are_one_line() {
        let mut long = finding();
        long["title"] = json!("a\n\tb\u{0}c");
        long["body"] = json!("é".repeat(MAX_BODY + 1));
        let parsed = read(&answer(&[long])).unwrap();
        let found = &parsed.answer.findings[0];
        assert_eq!(found.title, "a b c");
        assert_eq!(found.body.chars().count(), MAX_BODY);
        assert!(found.body.ends_with('…'));
    }

    #[test]
    fn text_around_the_answer_is_no_answer() {
        let text = answer(&[]).to_string();
        assert!(read_text(format!("{text}\n").as_bytes()).is_ok());
        for wrong in [
            String::new(),
            "{}".into(),
            "null".into(),
            "[]".into(),
            format!("Here it is: {text}"),
            format!("{text}{text}"),
            text[..text.len() - 1].to_owned(),
        ] {
            assert!(read_text(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_text(&text);
        }

        #[test]
        fn whatever_is_accepted_keeps_the_limits(
            title in ".{0,400}", body in ".{0,50}", path in "(src/)?[a-z./]{0,20}",
            line in any::<i64>(), effort in any::<i8>(), count in 0usize..130,
        ) {
            let mut one = finding();
            one["title"] = json!(title);
            one["body"] = json!(body);
            one["path"] = json!(path);
            one["line"] = json!(line);
            let mut whole = answer(&vec![one; count]);
            whole["assessment"]["effort"] = json!(effort);
            if let Ok(parsed) = read(&whole) {
                prop_assert!(parsed.answer.findings.len() <= MAX_FINDINGS);
                let assessment = parsed.answer.assessment.unwrap();
                prop_assert!((1..=5).contains(&assessment.effort));
                for found in parsed.answer.findings {
                    prop_assert!(found.path.starts_with("src/"));
                    prop_assert!(!found.title.is_empty());
                    prop_assert!(found.title.chars().count() <= MAX_LINE);
                    prop_assert!(!found.title.chars().any(char::is_control));
                    prop_assert!(found.line != Some(0));
                }
            }
        }
    }
}
