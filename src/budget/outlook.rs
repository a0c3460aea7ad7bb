//! What the budget looks like now, for people: how full each window is and when the next run fits.

use super::model::{self, Limits};
use super::windows::{Measured, Window};
use super::{Breaker, Charges, breaker, pool};
use crate::clock::Timestamp;
use crate::config::{BudgetConfig, Pool};
use crate::store::queue::{Command, Role};
use crate::store::{StoreError, Txn};

/// The budget at one moment.
#[derive(Debug, Clone)]
pub struct Outlook {
    /// The windows that hold for every review, with what is charged in them.
    pub windows: Vec<Measured>,
    /// The breaker's state.
    pub breaker: Breaker,
    /// Percent of the configured limits that are in force.
    pub percent: u32,
    /// When a review that a person asks for has room; `None` when only the operator can change it.
    pub requested: Option<Timestamp>,
    /// The same for one that nobody asks for.
    pub automatic: Option<Timestamp>,
}

/// The outlook under `budget`; `None` when there are no limits.
///
/// # Errors
/// When the store or a value can't be read.
pub fn outlook(
    txn: &Txn<'_>,
    budget: &BudgetConfig,
    now: Timestamp,
) -> Result<Option<Outlook>, StoreError> {
    let plan = match budget.pool {
        Pool::Member => pool::policy(txn)?,
        Pool::Alone | Pool::Authority | Pool::Apart => budget.plan.clone(),
    };
    let Some(plan) = plan else {
        return Ok(None);
    };
    let breaker = breaker(txn)?;
    let percent = breaker.percent(now);
    let limits = Limits {
        plan,
        shares: budget.shares,
        percent,
    };
    let mut charges = Charges::default();
    charges.read(txn, now)?;
    let charges = charges.rows();
    let windows: Vec<Window> = Window::of_plan(&limits.plan)
        .into_iter()
        .chain(Window::of_role(&limits.plan, limits.shares, Role::Review))
        .map(|window| window.scaled(percent))
        .collect();
    let need = limits.need(Command::Review);
    let fits = |requested| model::next_fit(&windows, need, requested, charges, breaker, now);
    Ok(Some(Outlook {
        requested: fits(true),
        automatic: fits(false),
        windows: windows
            .iter()
            .map(|window| Measured::of(*window, charges, now))
            .collect(),
        breaker,
        percent,
    }))
}
