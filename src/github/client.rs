//! Requests with everything around them: redirects, limits, repetition, spacing, accounting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use ureq::http::Method;
use url::Url;

use super::error::ApiError;
use super::limits::{self, RateState, Refusal};
use super::transport::{Broken, Call, LIMIT, Reply, Transport};
use crate::clock::{Clock, Stop, Waited};
use crate::config::GithubConfig;
use crate::output;
use crate::secret::Secret;

/// How often a read is repeated after a broken connection or a server's failure.
const READ_REPEATS: u32 = 3;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// GitHub asks for a second between requests that create content.
const WRITE_SPACING: Duration = Duration::from_secs(1);

/// Whose budget of requests a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The poll thread.
    Poll,
    /// Reviews.
    Review,
    /// Fixes.
    Fix,
    /// Merges.
    Merge,
}

/// Talks to GitHub with one token. Clones share connections, limits and accounts.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Transport,
    /// The API's root without a trailing slash.
    root: String,
    clock: Arc<dyn Clock>,
    stop: Stop,
    state: Mutex<State>,
    /// Held while a write waits for its turn.
    last_write: Mutex<Option<Duration>>,
}

#[derive(Debug, Default)]
struct State {
    rate: RateState,
    /// Secondary limits met in a row, by reads and by writes: they are apart on GitHub's side too.
    secondary_in_a_row: [u32; 2],
    requests: BTreeMap<Role, u64>,
}

/// A response with the address that finally gave it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    /// The name of the request, for errors.
    pub(super) request: String,
    /// The address that gave it, which relative links start from.
    pub(super) url: Url,
    /// Where a permanent redirect led.
    pub(super) moved_to: Option<String>,
}

impl Client {
    /// A client for the API that `config` names. No connection is made yet.
    pub fn new(config: &GithubConfig, token: Secret, clock: Arc<dyn Clock>, stop: Stop) -> Self {
        let root = config.api_url.as_str().trim_end_matches('/').to_owned();
        let transport = Transport::new(config, token, stop.clone());
        let (state, last_write) = (Mutex::default(), Mutex::default());
        Self {
            shared: Arc::new(Shared {
                transport,
                root,
                clock,
                stop,
                state,
                last_write,
            }),
        }
    }

    /// The primary limit as the last response told it.
    pub fn rate(&self) -> RateState {
        self.state().rate
    }

    /// How many requests each role has made.
    pub fn requests(&self) -> BTreeMap<Role, u64> {
        self.state().requests.clone()
    }

    pub(super) fn url(&self, path: &str) -> Result<Url, ApiError> {
        let text = format!("{}{path}", self.shared.root);
        Url::parse(&text).map_err(|error| ApiError::Setup(format!("{text}: {error}")))
    }

    /// Whether `url` is on the host that may see the token.
    fn is_ours(&self, url: &Url) -> bool {
        Url::parse(&self.shared.root).is_ok_and(|root| root.origin() == url.origin())
    }

    /// A GET. Broken connections and 5xx are repeated with growing pauses.
    pub(super) fn read(
        &self,
        url: Url,
        etag: Option<&str>,
        role: Role,
    ) -> Result<Answer, ApiError> {
        let call = Call {
            method: Method::GET,
            url,
            etag,
            body: None,
        };
        let mut waits = 0;
        for repeat in 0.. {
            let failed = match self.follow(call.clone(), role, &mut waits) {
                Ok(answer) if answer.reply.status >= 500 => {
                    let Answer { reply, request, .. } = answer;
                    ApiError::Unreachable {
                        request,
                        reason: format!("it answered {}", reply.status),
                    }
                }
                Err(ApiError::OutcomeUnknown { request, reason }) => {
                    ApiError::Unreachable { request, reason }
                }
                Err(error @ ApiError::Unreachable { .. }) => error,
                other => return other,
            };
            if self.shared.stop.is_set() {
                return Err(ApiError::Stopped);
            }
            if repeat == READ_REPEATS {
                return Err(failed);
            }
            log::debug!("{failed}; repeated");
            self.wait(pause(repeat))?;
        }
        Err(ApiError::Stopped)
    }

    /// A write, spaced from the one before. It is repeated only after an answer which says that
    /// nothing was done.
    pub(super) fn write(
        &self,
        method: Method,
        url: Url,
        body: &Value,
        role: Role,
    ) -> Result<Answer, ApiError> {
        let call = Call {
            method,
            url,
            etag: None,
            body: Some(body.to_string()),
        };
        let answer = self
            .follow(call, role, &mut 0)
            .map_err(|error| match error {
                // The request was carried out, only what came of it is not known.
                ApiError::TooLarge { request, limit } => ApiError::OutcomeUnknown {
                    request,
                    reason: format!("the answer is larger than {limit} bytes"),
                },
                other => other,
            })?;
        if answer.reply.status >= 500 {
            let reason = format!("GitHub answered {}", answer.reply.status);
            return Err(ApiError::OutcomeUnknown {
                request: answer.request,
                reason,
            });
        }
        Ok(answer)
    }

    /// Follows redirects on the same host: any for a read, for a write only those that keep method
    /// and body.
    fn follow(&self, mut call: Call<'_>, role: Role, waits: &mut u32) -> Result<Answer, ApiError> {
        let request = format!("{} {}", call.method, call.url.path());
        let mut moved_to = None;
        for _ in 0..=MAX_REDIRECTS {
            let reply = self.exchange(&call, &request, role, waits)?;
            let keeps = matches!(reply.status, 307 | 308);
            let moves = matches!(reply.status, 301 | 302) && call.method == Method::GET;
            if !keeps && !moves {
                return Ok(Answer {
                    reply,
                    request,
                    url: call.url,
                    moved_to,
                });
            }
            let target = reply
                .header("location")
                .and_then(|to| call.url.join(to).ok());
            let Some(target) = target else { break };
            if matches!(reply.status, 301 | 308) {
                moved_to = Some(target.path().to_owned());
            }
            call.url = target;
        }
        Err(ApiError::Redirects { request })
    }

    /// One exchange, with the waits that GitHub asks for and that are short. `waits` counts them over
    /// the whole request. The only way to the transport, and so the place that keeps the token home.
    fn exchange(
        &self,
        call: &Call<'_>,
        request: &str,
        role: Role,
        waits: &mut u32,
    ) -> Result<Reply, ApiError> {
        if !self.is_ours(&call.url) {
            let host = output::clip(call.url.host_str().unwrap_or("no host"));
            let request = request.to_owned();
            return Err(ApiError::OtherHost { request, host });
        }
        let kind = usize::from(call.body.is_some());
        loop {
            if call.body.is_some() {
                self.take_turn()?;
            }
            if self.shared.stop.is_set() {
                return Err(ApiError::Stopped);
            }
            *self.state().requests.entry(role).or_default() += 1;
            let reply = match self.shared.transport.exchange(call) {
                Ok(reply) => reply,
                Err(broken) => return Err(explain(broken, request.to_owned())),
            };
            self.state().rate.update(&reply);
            if !matches!(reply.status, 403 | 429) {
                self.state().secondary_in_a_row[kind] = 0;
                return Ok(reply);
            }
            let in_a_row = self.state().secondary_in_a_row[kind];
            let random = getrandom::u32().unwrap_or(u32::MAX);
            let now = self.shared.clock.now();
            match limits::classify(&reply, &message(&reply), *waits, in_a_row, random, now) {
                Refusal::Permanent => return Ok(reply),
                Refusal::Wait(wait) => {
                    *waits += 1;
                    self.wait(wait)?;
                }
                Refusal::Until { until, secondary } => {
                    self.state().secondary_in_a_row[kind] += u32::from(secondary);
                    let request = request.to_owned();
                    return Err(ApiError::RateLimited {
                        request,
                        until,
                        secondary,
                    });
                }
            }
        }
    }

    /// Waits until a second has passed since the last write.
    fn take_turn(&self) -> Result<(), ApiError> {
        let mut last = self
            .shared
            .last_write
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let clock = &self.shared.clock;
        if let Some(last) = *last {
            let passed = clock.elapsed().saturating_sub(last);
            self.wait(WRITE_SPACING.saturating_sub(passed))?;
        }
        *last = Some(clock.elapsed());
        Ok(())
    }

    fn wait(&self, span: Duration) -> Result<(), ApiError> {
        match self.shared.clock.wait(span, &self.shared.stop) {
            Waited::Elapsed => Ok(()),
            Waited::Stopped => Err(ApiError::Stopped),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One second doubling with each repetition, half of it random.
fn pause(repeat: u32) -> Duration {
    let full = Duration::from_secs(1 << repeat.min(5));
    let random = f64::from(getrandom::u32().unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    full / 2 + (full / 2).mul_f64(random)
}

fn explain(broken: Broken, request: String) -> ApiError {
    match broken {
        Broken::NotSent(reason) => ApiError::Unreachable { request, reason },
        Broken::MaybeSent(reason) => ApiError::OutcomeUnknown { request, reason },
        Broken::TooLarge => ApiError::TooLarge {
            request,
            limit: LIMIT,
        },
        Broken::Setup(error) => error,
    }
}

/// GitHub's words about an error, fit for one line.
pub(super) fn message(reply: &Reply) -> String {
    #[derive(Deserialize)]
    struct Basic {
        message: String,
    }
    match serde_json::from_slice::<Basic>(&reply.body) {
        Ok(basic) => output::clip(&basic.message),
        Err(_) => "no message".to_owned(),
    }
}
