//! Our own secrets, taken out of what an engine says before anybody sees it.
//!
//! An engine may repeat its key when it complains, and a hostile pull request may talk it into
//! printing what it finds. What it says is logged, stored, posted and shown to the next round.

use super::answer::Answer;
use super::{EngineFailure, Outcome};
use crate::secret::{Secret, leak};

/// Stands for a secret that stood there as it is.
const HIDDEN: &str = "[...]";

/// Stands for a text in which a secret is hidden by an encoding.
const WITHHELD: &str = "[withheld: it contained a credential]";

/// Shorter values are words, not keys.
const SHORTEST: usize = 8;

/// What may not be said.
pub(super) struct Concealer<'a>(Vec<&'a Secret>);

impl<'a> Concealer<'a> {
    /// Conceals `secrets`, except for those that are too short to be any.
    pub(super) fn new(secrets: &'a [Secret]) -> Self {
        let telling = |secret: &&Secret| secret.expose().len() >= SHORTEST;
        Self(secrets.iter().filter(telling).collect())
    }

    /// Raw output, before it is read; true when it held a secret. Bytes that are not UTF-8 become
    /// U+FFFD.
    pub(super) fn output(&self, output: &mut Vec<u8>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut text = String::from_utf8_lossy(output).into_owned();
        let found = self.hide(&mut text);
        *output = text.into_bytes();
        found
    }

    /// What was read from it, escapes of JSON being resolved by now; true when it held a secret.
    pub(super) fn outcome(&self, outcome: &mut Outcome) -> bool {
        let mut texts: Vec<&mut String> = outcome.model.iter_mut().collect();
        match &mut outcome.result {
            Ok(parsed) => texts_of(&mut parsed.answer, &mut texts),
            Err(EngineFailure::UsageLimit { message } | EngineFailure::Error { message, .. }) => {
                texts.push(message);
            }
            Err(EngineFailure::Unavailable { problem, remedy }) => {
                texts.extend([problem, remedy]);
            }
            Err(EngineFailure::Timeout { .. } | EngineFailure::Stopped) => {}
        }
        let mut found = false;
        for text in texts {
            found |= self.text(text);
        }
        found
    }

    fn text(&self, text: &mut String) -> bool {
        let found = self.hide(text);
        let hidden = leak::contains_secret(text, &self.0);
        if hidden {
            *text = WITHHELD.to_owned();
        }
        found || hidden
    }

    fn hide(&self, text: &mut String) -> bool {
        let mut found = false;
        for secret in &self.0 {
            if text.contains(secret.expose()) {
                *text = text.replace(secret.expose(), HIDDEN);
                found = true;
            }
        }
        found
    }
}

/// Every text of an answer.
fn texts_of<'a>(answer: &'a mut Answer, texts: &mut Vec<&'a mut String>) {
    match answer {
        Answer::Review(review) => {
            for finding in &mut review.findings {
                texts.extend([&mut finding.path, &mut finding.title, &mut finding.body]);
                texts.extend(&mut finding.rule);
            }
            if let Some(assessment) = &mut review.assessment {
                texts.extend([&mut assessment.risk, &mut assessment.recommendation]);
                texts.extend(&mut assessment.priority_files);
            }
        }
        Answer::Description(description) => {
            texts.extend([&mut description.summary, &mut description.testing]);
            for file in &mut description.files {
                texts.extend([&mut file.path, &mut file.summary]);
            }
        }
        Answer::Text(text) => texts.push(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::answer::{Parsed, Review};
    use crate::engine::{ErrorKind, Usage};
    use crate::findings::{Assessment, ChangeKind, DescribedFile, Description, Finding, Severity};

    const KEY: &str = "sk-0123456789-abcdefghij";

    /// An answer to each task, whose every text is `text`.
    fn outcomes(text: &str) -> [Outcome; 3] {
        let description = Answer::Description(Description {
            kind: ChangeKind::Fix,
            summary: text.to_owned(),
            files: vec![DescribedFile {
                path: text.to_owned(),
                summary: text.to_owned(),
            }],
            testing: text.to_owned(),
        });
        [review(text), description, Answer::Text(text.to_owned())].map(|answer| Outcome {
            result: Ok(Parsed {
                answer,
                dropped: 0,
                truncated: false,
            }),
            usage: Usage::UNKNOWN,
            model: Some(text.to_owned()),
        })
    }

    fn review(text: &str) -> Answer {
        Answer::Review(Review {
            findings: vec![Finding {
                path: text.to_owned(),
                line: None,
                severity: Severity::Nit,
                title: text.to_owned(),
                body: text.to_owned(),
                number: None,
                confidence: None,
                rule: Some(text.to_owned()),
            }],
            assessment: Some(Assessment {
                effort: 1,
                risk: text.to_owned(),
                recommendation: text.to_owned(),
                priority_files: vec![text.to_owned()],
            }),
        })
    }

    fn failed(message: &str) -> Outcome {
        let failure = EngineFailure::Error {
            kind: ErrorKind::Crashed,
            message: message.to_owned(),
        };
        Outcome::failed(failure, Usage::UNKNOWN)
    }

    fn said(outcome: &Outcome) -> String {
        let answer = outcome.result.as_ref().map(|parsed| &parsed.answer);
        format!("{answer:?} {:?}", outcome.model)
    }

    #[test]
    fn no_part_of_an_answer_or_failure_says_a_secret_in_any_form() {
        let secrets = [Secret::new(KEY), Secret::new("word")];
        let concealer = Concealer::new(&secrets);
        for form in [
            KEY,
            "c2stMDEyMzQ1Njc4OS1hYmNkZWZnaGlq",
            "sk%2D0123456789%2Dabcdefghij",
        ] {
            let mut ended = Vec::from(outcomes(&format!("a word {form}.")));
            ended.push(failed(form));
            for mut outcome in ended {
                assert!(concealer.outcome(&mut outcome));
                assert!(!said(&outcome).contains(form), "{}", said(&outcome));
            }
        }
        for (mut plain, same) in outcomes("a word").into_iter().zip(outcomes("a word")) {
            assert!(!concealer.outcome(&mut plain));
            assert_eq!(said(&plain), said(&same));
        }
    }

    #[test]
    fn raw_output_is_searched_before_it_is_read() {
        let secrets = [Secret::new(KEY)];
        let concealer = Concealer::new(&secrets);
        let mut said = format!("bad key {KEY}!").into_bytes();
        assert!(concealer.output(&mut said));
        assert_eq!(said, b"bad key [...]!");
        let mut bytes = vec![0xff];
        assert!(!Concealer::new(&[]).output(&mut bytes));
        assert_eq!(bytes, [0xff]);
    }
}
