//! How long to wait before a repository is polled again: pure.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::config::PollConfig;
use crate::github::RateState;

/// Requests that one poll of one repository makes.
const REQUESTS_PER_POLL: u32 = 3;

/// At or below this many remaining requests of the primary limit, polling goes to the ceiling.
const SCARCE: u32 = 50;

/// GitHub's primary limit starts anew this often.
const RATE_PERIOD: Duration = Duration::from_secs(3600);

/// What one poll of a repository found out, as far as the interval cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// At least one response was new.
    Changed,
    /// Every response was a 304.
    Unchanged,
    /// A request failed.
    Failed,
}

/// The adaptive interval of one repository.
///
/// A change snaps it to the floor; quiet and failing polls double it up to the ceiling.
#[derive(Debug, Clone)]
pub struct Interval {
    floor: Duration,
    ceiling: Duration,
    current: Duration,
}

impl Interval {
    /// The interval of one of `repositories` that share a token: the floor is high enough to keep all
    /// of them together below the configured requests per hour.
    pub fn new(config: &PollConfig, repositories: usize) -> Self {
        let requests = u64::from(REQUESTS_PER_POLL) * repositories.max(1) as u64 * 3600;
        let shared = requests.div_ceil(u64::from(config.max_requests_per_hour.max(1)));
        let floor = config.floor.max(Duration::from_secs(shared));
        Self {
            floor,
            ceiling: config.ceiling.max(floor),
            current: floor,
        }
    }

    /// How long to wait before the next poll, after one that ended at `now` with `outcome`.
    ///
    /// Scarcity is not latched: it lengthens this wait only, the next poll decides anew.
    pub fn next(&mut self, outcome: Outcome, rate: RateState, now: Timestamp) -> Duration {
        self.current = match outcome {
            Outcome::Changed => self.floor,
            Outcome::Unchanged | Outcome::Failed => (self.current * 2).min(self.ceiling),
        };
        let scarce = rate.remaining.is_some_and(|left| left <= SCARCE);
        let wait = if scarce { self.ceiling } else { self.current };
        match rate.reset {
            // Whatever a wrong clock makes of the moment, a limit starts anew within its hour.
            Some(reset) if rate.remaining == Some(0) => wait.max(reset.since(now).min(RATE_PERIOD)),
            _ => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::EPOCH;
    const PLENTY: RateState = RateState {
        limit: None,
        remaining: None,
        reset: None,
    };

    fn config(max_requests_per_hour: u32) -> PollConfig {
        PollConfig {
            floor: Duration::from_secs(10),
            ceiling: Duration::from_secs(600),
            overlap: Duration::from_secs(300),
            max_requests_per_hour,
        }
    }

    fn after(interval: &mut Interval, outcome: Outcome, rate: RateState) -> u64 {
        interval.next(outcome, rate, NOW).as_secs()
    }

    #[test]
    fn quiet_polls_double_up_to_the_ceiling_and_a_change_snaps_back() {
        let mut interval = Interval::new(&config(4000), 1);
        let waits: Vec<u64> = (0..7)
            .map(|_| after(&mut interval, Outcome::Unchanged, PLENTY))
            .collect();
        assert_eq!(waits, [20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(after(&mut interval, Outcome::Changed, PLENTY), 10);
        assert_eq!(after(&mut interval, Outcome::Failed, PLENTY), 20);
    }

    #[test]
    fn scarce_requests_force_the_ceiling_once_and_unknown_is_not_scarce() {
        let mut interval = Interval::new(&config(4000), 1);
        let scarce = RateState {
            remaining: Some(50),
            ..PLENTY
        };
        assert_eq!(after(&mut interval, Outcome::Changed, scarce), 600);
        assert_eq!(after(&mut interval, Outcome::Changed, PLENTY), 10);
        let enough = RateState {
            remaining: Some(51),
            ..PLENTY
        };
        assert_eq!(after(&mut interval, Outcome::Changed, enough), 10);
    }

    #[test]
    fn an_exhausted_limit_waits_for_its_reset() {
        let mut interval = Interval::new(&config(4000), 1);
        let reset = NOW.plus(Duration::from_secs(2000));
        let rate = RateState {
            limit: Some(5000),
            remaining: Some(0),
            reset: Some(reset),
        };
        assert_eq!(after(&mut interval, Outcome::Changed, rate), 2000);
        let behind = NOW.minus(Duration::from_secs(24 * 3600));
        assert_eq!(
            interval.next(Outcome::Changed, rate, behind),
            RATE_PERIOD,
            "our clock is a day behind"
        );
    }

    #[test]
    fn many_repositories_share_the_hourly_requests() {
        let mut interval = Interval::new(&config(3600), 1000);
        assert_eq!(after(&mut interval, Outcome::Changed, PLENTY), 3000);
        assert_eq!(after(&mut interval, Outcome::Unchanged, PLENTY), 3000);
    }
}
