//! Rolling windows and the ladder: pure.

use std::fmt;
use std::time::Duration;

use super::Mode;
use crate::clock::Timestamp;
use crate::config::PlanBudget;
use crate::ids::Tokens;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

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
    /// A seventh of the plan's week in 24 h.
    Daily,
    /// The plan's 7 d.
    Weekly,
    /// One account's part of the week.
    Contributor,
}

impl fmt::Display for WindowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session (5 h)",
            Self::Daily => "daily (24 h)",
            Self::Weekly => "weekly (7 d)",
            Self::Contributor => "contributor (7 d)",
        })
    }
}

/// A limit over the last so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Which limit.
    pub kind: WindowKind,
    /// How far back it reaches.
    pub duration: Duration,
    /// The most that may be charged in it.
    pub limit: Tokens,
}

impl Window {
    /// The windows that hold for everybody: session, daily, weekly.
    pub fn of_plan(plan: &PlanBudget) -> [Self; 3] {
        let share = plan.reviewer_share_pct;
        let week = plan.weekly_tokens.percent(share);
        let session = plan.session_tokens.percent(share);
        [
            Self {
                kind: WindowKind::Session,
                duration: 5 * HOUR,
                limit: session,
            },
            Self {
                kind: WindowKind::Daily,
                duration: DAY,
                limit: Tokens(week.0 / 7),
            },
            Self {
                kind: WindowKind::Weekly,
                duration: 7 * DAY,
                limit: week,
            },
        ]
    }

    /// The window of one account, when the plan limits accounts.
    pub fn of_contributor(plan: &PlanBudget) -> Option<Self> {
        let limit = plan.weekly_tokens.percent(plan.reviewer_share_pct);
        let limit = limit.percent(plan.per_contributor_pct?);
        Some(Self {
            kind: WindowKind::Contributor,
            duration: 7 * DAY,
            limit,
        })
    }

    /// The same window with `percent` of its limit, after the breaker has shrunk it.
    pub fn scaled(self, percent: u32) -> Self {
        Self {
            limit: self.limit.percent(percent),
            ..self
        }
    }

    /// A row counts while it was reserved after this moment.
    pub fn start(self, now: Timestamp) -> Timestamp {
        now.minus(self.duration)
    }
}

/// A window with what is charged in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// The window.
    pub window: Window,
    /// Used tokens, and reserved ones of open rows.
    pub charged: Tokens,
}

impl Measured {
    /// What may still be reserved.
    pub fn left(self) -> Tokens {
        self.window.limit.minus(self.charged)
    }

    /// The rung of the ladder that this window alone asks for.
    pub fn mode(self) -> Mode {
        let (charged, limit) = (u128::from(self.charged.0), u128::from(self.window.limit.0));
        let reached = |percent: &u32| charged * 100 >= u128::from(*percent) * limit;
        let rung = LADDER.iter().find(|(percent, _)| reached(percent));
        rung.map_or(Mode::Full, |(_, mode)| *mode)
    }

    /// The most that may be charged for an automatic review to be admitted, or a requested one.
    fn ceiling(self, max_run: Tokens, requested: bool) -> Tokens {
        let room = self.window.limit.minus(max_run);
        if requested {
            room
        } else {
            room.min(Tokens(below_mention_only(self.window.limit.0)))
        }
    }

    /// When a run of `max_run` fits, if nothing else is charged: the moment when enough of `charges`
    /// (oldest first) has left the window. `None` when it never can.
    pub fn fits_at(
        self,
        charges: &[(Timestamp, Tokens)],
        max_run: Tokens,
        requested: bool,
    ) -> Option<Timestamp> {
        if max_run > self.window.limit {
            return None;
        }
        let ceiling = self.ceiling(max_run, requested);
        let mut left = charges
            .iter()
            .fold(Tokens::ZERO, |sum, (_, tokens)| sum.plus(*tokens));
        for (reserved_at, tokens) in charges {
            left = left.minus(*tokens);
            if left <= ceiling {
                return Some(reserved_at.plus(self.window.duration));
            }
        }
        None
    }
}

/// The largest amount that is still below 85 % of `limit`.
fn below_mention_only(limit: u64) -> u64 {
    let threshold = (u128::from(limit) * 85).div_ceil(100);
    u64::try_from(threshold.saturating_sub(1)).unwrap_or(u64::MAX)
}
