//! Why a claim was refused, for the operator.

use std::fmt;

use super::WindowKind;
use crate::clock::Timestamp;
use crate::ids::{DedupeKey, Tokens, UserId};

/// A refused claim. It changes nothing: the row keeps its place and its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The row; `None` when nothing at all can be admitted.
    pub key: Option<DedupeKey>,
    /// Why.
    pub reason: Reason,
    /// When it may pass, if nothing else is charged; `None` when only the operator can change it.
    pub until: Option<Timestamp>,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `budget.enabled` is false.
    SwitchedOff,
    /// A model engine is configured without limits.
    NoPlan,
    /// The account's own limit was met a while ago.
    Tripped {
        /// Percent of the configured limits that hold from then on.
        percent: u32,
    },
    /// A window is full, or too full for a whole run.
    NoRoom {
        /// Which.
        window: WindowKind,
        /// What is left of it.
        left: Tokens,
        /// What a run reserves.
        needed: Tokens,
    },
    /// From 85 % on, what nobody asked for waits.
    MentionOnly {
        /// Which window is that full.
        window: WindowKind,
    },
    /// The pull request was reviewed a short while ago, or often today.
    Paced,
    /// The account's own part is used up.
    Contributor {
        /// Whose.
        actor: UserId,
        /// What is left of it.
        left: Tokens,
    },
}

impl Refusal {
    /// How loud it is: pacing is what the operator asked for, everything else may need him.
    pub fn level(&self) -> log::Level {
        match self.reason {
            Reason::Paced => log::Level::Info,
            _ => log::Level::Warn,
        }
    }

    /// Whether the operator has been told this already: amounts and times may differ.
    pub fn same_state(&self, other: &Self) -> bool {
        let kind = |reason: &Reason| match reason {
            Reason::NoRoom { window, .. } => (0, Some(*window)),
            Reason::MentionOnly { window } => (1, Some(*window)),
            Reason::Contributor { .. } => (2, None),
            Reason::SwitchedOff => (3, None),
            Reason::NoPlan => (4, None),
            Reason::Tripped { .. } => (5, None),
            Reason::Paced => (6, None),
        };
        self.key == other.key && kind(&self.reason) == kind(&other.reason)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key} waits: ")?,
            None => f.write_str("no review starts: ")?,
        }
        match self.reason {
            Reason::SwitchedOff => f.write_str("budget.enabled is false")?,
            Reason::NoPlan => {
                f.write_str("budget.session_tokens, weekly_tokens and max_run_tokens are not set")?
            }
            Reason::Paced => f.write_str(
                "the pull request was reviewed a short while ago, or often enough today",
            )?,
            Reason::Tripped { percent } => write!(
                f,
                "the engine's account has met its own usage limit; from then on {percent} % of the \
                 configured limits hold"
            )?,
            Reason::NoRoom {
                window,
                left,
                needed,
            } => write!(
                f,
                "the {window} window has {left} tokens left, a run reserves {needed} \
                 (budget.max_run_tokens)"
            )?,
            Reason::MentionOnly { window } => write!(
                f,
                "the {window} window is 85 % full, so only what a person asks for is reviewed"
            )?,
            Reason::Contributor { actor, left } => write!(
                f,
                "account {actor} has {left} tokens left of budget.per_contributor_pct"
            )?,
        }
        match self.until {
            Some(until) => write!(f, "; it may pass at {}", until.to_minute()),
            None => Ok(()),
        }
    }
}
