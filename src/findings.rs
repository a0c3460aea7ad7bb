//! What a review is made of: findings, an assessment, and what was left out. The words that engines,
//! store and report share.

pub mod notice;
pub mod numbers;

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

/// A file that was not reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// The path in the head, for display.
    pub path: String,
    /// Why.
    pub reason: OmitReason,
}

/// Why a file was not reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OmitReason {
    /// A lock file, vendored tree, generated or minified file of the built-in lists.
    DefaultExclusion,
    /// The operator's `excluded_paths`.
    ExcludedPath,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

/// Either our own form or the pair `[path, lines]` of pr-review-agent's stores.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredOmitted {
    Own { path: String, reason: OmitReason },
    Pair((String, i64)),
}

impl<'de> Deserialize<'de> for Omitted {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Ok(match StoredOmitted::deserialize(input)? {
            StoredOmitted::Own { path, reason } => Self { path, reason },
            StoredOmitted::Pair((path, _lines)) => Self {
                path,
                reason: OmitReason::Other,
            },
        })
    }
}
