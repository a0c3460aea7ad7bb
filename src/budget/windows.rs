//! Rolling windows: what they limit and how full they are. Pure.

use std::fmt;
use std::time::Duration;

use super::Mode;
use crate::clock::Timestamp;
use crate::config::{PlanBudget, RoleShares};
use crate::ids::{MicroUsd, Tokens, UserId};
use crate::store::ledger::{Charge, Cost};
use crate::store::queue::Role;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The longest window.
pub(super) const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// The rungs of the ladder: from this many percent of a window on, the mode holds.
const LADDER: [(u32, Mode); 3] = [
    (100, Mode::Exhausted),
    (85, Mode::MentionOnly),
    (60, Mode::Focused),
];

/// Which limit a window is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// The plan's 5 h.
    Session,
    /// A seventh of the week, in a day.
    Daily,
    /// The plan's 7 d.
    Weekly,
    /// Money in a day.
    DailyMoney,
    /// Money in 7 d.
    WeeklyMoney,
    /// One role's part of 7 d.
    Role(Role),
    /// One account's part of 7 d.
    Contributor(UserId),
}

impl WindowKind {
    /// Whether a full one stops every run that spends.
    pub fn is_everybodys(self) -> bool {
        !matches!(self, Self::Role(_) | Self::Contributor(_))
    }

    /// Whether it adds `charge` up.
    fn counts(self, charge: &Charge) -> bool {
        match self {
            Self::Role(role) => charge.role == role,
            Self::Contributor(actor) => charge.actor == actor.get(),
            _ => true,
        }
    }

    /// The part of `cost` that it limits: tokens, or millionths of a dollar.
    pub fn amount(self, cost: Cost) -> u64 {
        match self {
            Self::DailyMoney | Self::WeeklyMoney => cost.money.0,
            _ => cost.tokens.0,
        }
    }

    /// An amount of it for people: `1,000 tokens`, `$2.50`.
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::DailyMoney | Self::WeeklyMoney => MicroUsd(amount).to_string(),
            _ => format!("{} tokens", Tokens(amount)),
        }
    }

    /// The key that says what a run reserves of it.
    pub fn run_key(self) -> &'static str {
        match self {
            Self::DailyMoney | Self::WeeklyMoney => "budget.max_run_usd",
            _ => "budget.max_run_tokens",
        }
    }
}

impl fmt::Display for WindowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session => f.write_str("session (5 h)"),
            Self::Daily => f.write_str("daily (24 h)"),
            Self::Weekly => f.write_str("weekly (7 d)"),
            Self::DailyMoney => f.write_str("daily money (24 h)"),
            Self::WeeklyMoney => f.write_str("weekly money (7 d)"),
            Self::Role(role) => write!(f, "{} role (7 d)", role.as_str()),
            Self::Contributor(actor) => write!(f, "account {actor} (7 d)"),
        }
    }
}

/// A limit over the last so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Which limit.
    pub kind: WindowKind,
    /// How far back it reaches.
    pub duration: Duration,
    /// The most that may be charged in it: tokens, or millionths of a dollar.
    pub limit: u64,
}

impl Window {
    fn tokens(kind: WindowKind, duration: Duration, limit: Tokens) -> Self {
        let limit = limit.0;
        Self {
            kind,
            duration,
            limit,
        }
    }

    /// The windows that hold for everybody.
    pub fn of_plan(plan: &PlanBudget) -> Vec<Self> {
        let share = plan.reviewer_share_pct;
        let (session, week) = (plan.session_tokens.percent(share), week(plan));
        let mut windows = vec![
            Self::tokens(WindowKind::Session, 5 * HOUR, session),
            Self::tokens(WindowKind::Daily, DAY, Tokens(week.0 / 7)),
            Self::tokens(WindowKind::Weekly, WEEK, week),
        ];
        if let Some(money) = plan.money {
            let limits = [
                (WindowKind::DailyMoney, DAY, money.daily_microusd),
                (WindowKind::WeeklyMoney, WEEK, money.weekly_microusd),
            ];
            windows.extend(limits.into_iter().filter_map(|(kind, duration, limit)| {
                let limit = limit?.0;
                Some(Self {
                    kind,
                    duration,
                    limit,
                })
            }));
        }
        windows
    }

    /// The window of a role, when it has a share of its own.
    pub fn of_role(plan: &PlanBudget, shares: RoleShares, role: Role) -> Option<Self> {
        let share = match role {
            Role::Review => shares.review,
            Role::Fix | Role::Merge => None,
        };
        let limit = week(plan).percent(share?);
        Some(Self::tokens(WindowKind::Role(role), WEEK, limit))
    }

    /// The window of one account, when the plan limits accounts.
    pub fn of_contributor(plan: &PlanBudget, actor: UserId) -> Option<Self> {
        let limit = week(plan).percent(plan.per_contributor_pct?);
        Some(Self::tokens(WindowKind::Contributor(actor), WEEK, limit))
    }

    /// The same window with `percent` of its limit, after the breaker has shrunk it.
    pub fn scaled(self, percent: u32) -> Self {
        Self {
            limit: Tokens(self.limit).percent(percent).0,
            ..self
        }
    }

    /// A row counts while it was reserved after this moment.
    pub fn start(self, now: Timestamp) -> Timestamp {
        now.minus(self.duration)
    }

    /// When it admits a run that reserves `need`, if nothing is charged but `charges` (oldest first):
    /// now, or when enough of them has left it. `None` when it never can.
    pub fn admits_at(
        self,
        charges: &[Charge],
        need: Cost,
        requested: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut rest = Measured::of(self, charges, now);
        if rest.admits(need, requested) {
            return Some(now);
        }
        for charge in self.inside(charges, now) {
            rest.charged = rest.charged.saturating_sub(self.part(charge));
            if rest.admits(need, requested) {
                return Some(charge.at.plus(self.duration));
            }
        }
        None
    }

    /// What `charge` fills of it, wherever in time it lies.
    fn part(self, charge: &Charge) -> u64 {
        if self.kind.counts(charge) {
            self.kind.amount(charge.cost)
        } else {
            0
        }
    }

    /// Those of `charges` (oldest first) that lie in it.
    fn inside(self, charges: &[Charge], now: Timestamp) -> &[Charge] {
        let since = self.start(now);
        &charges[charges.partition_point(|charge| charge.at <= since)..]
    }
}

/// What the agent may use in a week.
fn week(plan: &PlanBudget) -> Tokens {
    plan.weekly_tokens.percent(plan.reviewer_share_pct)
}

/// A window with what is charged in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// The window.
    pub window: Window,
    /// What was used, and what open rows reserve, in the window's unit.
    pub charged: u64,
}

impl Measured {
    /// Adds up those of `charges` (oldest first) that lie in `window` at `now`.
    pub fn of(window: Window, charges: &[Charge], now: Timestamp) -> Self {
        let inside = window.inside(charges, now).iter();
        let charged = inside.fold(0_u64, |sum, charge| sum.saturating_add(window.part(charge)));
        Self { window, charged }
    }

    /// What may still be reserved.
    pub fn left(self) -> u64 {
        self.window.limit.saturating_sub(self.charged)
    }

    /// Whether a run that reserves `need` has room.
    pub fn has_room(self, need: Cost) -> bool {
        self.left() >= self.window.kind.amount(need)
    }

    /// The rung of the ladder that this window alone asks for.
    pub fn mode(self) -> Mode {
        let (charged, limit) = (u128::from(self.charged), u128::from(self.window.limit));
        let reached = |percent: &u32| charged * 100 >= u128::from(*percent) * limit;
        let rung = LADDER.iter().find(|(percent, _)| reached(percent));
        rung.map_or(Mode::Full, |(_, mode)| *mode)
    }

    /// Whether an automatic run, or a requested one, that reserves `need` is admitted by it.
    pub fn admits(self, need: Cost, requested: bool) -> bool {
        self.has_room(need) && (requested || self.mode() < Mode::MentionOnly)
    }
}
