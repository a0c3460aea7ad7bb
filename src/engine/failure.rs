//! Why an engine gave no review, by kinds that decide what happens to the trigger.

use std::time::Duration;

use crate::findings::notice::Failure;
use crate::store::ledger::StopReason;

/// An engine that gave no review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineFailure {
    /// It could not start its work; nothing was spent.
    #[error("the engine is unavailable: {problem}; {remedy}")]
    Unavailable {
        /// What is missing.
        problem: String,
        /// What an operator can do.
        remedy: String,
    },
    /// The time-out passed.
    #[error("the engine was ended after {} s, its time-out", after.as_secs())]
    Timeout {
        /// The time-out.
        after: Duration,
    },
    /// The account has used up what its plan allows. Every other run would end the same.
    #[error("the engine's account has reached its usage limit: {message}")]
    UsageLimit {
        /// The tool's own words.
        message: String,
    },
    /// It failed, or its answer is none.
    #[error("the engine failed: {message}")]
    Error {
        /// In which way.
        kind: ErrorKind,
        /// What happened.
        message: String,
    },
    /// The daemon stops.
    #[error("the engine was ended because prwarden stops")]
    Stopped,
}

/// The ways in which an engine fails after it has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It ended without a result: killed, interrupted, a non-zero exit without an explanation.
    Crashed,
    /// Its answer isn't one, or answers another request.
    Answer,
    /// The model's service is overloaded, limits the rate or has an error of its own.
    Service,
    /// The request is larger than the model takes.
    PromptTooLong,
    /// The tool's own limit of turns or money was reached.
    ToolLimit,
    /// The model's answer was longer than the model may write.
    OutputTooLong,
    /// The model declined.
    Refusal,
    /// The service rejected the request for another reason.
    Rejected,
}

/// What a failure says about another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// Another attempt may succeed.
    Transient,
    /// Another attempt would end the same.
    Deterministic,
    /// No engine of this account will work for a while; the request was not at fault.
    AccountLimit,
    /// Nothing was spent; an operator has to do something.
    Unavailable,
    /// Neither request nor engine was at fault.
    Stopped,
}

impl EngineFailure {
    /// How the ledger calls it.
    pub fn stop_reason(&self) -> StopReason {
        match self {
            Self::Unavailable { .. } => StopReason::EngineUnavailable,
            Self::Timeout { .. } => StopReason::Timeout,
            Self::UsageLimit { .. } => StopReason::UsageLimit,
            Self::Error { .. } => StopReason::EngineError,
            Self::Stopped => StopReason::Infrastructure,
        }
    }

    /// What is told of it on the pull request; `None` when the request was not at fault and is tried
    /// again whatever happens.
    pub fn told(&self) -> Option<Failure> {
        Some(match self {
            Self::Unavailable { .. } => Failure::EngineUnavailable,
            Self::Timeout { .. } => Failure::EngineTimeout,
            Self::UsageLimit { .. } => return None,
            Self::Stopped => Failure::Interrupted,
            Self::Error { kind, .. } => match kind {
                ErrorKind::Crashed => Failure::EngineCrashed,
                ErrorKind::Answer => Failure::EngineAnswer,
                ErrorKind::Service => Failure::EngineService,
                ErrorKind::PromptTooLong => Failure::PromptTooLong,
                ErrorKind::ToolLimit | ErrorKind::OutputTooLong => Failure::EngineLimit,
                ErrorKind::Refusal | ErrorKind::Rejected => Failure::EngineRefused,
            },
        })
    }

    /// What to do with the trigger.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Unavailable { .. } => FailureClass::Unavailable,
            Self::Timeout { .. } => FailureClass::Transient,
            Self::UsageLimit { .. } => FailureClass::AccountLimit,
            Self::Stopped => FailureClass::Stopped,
            Self::Error { kind, .. } => match kind {
                ErrorKind::Crashed | ErrorKind::Answer | ErrorKind::Service => {
                    FailureClass::Transient
                }
                ErrorKind::PromptTooLong
                | ErrorKind::ToolLimit
                | ErrorKind::OutputTooLong
                | ErrorKind::Refusal
                | ErrorKind::Rejected => FailureClass::Deterministic,
            },
        }
    }
}
