//! What an engine says: findings and an assessment, read strictly.
//!
//! The types here are what the rest of the program and the store hold. What an engine writes is
//! another form, described for engines by [`schema()`] and read by [`Answer::parse`]; nothing else
//! makes an [`Answer`] from an engine's text.

mod parse;
mod schema;

pub use parse::{AnswerError, Expected, Parsed};
pub use schema::schema;

pub use crate::findings::{Assessment, Finding, Severity};

/// Most findings of one answer; of more, the gravest are kept.
pub const MAX_FINDINGS: usize = 100;

/// Most characters of a title, a risk or a recommendation; more are cut.
pub const MAX_LINE: usize = 300;

/// Most characters of a finding's body; more are cut.
pub const MAX_BODY: usize = 8_000;

/// Most files in [`Assessment::priority_files`].
pub const MAX_PRIORITY_FILES: usize = 5;

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The remarks, in the engine's order.
    pub findings: Vec<Finding>,
    /// The view of the change as a whole; the built-in checks have none.
    pub assessment: Option<Assessment>,
}
