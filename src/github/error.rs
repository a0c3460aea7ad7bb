//! What can come of a request, told apart by what the caller can do.

use std::time::Duration;

use crate::clock::Timestamp;

/// A request that did not bring what was asked for. `request` is its method and path.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    /// Nothing reached GitHub, or a read failed as often as it may be repeated. Trying later is safe.
    #[error("{request}: GitHub can't be reached: {reason}")]
    Unreachable {
        /// Which.
        request: String,
        /// What the network said.
        reason: String,
    },
    /// A write was sent and its fate is unknown: the connection broke, time ran out, or the server
    /// failed. It must be looked up before it is repeated.
    #[error("{request}: the outcome is unknown: {reason}")]
    OutcomeUnknown {
        /// Which.
        request: String,
        /// What happened.
        reason: String,
    },
    /// GitHub refused the request, or does not have what it names.
    #[error("{request}: GitHub answered {status} ({message}){}", remedy(*status))]
    Status {
        /// Which.
        request: String,
        /// The status.
        status: u16,
        /// GitHub's `message`, clipped.
        message: String,
    },
    /// A rate limit is reached. Nothing was done.
    #[error(
        "{request}: the {} rate limit is reached until {}",
        if *secondary { "secondary" } else { "primary" }, until.to_minute()
    )]
    RateLimited {
        /// Which.
        request: String,
        /// When the next request may be made.
        until: Timestamp,
        /// It is the limit on bursts, not the one per hour.
        secondary: bool,
    },
    /// The answer is not the JSON that was asked for: an error page, or a body that was cut.
    #[error("{request}: the answer is not valid JSON ({reason}); is a proxy in between?")]
    NotJson {
        /// Which.
        request: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The answer is larger than anything GitHub sends.
    #[error("{request}: the answer is larger than {limit} bytes")]
    TooLarge {
        /// Which.
        request: String,
        /// The most that is read.
        limit: u64,
    },
    /// The list does not end.
    #[error("{request}: the list has more than {limit} pages")]
    Endless {
        /// Which.
        request: String,
        /// The most that are read.
        limit: usize,
    },
    /// The answer points to another host. The token is not sent there.
    #[error(
        "{request}: leads to another host ({host}), which does not get the token; correct \
         github.api_url"
    )]
    OtherHost {
        /// Which.
        request: String,
        /// Where to.
        host: String,
    },
    /// The answer redirects in circles or without a target.
    #[error("{request}: too many or unusable redirects")]
    Redirects {
        /// Which.
        request: String,
    },
    /// prwarden is stopping.
    #[error("stopped")]
    Stopped,
    /// The client can't be set up.
    #[error("{0}")]
    Setup(String),
}

impl ApiError {
    /// When GitHub said that the next request may be made.
    pub fn retry_at(&self) -> Option<Timestamp> {
        match self {
            Self::RateLimited { until, .. } => Some(*until),
            _ => None,
        }
    }
}

/// What an operator can do about a status.
fn remedy(status: u16) -> &'static str {
    match status {
        301 | 302 => ": the repository has another name now, correct it in the configuration",
        401 => ": the token is wrong or expired",
        403 => ": the token lacks a permission, or the conversation is locked",
        404 => ": the name is wrong, or the token may not see it",
        _ => "",
    }
}

/// How long a wait may be that the client takes on itself.
pub(super) const LONGEST_OWN_WAIT: Duration = Duration::from_secs(60);
