//! Several processes on one store: one of them, the authority, publishes its limits, and the others
//! keep to them.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::config::{BudgetConfig, PlanBudget, Pool};
use crate::ids::{RepoName, Tokens};
use crate::store::budget_policy::{self, Published};
use crate::store::{StoreError, Txn};

/// An authority says this often that it stands.
const RENEWAL: Duration = Duration::from_secs(3600);

/// An authority that was silent for this long may be replaced.
const TERM: Duration = Duration::from_secs(24 * 3600);

/// Why a process can't take its place in the pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// There is an authority already.
    #[error(
        "budget.authority: the process of {authority} is the authority of this store already. \
         Set authority = false here; or there, and start that process once, so that it steps down; \
         one that is gone may be replaced after {} ", .until.to_minute()
    )]
    Second {
        /// Its first repository.
        authority: String,
        /// When it counts as gone.
        until: Timestamp,
    },
    /// Nothing to comply with yet.
    #[error(
        "budget.authority is false and no limits are published in this store yet: start the process \
         with budget.authority = true first"
    )]
    NoPolicy,
}

/// Takes the place that `budget` asks for, under the name `me`, the process's first repository: an
/// authority publishes, one that was an authority steps down, one that complies needs a policy.
///
/// # Errors
/// When the store or the policy can't be read or written; inside, [`PoolError`].
pub fn join(
    txn: &Txn<'_>,
    budget: &BudgetConfig,
    me: &RepoName,
    now: Timestamp,
) -> Result<Result<(), PoolError>, StoreError> {
    match budget.pool {
        Pool::Alone => Ok(Ok(())),
        Pool::Authority => {
            if let Some(other) = other_authority(txn, me, now)? {
                return Ok(Err(other));
            }
            if let Some(plan) = &budget.plan {
                budget_policy::put(txn, me.as_str(), plan, now)?;
            }
            Ok(Ok(()))
        }
        Pool::Member | Pool::Apart => {
            let policy = published(txn)?;
            if let Some(mine) = policy.as_ref().filter(|policy| is(policy, me)) {
                budget_policy::resign(txn, &mine.authority)?;
            }
            if policy.is_none() && budget.pool == Pool::Member {
                return Ok(Err(PoolError::NoPolicy));
            }
            Ok(Ok(()))
        }
    }
}

/// Whether this authority is still the one that the store knows, which it is told again when it was
/// last told a while ago. Otherwise who is.
pub(super) fn stand(
    txn: &Txn<'_>,
    plan: &PlanBudget,
    me: &RepoName,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let policy = published(txn)?;
    match policy {
        Some(policy) if !policy.authority.is_empty() && !is(&policy, me) => {
            Ok(Some(policy.authority))
        }
        Some(policy) if is(&policy, me) && is_fresh(&policy, now, RENEWAL) => Ok(None),
        _ => {
            budget_policy::put(txn, me.as_str(), plan, now)?;
            Ok(None)
        }
    }
}

/// The limits to comply with.
pub(super) fn policy(txn: &Txn<'_>) -> Result<Option<PlanBudget>, StoreError> {
    Ok(published(txn)?.map(|published| published.policy))
}

fn other_authority(
    txn: &Txn<'_>,
    me: &RepoName,
    now: Timestamp,
) -> Result<Option<PoolError>, StoreError> {
    let other = published(txn)?
        .filter(|policy| !policy.authority.is_empty() && !is(policy, me))
        .filter(|policy| is_fresh(policy, now, TERM));
    Ok(other.map(|policy| PoolError::Second {
        until: policy.at.plus(TERM),
        authority: policy.authority,
    }))
}

/// The policy in the store, checked: another program may have written it.
fn published(txn: &Txn<'_>) -> Result<Option<Published<PlanBudget>>, StoreError> {
    let Some(found) = budget_policy::get::<PlanBudget>(txn)? else {
        return Ok(None);
    };
    let plan = &found.policy;
    let percent = |percent: u32| (1..=100).contains(&percent);
    let sound = [plan.session_tokens, plan.weekly_tokens, plan.max_run_tokens]
        .iter()
        .all(|tokens| *tokens > Tokens::ZERO && *tokens <= Tokens::MOST)
        && percent(plan.reviewer_share_pct)
        && plan.per_contributor_pct.is_none_or(percent);
    if sound {
        Ok(Some(found))
    } else {
        Err(StoreError::Column {
            table: "budget_policy",
            key: "1".to_owned(),
            column: "policy",
            why: "a limit is zero or too large, or a share is not from 1 to 100 percent".to_owned(),
        })
    }
}

fn is(policy: &Published<PlanBudget>, me: &RepoName) -> bool {
    policy.authority.eq_ignore_ascii_case(me.as_str())
}

/// Whether the authority was heard of within `span`, on either side of a clock that may have moved.
fn is_fresh(policy: &Published<PlanBudget>, now: Timestamp, span: Duration) -> bool {
    now.since(policy.at) < span && policy.at.since(now) < span
}
