//! How long a failed post waits: pure.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);

/// The wait after attempt number `attempt` (counted from 1): 30 s doubling to 1 h, of which a random
/// half is left out so that many posts do not return in step. `random` is any 32 random bits.
pub fn wait_after(attempt: u32, random: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let full = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let half = full / 2;
    (half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))).max(FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_grow_from_half_a_minute_to_an_hour() {
        let longest: Vec<u64> = (1..=9).map(|n| wait_after(n, u32::MAX).as_secs()).collect();
        assert_eq!(longest, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    }

    proptest! {
        #[test]
        fn a_wait_is_never_outside_its_bounds(attempt: u32, random: u32) {
            let wait = wait_after(attempt, random);
            prop_assert!(wait >= FIRST && wait <= LONGEST);
        }
    }
}
