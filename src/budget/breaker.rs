//! The breaker: what happens after the account's own limit was met. Pure.
//!
//! The operator's limits are estimates. When the model's vendor says that the account is used up, the
//! estimate was too high: nothing is admitted for 5 h, and every window shrinks by a tenth. Each clean
//! 5 h after that give a point back.

use std::time::Duration;

use crate::clock::Timestamp;

/// How long nothing is admitted, and how long a clean period is.
const PERIOD: Duration = Duration::from_secs(5 * 3600);

/// The breaker's state as the store keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Percent of the configured limits that held right after the last trip.
    pub calibrated_pct: u32,
    /// Until when nothing is admitted.
    pub tripped_until: Option<Timestamp>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            calibrated_pct: 100,
            tripped_until: None,
        }
    }
}

impl Breaker {
    /// Until when nothing is admitted, if that is still to come. A clock that was set back can't
    /// lengthen it beyond a whole period.
    pub fn blocks_until(self, now: Timestamp) -> Option<Timestamp> {
        let until = self.tripped_until.filter(|until| *until > now)?;
        Some(until.min(now.plus(PERIOD)))
    }

    /// Percent of the configured limits that hold at `now`: a point more for each clean period since
    /// the last trip ended.
    pub fn percent(self, now: Timestamp) -> u32 {
        let clean = self
            .tripped_until
            .map_or(Duration::ZERO, |until| now.since(until));
        let points = u32::try_from(clean.as_secs() / PERIOD.as_secs()).unwrap_or(u32::MAX);
        self.calibrated_pct
            .clamp(1, 100)
            .saturating_add(points)
            .min(100)
    }

    /// The state after the account's limit was met at `now`.
    pub fn trip(self, now: Timestamp) -> Self {
        let calibrated_pct = (self.percent(now) * 9 / 10).max(1);
        Self {
            calibrated_pct,
            tripped_until: Some(now.plus(PERIOD)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(hours: u64) -> Timestamp {
        Timestamp::from_unix(1_800_000_000).plus(Duration::from_secs(hours * 3600))
    }

    #[test]
    fn a_trip_blocks_for_five_hours_and_shrinks_the_limits() {
        let tripped = Breaker::default().trip(at(0));
        assert_eq!(tripped.blocks_until(at(4)), Some(at(5)));
        assert_eq!(tripped.blocks_until(at(5)), None);
        assert_eq!(tripped.percent(at(5)), 90);
        assert_eq!(tripped.trip(at(5)).percent(at(10)), 81);
    }

    #[test]
    fn each_clean_period_gives_a_point_back() {
        let tripped = Breaker::default().trip(at(0));
        assert_eq!(tripped.percent(at(9)), 90);
        assert_eq!(tripped.percent(at(10)), 91);
        assert_eq!(tripped.percent(at(5 + 50)), 100);
        assert_eq!(tripped.percent(at(10_000)), 100);
    }

    #[test]
    fn a_clock_set_back_does_not_hold_the_breaker_for_longer_than_a_period() {
        let tripped = Breaker::default().trip(at(100));
        assert_eq!(tripped.blocks_until(at(0)), Some(at(5)));
        assert_eq!(tripped.percent(at(0)), 90);
    }

    proptest! {
        #[test]
        fn the_percentage_is_never_outside_of_one_to_a_hundred(
            trips in prop::collection::vec(0_u64..2000, 0..60), later in 0_u64..100_000,
        ) {
            let tripped = trips.iter().fold(Breaker::default(), |state, hours| state.trip(at(*hours)));
            prop_assert!((1..=100).contains(&tripped.percent(at(later))));
        }
    }
}
