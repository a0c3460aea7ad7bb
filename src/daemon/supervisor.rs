//! Keeps a thread's work going: a panic or an error restarts it after a growing pause and takes
//! nothing else down.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::clock::{Clock, Stop};

const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A life this long shows that the cause is gone: the next pause is short again.
const HEALTHY: Duration = Duration::from_secs(600);

/// Runs `life` until it returns `Ok`, which it does when `stop` is set. `life` gets the number of its
/// start, counted from 0, to make new names from.
pub fn keep_alive<E: Display>(
    name: &str,
    clock: &dyn Clock,
    stop: &Stop,
    mut life: impl FnMut(u32) -> Result<(), E>,
) {
    let mut pause = FIRST_PAUSE;
    for start in 0.. {
        let born = clock.elapsed();
        match catch_unwind(AssertUnwindSafe(|| life(start))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => log::error!("{name} failed: {error}"),
            Err(_) => {
                log::error!("{name} panicked; this is a defect of prwarden, please report it")
            }
        }
        if clock.elapsed().saturating_sub(born) >= HEALTHY {
            pause = FIRST_PAUSE;
        }
        if stop.is_set() {
            return;
        }
        log::warn!("{name} starts again in {} s", pause.as_secs());
        clock.wait(pause, stop);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{TestClock, Timestamp};

    #[test]
    fn a_panicking_life_is_restarted_after_growing_pauses() {
        let clock = TestClock::at(Timestamp::EPOCH);
        let mut starts = Vec::new();
        keep_alive("worker 1", &clock, &Stop::new(), |start| {
            starts.push((start, clock.now().unix()));
            match start {
                0 => panic!("first"),
                1..9 => Err("later"),
                _ => Ok(()),
            }
        });
        let times: Vec<i64> = starts.iter().map(|(_, time)| *time).collect();
        assert_eq!(times, [0, 5, 15, 35, 75, 155, 315, 615, 915, 1215]);
        assert_eq!(starts.last().map(|(start, _)| *start), Some(9));
    }

    #[test]
    fn a_long_life_resets_the_pause() {
        let clock = TestClock::at(Timestamp::EPOCH);
        let mut pauses = Vec::new();
        let mut died = None;
        keep_alive("poller", &clock, &Stop::new(), |start| {
            if let Some(died) = died {
                pauses.push(clock.now().since(died).as_secs());
            }
            clock.advance(if start == 2 { HEALTHY } else { Duration::ZERO });
            died = Some(clock.now());
            if start < 4 { Err("dies") } else { Ok(()) }
        });
        assert_eq!(pauses, [5, 10, 5, 10]);
    }

    #[test]
    fn a_stop_ends_the_restarts() {
        let clock = TestClock::at(Timestamp::EPOCH);
        let stop = Stop::new();
        let mut starts = 0;
        keep_alive("worker 1", &clock, &stop, |_| {
            starts += 1;
            stop.set();
            Err("dies")
        });
        assert_eq!(starts, 1);
    }
}
