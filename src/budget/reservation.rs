//! The proof that a run's tokens were reserved in a committed transaction.

use crate::ids::{DedupeKey, OwnerName, Tokens};

/// How much a run may ask of the engine, by how full the windows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Below 60 %: everything.
    Full,
    /// From 60 %: correctness and security only.
    Focused,
    /// From 85 %: only what a person asked for.
    MentionOnly,
    /// From 100 %: nothing.
    Exhausted,
}

impl Mode {
    /// The word that the ledger's `mode` column holds.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Focused => "focused",
            Self::MentionOnly => "mention_only",
            Self::Exhausted => "exhausted",
        }
    }
}

/// An open ledger row. Only the governor makes one, in the claim's transaction; running an engine
/// needs it, and settling consumes it, so a run without a reservation can't be written down.
#[derive(Debug)]
pub struct Reservation {
    pub(super) ledger_id: i64,
    pub(super) key: DedupeKey,
    pub(super) owner: OwnerName,
    pub(super) tokens: Tokens,
    pub(super) mode: Mode,
}

impl Reservation {
    /// What is reserved: the most that the run may use.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The rung of the ladder at admission.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The trigger that it is for.
    pub fn key(&self) -> &DedupeKey {
        &self.key
    }

    /// Who holds it.
    pub fn owner(&self) -> &OwnerName {
        &self.owner
    }

    /// The id of the ledger row.
    pub fn ledger_id(&self) -> i64 {
        self.ledger_id
    }
}
