//! Failures on demand, and holding a request at an exact moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Which requests.
#[derive(Debug, Clone)]
pub struct Matcher {
    method: &'static str,
    part: String,
    skip: u32,
}

impl Matcher {
    /// GET requests whose path and query contain `part`.
    pub fn get(part: &str) -> Self {
        Self {
            method: "GET",
            part: part.to_owned(),
            skip: 0,
        }
    }

    /// POST requests whose path and query contain `part`.
    pub fn post(part: &str) -> Self {
        Self {
            method: "POST",
            part: part.to_owned(),
            skip: 0,
        }
    }

    /// The same, but for the first `count` of them.
    pub fn after(self, count: u32) -> Self {
        Self {
            skip: count,
            ..self
        }
    }

    /// Whether it names this request; counts down what is skipped.
    fn takes(&mut self, method: &str, target: &str) -> bool {
        if self.method != method || !target.contains(&self.part) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        true
    }
}

/// A failure.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Of which requests.
    pub matcher: Matcher,
    /// How many of them.
    pub times: u32,
    /// How they fail.
    pub action: Action,
}

/// How a request fails.
#[derive(Debug, Clone)]
pub enum Action {
    /// Nothing is done; this is the answer.
    Status {
        /// The status.
        code: u16,
        /// More headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// The answer comes late.
    Delay(Duration),
    /// The connection is cut before anything is done.
    ResetBefore,
    /// What was asked is done, and the connection is cut without an answer.
    ResetAfter,
    /// What was asked is done, and half of the answer's body comes.
    TruncateBody,
    /// A page of HTML comes with status 200.
    Html,
    /// Something that is not JSON comes with status 200.
    BadJson,
    /// The answer comes without its ETag, as through a proxy that strips it.
    StripEtag,
}

/// When a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before anything is done.
    Before,
    /// When it is done, before the answer is sent.
    AfterApplied,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    state: Mutex<Armed>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Armed {
    faults: Vec<Fault>,
    holds: BTreeMap<u64, Held>,
    next: u64,
    closed: bool,
}

#[derive(Debug)]
struct Held {
    matcher: Matcher,
    moment: Moment,
    /// A request has come; further ones pass.
    taken: bool,
    released: bool,
}

impl Faults {
    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, fault: Fault) {
        self.armed().faults.push(fault);
    }

    /// The failure of this request, if it is to fail.
    pub(super) fn take(&self, method: &str, target: &str) -> Option<Action> {
        let mut armed = self.armed();
        let at = armed
            .faults
            .iter_mut()
            .position(|fault| fault.times > 0 && fault.matcher.takes(method, target))?;
        let fault = armed.faults.get_mut(at)?;
        fault.times -= 1;
        Some(fault.action.clone())
    }

    pub(super) fn hold(self: &Arc<Self>, matcher: Matcher, moment: Moment) -> Hold {
        let mut armed = self.armed();
        let id = armed.next;
        armed.next += 1;
        armed.holds.insert(
            id,
            Held {
                matcher,
                moment,
                taken: false,
                released: false,
            },
        );
        Hold {
            faults: Arc::clone(self),
            id,
        }
    }

    /// Parks the calling thread when this request is held at `moment`.
    pub(super) fn pass(&self, method: &str, target: &str, moment: Moment) {
        let mut armed = self.armed();
        let found = armed.holds.iter_mut().find_map(|(id, held)| {
            let ours = !held.taken && held.moment == moment && held.matcher.takes(method, target);
            ours.then(|| {
                held.taken = true;
                *id
            })
        });
        let Some(id) = found else { return };
        self.changed.notify_all();
        while !armed.closed && armed.holds.get(&id).is_some_and(|held| !held.released) {
            armed = self
                .changed
                .wait(armed)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets everything go on: the double ends.
    pub(super) fn close(&self) {
        self.armed().closed = true;
        self.changed.notify_all();
    }
}

/// A request that is, or will be, held. Dropping it lets the request go on.
#[derive(Debug)]
pub struct Hold {
    faults: Arc<Faults>,
    id: u64,
}

impl Hold {
    /// Waits until a request is held; false when none came in time.
    pub fn wait_until_parked(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut armed = self.faults.armed();
        while !armed.holds.get(&self.id).is_some_and(|held| held.taken) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.faults.changed.wait_timeout(armed, left);
            armed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Lets the request go on.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(held) = self.faults.armed().holds.get_mut(&self.id) {
            held.released = true;
        }
        self.faults.changed.notify_all();
        self.faults.armed().holds.remove(&self.id);
    }
}
