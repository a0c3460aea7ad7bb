//! The governor's decision as a pure function: what the windows say to a run, and when they will say
//! otherwise. The claim, the tests and `status` all ask it.

use super::windows::{Measured, Window};
use super::{Breaker, Mode};
use crate::clock::Timestamp;
use crate::config::{PlanBudget, RoleShares};
use crate::ids::{MicroUsd, UserId};
use crate::store::ledger::{Charge, Cost};
use crate::store::queue::{Command, Role};

/// The limits in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The plan, the process's own or the authority's.
    pub plan: PlanBudget,
    /// The roles' parts of it.
    pub shares: RoleShares,
    /// Percent of them that the breaker leaves.
    pub percent: u32,
}

/// A run that asks to be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Who caused it.
    pub actor: UserId,
    /// Whose work it is.
    pub role: Role,
    /// A person asked for it.
    pub requested: bool,
}

/// What the windows say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may run, on this rung.
    Admitted(Mode),
    /// This window is too full for a whole run.
    NoRoom(Measured),
    /// This window is so full that only what a person asks for runs.
    MentionOnly(Measured),
}

impl Limits {
    /// What a run reserves for a command.
    pub fn need(&self, command: Command) -> Cost {
        let tokens = match command {
            Command::Ask => self.plan.ask_tokens(),
            _ => self.plan.max_run_tokens,
        };
        Cost {
            tokens,
            money: self
                .plan
                .money
                .map_or(MicroUsd::ZERO, |money| money.max_run_microusd),
        }
    }

    /// The windows that a run has to pass: those of everybody first, then its role's and its
    /// account's.
    pub fn windows(&self, ask: Ask) -> Vec<Window> {
        let role = Window::of_role(&self.plan, self.shares, ask.role);
        let contributor = Window::of_contributor(&self.plan, ask.actor);
        Window::of_plan(&self.plan)
            .into_iter()
            .chain(role)
            .chain(contributor)
            .map(|window| window.scaled(self.percent))
            .collect()
    }
}

/// What `windows`, measured, say to a run that reserves `need`. Room comes before the ladder, and of
/// several windows the first.
pub fn judge(windows: &[Measured], need: Cost, requested: bool) -> Verdict {
    if let Some(full) = windows.iter().find(|window| !window.has_room(need)) {
        return Verdict::NoRoom(*full);
    }
    let mode = |window: &&Measured| window.mode();
    // Of several windows on one rung the first is named.
    match windows.iter().rev().max_by_key(mode) {
        Some(fullest) if fullest.mode() >= Mode::MentionOnly && !requested => {
            Verdict::MentionOnly(*fullest)
        }
        Some(fullest) => Verdict::Admitted(fullest.mode()),
        None => Verdict::Admitted(Mode::Full),
    }
}

/// When `windows` and the breaker admit a run that reserves `need`, if nothing is charged but `charges`
/// (oldest first, a week of them): now or later; `None` when only the operator can change it.
pub fn next_fit(
    windows: &[Window],
    need: Cost,
    requested: bool,
    charges: &[Charge],
    breaker: Breaker,
    now: Timestamp,
) -> Option<Timestamp> {
    let blocked = breaker.blocks_until(now).unwrap_or(now);
    windows
        .iter()
        .map(|window| window.admits_at(charges, need, requested, now))
        .try_fold(blocked, |latest, at| at.map(|at| latest.max(at)))
}
