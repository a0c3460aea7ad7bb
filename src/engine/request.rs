//! What goes into a run of an engine and what comes out of it.

use std::fs::FileType;
use std::path::{Component, Path};
use std::time::Duration;

use super::answer::{Answer, Finding};
use super::failure::EngineFailure;
use crate::config::ReviewConfig;
use crate::ids::{PrNumber, RepoName, Tokens};
use crate::workspace::{Change, FileStatus, Standard};

/// What an engine is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task<'a> {
    /// Findings and an assessment.
    Review,
    /// A description of the change.
    Describe,
    /// The answer to this question about the change, untrusted.
    Ask(&'a str),
}

impl Task<'_> {
    /// The word in what an engine reads.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Describe => "describe",
            Self::Ask(_) => "ask",
        }
    }
}

/// What an engine is to look at, and to what end.
#[derive(Debug, Clone, Copy)]
pub struct EngineRequest<'a> {
    /// What is asked for.
    pub task: Task<'a>,
    /// The repository; `None` for a local change that belongs to none.
    pub repo: Option<&'a RepoName>,
    /// The pull request; `None` for a local change.
    pub pr: Option<PrNumber>,
    /// Its title, untrusted.
    pub title: &'a str,
    /// The author's login.
    pub author: &'a str,
    /// The branch that it targets, untrusted.
    pub base_ref: &'a str,
    /// The change.
    pub change: &'a Change,
    /// The root of the checkout of the head: the engine's working directory.
    pub tree: &'a Path,
    /// Findings of earlier rounds that are still open.
    pub earlier: &'a [Finding],
    /// The project's own rules at the merge base, untrusted.
    pub standards: &'a [Standard],
    /// The operator's wishes.
    pub review: &'a ReviewConfig,
    /// A random text that the answer has to repeat; see [`crate::ids::nonce`].
    pub nonce: &'a str,
    /// A directory of this run's own that exists: the engine's `TMPDIR` and, as a rule, `HOME`.
    pub scratch: &'a Path,
}

impl EngineRequest<'_> {
    /// Whether an answer may be about a file of this path.
    pub(super) fn knows(&self, path: &str) -> bool {
        match self.task {
            Task::Review | Task::Ask(_) => self.head_has(path),
            // A description tells of deleted files, too.
            Task::Describe => {
                let mut files = self.change.files.iter();
                files.any(|file| file.path.0 == path.as_bytes())
            }
        }
    }

    /// Whether the head has a file of this path: a changed one, or one of the checkout. Symbolic links on
    /// the way are not followed; they could lead anywhere.
    fn head_has(&self, path: &str) -> bool {
        let changed = self
            .change
            .files
            .iter()
            .any(|file| file.status != FileStatus::Deleted && file.path.0 == path.as_bytes());
        if changed {
            return true;
        }
        let mut place = self.tree.to_owned();
        let mut kind = None;
        for part in Path::new(path).components() {
            let Component::Normal(name) = part else {
                return false;
            };
            if kind.is_some_and(|kind: FileType| !kind.is_dir()) {
                return false;
            }
            place.push(name);
            match place.symlink_metadata() {
                Ok(data) => kind = Some(data.file_type()),
                Err(_) => return false,
            }
        }
        kind.is_some_and(|kind| !kind.is_dir())
    }
}

/// How a run of an engine ended.
#[derive(Debug, Clone)]
pub struct EngineRun {
    /// The answer, the built-in checks' findings in front, or why there is none.
    pub outcome: Result<Answer, EngineFailure>,
    /// What it used, also when it failed.
    pub usage: Usage,
    /// The engine's name: `builtin`, `claude`, or the name of the command's program.
    pub engine: String,
    /// What its `--version` says, where the adapter asks.
    pub version: Option<String>,
    /// The model, as reported, else as configured.
    pub model: Option<String>,
    /// Findings that were left out because the head has no such file.
    pub dropped: u32,
    /// Whether there were more findings than an answer may have.
    pub truncated: bool,
    /// It said one of our own secrets. They were taken out; the rest is not to be posted either.
    pub leaked: bool,
    /// Wall-clock time of the run, the pre-flight included.
    pub elapsed: Duration,
}

/// What a run used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Input, output, cache reads and cache writes together, exactly as the engine measured them.
    /// `None` when nothing trustworthy was reported: then the whole reservation counts.
    pub tokens: Option<Tokens>,
    /// The cost in millionths of a dollar, if reported.
    pub cost_microusd: Option<u64>,
}

impl Usage {
    /// Nothing was used: no model was asked.
    pub const NOTHING: Self = Self {
        tokens: Some(Tokens::ZERO),
        cost_microusd: None,
    };

    /// Nobody knows.
    pub const UNKNOWN: Self = Self {
        tokens: None,
        cost_microusd: None,
    };
}
