//! Reading an answer. An answer that doesn't hold to the form is an error as a whole: what is left of
//! it can't be told from a review that found nothing.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::super::Task;
use super::{
    Answer, Assessment, Description, Finding, MAX_BODY, MAX_FILES, MAX_FINDINGS, MAX_LINE,
    MAX_PRIORITY_FILES, Review, Severity,
};
use crate::findings::{ChangeKind, DescribedFile};
use crate::ids::CommitSha;
use crate::output::clip;

/// What an answer has to fit.
pub struct Expected<'a> {
    /// What was asked for.
    pub task: Task<'a>,
    /// The head under review, which the answer repeats.
    pub head: &'a CommitSha,
    /// The request's nonce, which the answer repeats: proof that the engine has read the request.
    pub nonce: &'a str,
    /// The checkout's root; a path that starts with it counts from there.
    pub root: &'a Path,
    /// Whether there is a file of this path that the answer may be about.
    pub known: &'a dyn Fn(&str) -> bool,
}

/// An answer and what was taken out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The answer.
    pub answer: Answer,
    /// Findings or files whose path isn't known.
    pub dropped: u32,
    /// Whether there were more than [`MAX_FINDINGS`] or [`MAX_FILES`] of them.
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
struct WireReview {
    head: String,
    nonce: String,
    findings: Vec<WireFinding>,
    assessment: WireAssessment,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireDescription {
    head: String,
    nonce: String,
    kind: ChangeKind,
    summary: String,
    files: Vec<WireFile>,
    testing: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFile {
    path: String,
    summary: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireText {
    head: String,
    nonce: String,
    answer: String,
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
    /// Reads what an engine says.
    ///
    /// # Errors
    /// When it isn't an answer to the request of `expected`.
    pub fn read(value: Value, expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
        match expected.task {
            Task::Review => serde_json::from_value::<WireReview>(value)?.check(expected),
            Task::Describe => serde_json::from_value::<WireDescription>(value)?.check(expected),
            Task::Ask(_) => serde_json::from_value::<WireText>(value)?.check(expected),
        }
    }
}

/// The answer belongs to the request.
fn belongs(head: &str, nonce: &str, expected: &Expected<'_>) -> Result<(), AnswerError> {
    if head != expected.head.as_str() {
        return Err(AnswerError::Head {
            found: clip(head),
            wanted: expected.head.to_string(),
        });
    }
    match nonce == expected.nonce {
        true => Ok(()),
        false => Err(AnswerError::Nonce),
    }
}

impl WireReview {
    fn check(self, expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
        belongs(&self.head, &self.nonce, expected)?;
        let (mut findings, mut dropped) = (Vec::new(), 0);
        for (index, finding) in self.findings.into_iter().enumerate() {
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
        let assessment = Some(self.assessment.check(expected)?);
        Ok(Parsed {
            answer: Answer::Review(Review {
                findings,
                assessment,
            }),
            dropped,
            truncated,
        })
    }
}

impl WireDescription {
    fn check(self, expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
        belongs(&self.head, &self.nonce, expected)?;
        let named = self.files.len();
        let mut files: Vec<_> = self
            .files
            .into_iter()
            .map(|file| DescribedFile {
                path: relative(&file.path, expected.root).to_owned(),
                summary: one_line(&file.summary),
            })
            .filter(|file| (expected.known)(&file.path))
            .collect();
        let dropped = named - files.len();
        let truncated = files.len() > MAX_FILES;
        files.truncate(MAX_FILES);
        let description = Description {
            kind: self.kind,
            summary: prose("summary", &self.summary)?,
            files,
            testing: cut(self.testing.trim(), MAX_BODY),
        };
        Ok(Parsed {
            answer: Answer::Description(description),
            dropped: dropped as u32,
            truncated,
        })
    }
}

impl WireText {
    fn check(self, expected: &Expected<'_>) -> Result<Parsed, AnswerError> {
        belongs(&self.head, &self.nonce, expected)?;
        Ok(Parsed {
            answer: Answer::Text(prose("answer", &self.answer)?),
            dropped: 0,
            truncated: false,
        })
    }
}

/// Text that must say something.
fn prose(field: &str, text: &str) -> Result<String, AnswerError> {
    match text.trim() {
        "" => Err(AnswerError::Value {
            place: field.to_owned(),
            problem: "is empty",
        }),
        text => Ok(cut(text, MAX_BODY)),
    }
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
mod tests;
