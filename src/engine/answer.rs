//! What an engine says: a review, a description, or the answer to a question, read strictly.
//!
//! The types here are what the rest of the program and the store hold. What an engine writes is
//! another form, described for engines by [`schema()`] and read by [`Answer::read`]; nothing else
//! makes an [`Answer`] from an engine's text.

mod parse;
mod schema;

pub use parse::{AnswerError, Expected, Parsed};
pub use schema::schema;

pub use crate::findings::{Assessment, Description, Finding, Severity};

/// Most findings of one answer; of more, the gravest are kept.
pub const MAX_FINDINGS: usize = 100;

/// Most files of a description; of more, the first are kept.
pub const MAX_FILES: usize = 100;

/// Most characters of a title, a risk, a recommendation or what happened in a file; more are cut.
pub const MAX_LINE: usize = 300;

/// Most characters of a finding's body, a summary or an answer; more are cut.
pub const MAX_BODY: usize = 8_000;

/// Most files in [`Assessment::priority_files`].
pub const MAX_PRIORITY_FILES: usize = 5;

/// A whole answer, to the task of its request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To a review.
    Review(Review),
    /// To a description.
    Description(Description),
    /// To a question: Markdown prose.
    Text(String),
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The remarks, in the engine's order.
    pub findings: Vec<Finding>,
    /// The view of the change as a whole; the built-in checks have none.
    pub assessment: Option<Assessment>,
}
