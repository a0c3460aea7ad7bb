//! What an engine says: findings and an assessment, read strictly.

use serde::{Deserialize, Serialize};

/// How bad a finding is. The order is by weight: `Blocker` is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A detail.
    Nit,
    /// Worth fixing, harmless if not.
    Minor,
    /// A defect that users or maintainers will meet.
    Major,
    /// Must not be merged.
    Blocker,
}

impl Severity {
    /// All, gravest first.
    pub const ALL: [Self; 4] = [Self::Blocker, Self::Major, Self::Minor, Self::Nit];

    /// The lower-case word used in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nit => "nit",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Blocker => "blocker",
        }
    }
}

/// One remark about one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The path in the head, with `/` between its parts.
    pub path: String,
    /// The line in the head, counted from 1; `None` for the file as a whole.
    #[serde(default)]
    pub line: Option<u32>,
    /// Its weight.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// Markdown prose, untrusted.
    pub body: String,
    /// The number it keeps across rounds, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The engine's own estimate from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The rule of the built-in check that made it; `None` for a model's finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// The engine's view of the change as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    /// How hard a human review is, from 1 (glance) to 5 (a day).
    pub effort: u8,
    /// What could go wrong, one line.
    pub risk: String,
    /// What the engine would do, one line.
    pub recommendation: String,
    /// The files to read first, at most five.
    #[serde(default)]
    pub priority_files: Vec<String>,
}
