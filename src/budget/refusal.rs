//! Why a claim was refused, for the operator.

use std::fmt;

use super::WindowKind;
use crate::clock::Timestamp;
use crate::ids::{DedupeKey, UserId};
use crate::store::queue::Role;

/// A refused claim. It changes nothing: the row keeps its place and its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What waits.
    pub scope: Scope,
    /// Why.
    pub reason: Reason,
    /// When it may pass, if nothing else is charged; `None` when only the operator can change it.
    pub until: Option<Timestamp>,
}

/// What waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that spends.
    All,
    /// What nobody asked for.
    Automatic,
    /// One role's work.
    Role(Role),
    /// What one account caused.
    Account(UserId),
    /// One row.
    Row(DedupeKey),
}

/// Why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// `budget.enabled` is false.
    SwitchedOff,
    /// A model engine is configured without limits.
    NoPlan,
    /// This process complies with a policy that is not in the store.
    NoPolicy,
    /// Another process took over as the authority.
    Deposed {
        /// Its first repository.
        authority: String,
    },
    /// The account's own limit was met a while ago.
    Tripped {
        /// Percent of the configured limits that hold from then on.
        percent: u32,
    },
    /// A window is full, or too full for a whole run.
    NoRoom {
        /// Which.
        window: WindowKind,
        /// What is left of it, in its unit.
        left: u64,
        /// What a run reserves.
        needed: u64,
    },
    /// From 85 % on, what nobody asked for waits.
    MentionOnly {
        /// Which window is that full.
        window: WindowKind,
    },
    /// The pull request was reviewed a short while ago, or often today.
    Paced,
    /// A value of the row is none that this program knows.
    Unreadable {
        /// Table, key, column and value.
        why: String,
    },
}

impl Refusal {
    /// How loud it is: pacing is what the operator asked for, everything else may need him.
    pub fn level(&self) -> log::Level {
        match self.reason {
            Reason::Paced => log::Level::Info,
            Reason::Unreadable { .. } => log::Level::Error,
            _ => log::Level::Warn,
        }
    }

    /// The state that it tells of, by which the operator was told or not; amounts and times may
    /// differ within one.
    pub fn state(&self) -> String {
        let reason = match &self.reason {
            Reason::SwitchedOff => "switched off".to_owned(),
            Reason::NoPlan => "no plan".to_owned(),
            Reason::NoPolicy => "no policy".to_owned(),
            Reason::Deposed { .. } => "deposed".to_owned(),
            Reason::Tripped { .. } => "tripped".to_owned(),
            Reason::NoRoom { window, .. } => format!("{window}: no room"),
            Reason::MentionOnly { window } => format!("{window}: requests only"),
            Reason::Paced => "paced".to_owned(),
            Reason::Unreadable { .. } => "unreadable".to_owned(),
        };
        format!("{}: {reason}", self.scope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("nothing that spends starts"),
            Self::Automatic => f.write_str("automatic reviews wait"),
            Self::Role(role) => write!(f, "the {} role waits", role.as_str()),
            Self::Account(actor) => write!(f, "reviews for account {actor} wait"),
            Self::Row(key) => write!(f, "{key} waits"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.scope)?;
        match &self.reason {
            Reason::SwitchedOff => f.write_str("budget.enabled is false")?,
            Reason::NoPlan => {
                f.write_str("budget.session_tokens, weekly_tokens and max_run_tokens are not set")?
            }
            Reason::NoPolicy => f.write_str(
                "budget.authority is false and no process with budget.authority = true has \
                 published limits in this store",
            )?,
            Reason::Deposed { authority } => write!(
                f,
                "the process of {authority} is the authority of this store now; set \
                 budget.authority = false here and restart"
            )?,
            Reason::Paced => f.write_str(
                "the pull request was reviewed a short while ago, or often enough today",
            )?,
            Reason::Unreadable { why } => f.write_str(why)?,
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
                "the {window} window has {} left, a run reserves {} ({})",
                window.shown(*left),
                window.shown(*needed),
                window.run_key()
            )?,
            Reason::MentionOnly { window } => write!(
                f,
                "the {window} window is 85 % full, so only what a person asks for is reviewed"
            )?,
        }
        match self.until {
            Some(until) => write!(f, "; it may pass at {}", until.to_minute()),
            None => Ok(()),
        }
    }
}
