//! What is told on a pull request instead of a review: a kind and its numbers, never anybody's words.

use serde::{Deserialize, Serialize};

/// Why what was asked for was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// More files or lines than the size gate lets through.
    TooLarge {
        /// Files that changed.
        files: u64,
        /// Lines added and removed in them.
        lines: u64,
        /// `budget.max_changed_files`.
        max_files: u32,
        /// `budget.max_changed_lines`.
        max_lines: u32,
    },
    /// Few lines, but very long ones, or a tree with too many names.
    TooManyBytes {
        /// The limit in bytes.
        limit: u64,
    },
    /// It is estimated to need more than a run may use.
    OverEstimate {
        /// Lines to review.
        lines: u32,
        /// Tokens that they are estimated to need.
        estimate: u64,
        /// Tokens that are reserved.
        reserved: u64,
        /// It was a question, whose reservation is another one.
        ask: bool,
    },
    /// Nothing changed, or all of it is left out.
    NothingToReview,
    /// The branches share no commit.
    NoCommonHistory,
    /// The head holds a path that is not written to disk.
    UnsafePath,
    /// The command is not switched on.
    CommandOff {
        /// Its word.
        command: String,
    },
    /// A question was announced and not asked.
    NoQuestion,
    /// A question, and no model to answer it.
    NoModel,
    /// The list of commands was asked for.
    Help {
        /// The handle that calls, without `@`.
        handle: String,
        /// The words of the commands that are on.
        commands: Vec<String>,
    },
    /// It failed, and is not tried again.
    Failed {
        /// How often it was tried.
        attempts: u32,
        /// In which way, the last time.
        failure: Failure,
    },
}

/// The ways in which an attempt fails, as far as they are anybody's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The change could not be fetched.
    Checkout,
    /// The engine could not be started.
    EngineUnavailable,
    /// It did not finish in time.
    EngineTimeout,
    /// It ended without an answer.
    EngineCrashed,
    /// Its answer was none that could be used.
    EngineAnswer,
    /// The model's service failed.
    EngineService,
    /// The request was larger than the model takes.
    PromptTooLong,
    /// The engine's own limit of turns or money was reached, or that of the answer's length.
    EngineLimit,
    /// The model or its service declined.
    EngineRefused,
    /// The process was ended in the middle of it.
    Interrupted,
}

impl Notice {
    /// The same refusal would be told, whatever the numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
