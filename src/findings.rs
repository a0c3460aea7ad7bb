//! What is said about a change: findings with an assessment and what was left out, a description, a
//! notice. The words that engines, store and report share.

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

/// What kind of change a description is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Something that users could not do before.
    Feature,
    /// Something that was wrong.
    Fix,
    /// The same behaviour in another form.
    Refactoring,
    /// Documentation alone.
    Documentation,
    /// Tests alone.
    Tests,
    /// Dependencies, builds, releases.
    Maintenance,
    /// Several of these, or none.
    Mixed,
}

impl ChangeKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Feature,
        Self::Fix,
        Self::Refactoring,
        Self::Documentation,
        Self::Tests,
        Self::Maintenance,
        Self::Mixed,
    ];

    /// The lower-case word used in JSON and in the comment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Fix => "fix",
            Self::Refactoring => "refactoring",
            Self::Documentation => "documentation",
            Self::Tests => "tests",
            Self::Maintenance => "maintenance",
            Self::Mixed => "mixed",
        }
    }
}

/// One changed file of a description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedFile {
    /// The path in the head, or in the base when it was deleted.
    pub path: String,
    /// What happened in it, one line.
    pub summary: String,
}

/// What a change does, for those who will read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// What kind of change it is.
    pub kind: ChangeKind,
    /// What it does and why. Markdown prose, untrusted.
    pub summary: String,
    /// Its files, those to read first in front.
    pub files: Vec<DescribedFile>,
    /// How to try it, perhaps nothing. Markdown prose, untrusted.
    pub testing: String,
}

/// What is answered to anything but a request for a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To `describe`.
    Description(Description),
    /// To `ask`.
    Answer {
        /// What was asked, untrusted.
        question: String,
        /// Markdown prose, untrusted.
        text: String,
    },
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
