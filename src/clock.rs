//! Time as a value that is handed in: code that decides by time takes a [`Clock`], so that tests
//! move it and nothing waits for real.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A moment in UTC with microseconds.
///
/// Its text is what the store holds: `2026-11-01T09:05:00.123456+00:00`, always of this length, so
/// that texts sort as the moments occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(jiff::Timestamp);

/// Why a text is not a moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time with an offset such as 2026-11-01T09:05:00Z")]
pub struct TimestampError(String);

impl Timestamp {
    /// 1970-01-01, the earliest moment in use.
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// Whole seconds since 1970 (as `x-ratelimit-reset` gives them), held inside the range of years.
    pub fn from_unix(seconds: i64) -> Self {
        let limit = if seconds < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        Self(jiff::Timestamp::from_second(seconds).unwrap_or(limit))
    }

    /// Whole seconds since 1970, rounded down.
    pub fn unix(self) -> i64 {
        self.0.as_microsecond().div_euclid(1_000_000)
    }

    /// This moment and `span`, held inside the range of years.
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.checked_add(span).unwrap_or(jiff::Timestamp::MAX))
    }

    /// This moment less `span`, held inside the range of years.
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.checked_sub(span).unwrap_or(jiff::Timestamp::MIN))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        let span: SignedDuration = self.0.duration_since(earlier.0);
        Duration::try_from(span).unwrap_or(Duration::ZERO)
    }

    /// The same moment without its fraction of a second. GitHub stamps whole seconds.
    pub fn whole_second(self) -> Self {
        Self::from_unix(self.unix())
    }

    /// `2026-11-01 09:05 UTC`, for people.
    pub fn to_minute(self) -> String {
        self.0.strftime("%Y-%m-%d %H:%M UTC").to_string()
    }

    /// `2026-11-01T09:05:00Z`, as GitHub's query parameters take it.
    pub fn to_github(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The moment as jiff has it, for formats of other protocols.
    pub fn as_jiff(self) -> jiff::Timestamp {
        self.0
    }
}

impl From<jiff::Timestamp> for Timestamp {
    /// Cuts to microseconds, which is what the store keeps.
    fn from(time: jiff::Timestamp) -> Self {
        Self(jiff::Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// ISO 8601 (RFC 3339) with `Z` or a numeric offset, with or without a fraction. A text without
    /// an offset is refused: it does not name a moment.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(Self::from)
            .map_err(|_| TimestampError(text.chars().take(60).collect()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00"))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: String) -> Result<Self, TimestampError> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

/// Where time comes from, and how one waits.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The moment now, as far as the machine knows.
    fn now(&self) -> Timestamp;

    /// How much time has passed since a moment that stays the same while the process lives. Setting
    /// the clock does not change it, and sleep of the machine counts.
    fn elapsed(&self) -> Duration;

    /// Waits for `span` or until `stop` is set, whichever comes first.
    fn wait(&self, span: Duration, stop: &Stop) -> Waited;
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The time is over.
    Elapsed,
    /// The program is to stop.
    Stopped,
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from(jiff::Timestamp::now())
    }

    fn elapsed(&self) -> Duration {
        // clock_gettime(2) fails for clocks that a kernel lacks; this one is there since Linux 2.6.39.
        let time = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
        time.unwrap_or_default()
    }

    fn wait(&self, span: Duration, stop: &Stop) -> Waited {
        stop.wait(span)
    }
}

/// A clock that stands still until it is moved. A wait moves it and returns at once.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<Mutex<(Timestamp, Duration)>>);

impl TestClock {
    /// A clock that stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new((start, Duration::ZERO))))
    }

    /// Sets it to `time`, also backwards. No time passes.
    pub fn set(&self, time: Timestamp) {
        lock(&self.0).0 = time;
    }

    /// Moves forward.
    pub fn advance(&self, span: Duration) {
        let mut time = lock(&self.0);
        *time = (time.0.plus(span), time.1.saturating_add(span));
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        lock(&self.0).0
    }

    fn elapsed(&self) -> Duration {
        lock(&self.0).1
    }

    fn wait(&self, span: Duration, stop: &Stop) -> Waited {
        if stop.is_set() {
            return Waited::Stopped;
        }
        self.advance(span);
        Waited::Elapsed
    }
}

/// Notices when somebody sets the clock.
#[derive(Debug)]
pub struct ClockWatch {
    now: Timestamp,
    elapsed: Duration,
}

/// How the clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSet {
    /// To an earlier time, by so much.
    Back(Duration),
    /// To a later time, by so much.
    Ahead(Duration),
}

impl ClockWatch {
    /// Deviations below this are corrections in the clock's normal course.
    const TOLERANCE: Duration = Duration::from_secs(60);

    /// Begins to watch `clock`.
    pub fn new(clock: &dyn Clock) -> Self {
        let (now, elapsed) = (clock.now(), clock.elapsed());
        Self { now, elapsed }
    }

    /// Whether the clock was set by more than a minute since the last look.
    pub fn look(&mut self, clock: &dyn Clock) -> Option<ClockSet> {
        let expected = self.now.plus(clock.elapsed().saturating_sub(self.elapsed));
        *self = Self::new(clock);
        let (back, ahead) = (expected.since(self.now), self.now.since(expected));
        if back > Self::TOLERANCE {
            Some(ClockSet::Back(back))
        } else {
            (ahead > Self::TOLERANCE).then_some(ClockSet::Ahead(ahead))
        }
    }
}

impl fmt::Display for ClockSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (direction, span) = match self {
            Self::Back(span) => ("back", span),
            Self::Ahead(span) => ("ahead", span),
        };
        write!(f, "set {direction} by {} s", span.as_secs())
    }
}

/// A request to stop that any number of threads watch. Setting it wakes every wait at once.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// A stop that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody who watches to stop. Can't be taken back.
    pub fn set(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    /// Whether somebody asked.
    pub fn is_set(&self) -> bool {
        *lock(&self.0.0)
    }

    /// Waits in real time for `span` or until the stop is set.
    pub fn wait(&self, span: Duration) -> Waited {
        let (set, _) = self
            .0
            .1
            .wait_timeout_while(lock(&self.0.0), span, |set| !*set)
            .unwrap_or_else(PoisonError::into_inner);
        if *set {
            Waited::Stopped
        } else {
            Waited::Elapsed
        }
    }
}

/// Locks, also after a panic elsewhere: the values behind these locks are always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_form_is_written_in_the_one_sortable_form() {
        let wanted = "2026-11-01T09:05:00.000000+00:00";
        for text in [
            "2026-11-01T09:05:00Z",
            "2026-11-01T09:05:00+00:00",
            "2026-11-01T09:05:00.000000Z",
            "2026-11-01T10:05:00+01:00",
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), wanted);
        }
        let micro = "2026-11-01T09:05:00.123456+00:00";
        assert_eq!(micro.parse::<Timestamp>().unwrap().to_string(), micro);
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        for text in ["2026-11-01T09:05:00", "2026-11-01", "", "now", "1234567890"] {
            assert!(text.parse::<Timestamp>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn differences_are_never_negative() {
        let early = Timestamp::from_unix(100);
        let late = Timestamp::from_unix(130);
        assert_eq!(late.since(early), Duration::from_secs(30));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn the_watch_tells_a_set_clock_from_passing_time() {
        let clock = TestClock::at(Timestamp::from_unix(1_800_000_000));
        let mut watch = ClockWatch::new(&clock);
        clock.advance(Duration::from_secs(90_000));
        assert_eq!(watch.look(&clock), None);
        let hour = Duration::from_secs(3600);
        clock.set(clock.now().minus(hour));
        assert_eq!(watch.look(&clock), Some(ClockSet::Back(hour)));
        assert_eq!(watch.look(&clock), None, "said once");
        clock.advance(hour);
        clock.set(clock.now().plus(24 * hour));
        let told = watch.look(&clock).unwrap();
        assert_eq!(told.to_string(), "set ahead by 86400 s");
        clock.set(clock.now().minus(Duration::from_secs(60)));
        assert_eq!(watch.look(&clock), None);
    }

    #[test]
    fn the_systems_clock_tells_passing_time() {
        let before = SystemClock.elapsed();
        std::thread::sleep(Duration::from_millis(5));
        assert!(SystemClock.elapsed() - before >= Duration::from_millis(5));
    }

    #[test]
    fn a_set_stop_ends_every_wait() {
        let stop = Stop::new();
        let watcher = stop.clone();
        let thread = std::thread::spawn(move || watcher.wait(Duration::from_secs(600)));
        stop.set();
        assert_eq!(thread.join().unwrap(), Waited::Stopped);
        let clock = TestClock::at(Timestamp::EPOCH);
        assert_eq!(clock.wait(Duration::from_secs(5), &stop), Waited::Stopped);
    }
}
