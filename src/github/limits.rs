//! What a refusal by rate limit means: pure, but for the count of refusals in a row.

use std::time::Duration;

use super::error::LONGEST_OWN_WAIT;
use super::headers::retry_after;
use super::transport::Reply;
use crate::clock::Timestamp;

/// Shorter waits after a secondary limit have been seen to prolong it.
const SECONDARY_FLOOR: Duration = Duration::from_secs(60);

/// How long a refusal is believed at most, whatever the server or a wrong clock says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The longest wait after a secondary limit without `Retry-After`.
const SECONDARY_CEILING: Duration = Duration::from_secs(3600);

/// The primary limit as the last response told it. A server may not tell: unknown is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateState {
    /// Requests in an hour.
    pub limit: Option<u32>,
    /// Requests left in it.
    pub remaining: Option<u32>,
    /// When it starts anew.
    pub reset: Option<Timestamp>,
}

impl RateState {
    /// Takes what a response tells and keeps the rest.
    pub(super) fn update(&mut self, reply: &Reply) {
        let number = |name| {
            reply
                .header(name)
                .and_then(|value| value.parse::<u32>().ok())
        };
        self.limit = number("x-ratelimit-limit").or(self.limit);
        self.remaining = number("x-ratelimit-remaining").or(self.remaining);
        let reset = reply
            .header("x-ratelimit-reset")
            .and_then(|value| value.parse().ok());
        self.reset = reset.map(Timestamp::from_unix).or(self.reset);
    }
}

/// What a 403 or 429 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A wait that the client takes on itself.
    Wait(Duration),
    /// A wait that is the caller's to plan.
    Until { until: Timestamp, secondary: bool },
    /// Not a limit: the permission is missing.
    Permanent,
}

/// Classes a 403 or 429. `waits` counts the waits already made for this request, `in_a_row` the
/// secondary limits met in a row, `random` is any 32 random bits.
pub(super) fn classify(
    reply: &Reply,
    message: &str,
    waits: u32,
    in_a_row: u32,
    random: u32,
    now: Timestamp,
) -> Refusal {
    let message = message.to_lowercase();
    let exhausted = reply.header("x-ratelimit-remaining") == Some("0")
        || message.contains("api rate limit exceeded");
    if let Some(wait) = reply
        .header("retry-after")
        .and_then(|value| retry_after(value, now))
    {
        if wait <= LONGEST_OWN_WAIT && waits < 2 {
            return Refusal::Wait(wait);
        }
        return Refusal::Until {
            until: now.plus(wait.min(LONGEST)),
            secondary: !exhausted,
        };
    }
    if exhausted {
        let reset = reply
            .header("x-ratelimit-reset")
            .and_then(|value| value.parse().ok())
            .map(Timestamp::from_unix)
            .filter(|reset| *reset > now);
        let until = reset.unwrap_or(now.plus(SECONDARY_FLOOR));
        return Refusal::Until {
            until: until.min(now.plus(LONGEST)),
            secondary: false,
        };
    }
    let secondary = message.contains("secondary rate limit") || message.contains("abuse");
    if secondary || reply.status == 429 {
        let until = now.plus(secondary_wait(in_a_row, random));
        return Refusal::Until {
            until,
            secondary: true,
        };
    }
    Refusal::Permanent
}

/// At least a minute, and up to twice as much with each limit in a row: full jitter above the floor.
fn secondary_wait(in_a_row: u32, random: u32) -> Duration {
    let full = SECONDARY_FLOOR
        .saturating_mul(2 << in_a_row.min(6))
        .min(SECONDARY_CEILING);
    let above = full - SECONDARY_FLOOR;
    SECONDARY_FLOOR + above.mul_f64(f64::from(random) / f64::from(u32::MAX))
}
