//! The proof that a run's tokens were reserved in a committed transaction.

use super::Mode;
use crate::ids::{DedupeKey, MicroUsd, OwnerName, Tokens};
use crate::store::ledger::Cost;

/// An open ledger row. Only the governor makes one, in the claim's transaction; running an engine
/// needs it, and settling consumes it, so a run without a reservation can't be written down.
#[derive(Debug)]
pub struct Reservation {
    pub(super) ledger_id: Option<i64>,
    pub(super) key: DedupeKey,
    pub(super) owner: OwnerName,
    pub(super) cost: Cost,
    pub(super) mode: Mode,
}

impl Reservation {
    /// What is reserved: the most that the run may use.
    pub fn tokens(&self) -> Tokens {
        self.cost.tokens
    }

    /// What it is reserved in money; zero when the budget has no limits in money.
    pub fn money(&self) -> MicroUsd {
        self.cost.money
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

    /// The reservation of a run that the operator starts by hand on a change of his own: no trigger,
    /// no ledger row, his own responsibility.
    pub fn operator_run(tokens: Tokens) -> Self {
        Self {
            ledger_id: None,
            key: DedupeKey::from_stored("local".to_owned()),
            owner: OwnerName("operator".to_owned()),
            cost: Cost {
                tokens,
                money: MicroUsd::ZERO,
            },
            mode: Mode::Full,
        }
    }
}
