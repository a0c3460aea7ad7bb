//! What people read: the comment, and the results of a local review. Pure.
//!
//! Every text of a model or of a pull request passes through [`sanitise`] before it is part of a
//! comment; nothing else puts untrusted text into Markdown.

pub mod json;
pub mod layout;
pub mod notice;
pub mod reply;
pub mod sanitise;
pub mod sarif;
pub mod sticky;
pub mod terminal;

use crate::findings::{Assessment, Finding};
use crate::workspace::Change;

/// The result of a local review.
#[derive(Debug, Clone, Copy)]
pub struct LocalReport<'a> {
    /// What was reviewed.
    pub change: &'a Change,
    /// What was found.
    pub findings: &'a [Finding],
    /// The change as a whole.
    pub assessment: Option<&'a Assessment>,
    /// The engine's name.
    pub engine: &'a str,
}

/// The place of a finding as `path:line`.
fn place(finding: &Finding) -> String {
    match finding.line {
        Some(line) => format!("{}:{line}", finding.path),
        None => finding.path.clone(),
    }
}
