//! Failures on demand, and holding a request at an exact moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use regex::Regex;

/// Which requests.
#[derive(Debug, Clone)]
pub struct Matcher {
    method: Option<&'static str>,
    part: String,
    pattern: Option<Regex>,
    skip: u32,
}

impl Matcher {
    /// Requests of any method whose path and query contain `part`.
    pub fn any(part: &str) -> Self {
        Self {
            method: None,
            part: part.to_owned(),
            pattern: None,
            skip: 0,
        }
    }

    /// GET requests whose path and query contain `part`.
    pub fn get(part: &str) -> Self {
        Self::method("GET", part)
    }

    /// POST requests whose path and query contain `part`.
    pub fn post(part: &str) -> Self {
        Self::method("POST", part)
    }

    /// PATCH requests whose path and query contain `part`.
    pub fn patch(part: &str) -> Self {
        Self::method("PATCH", part)
    }

    /// DELETE requests whose path and query contain `part`.
    pub fn delete(part: &str) -> Self {
        Self::method("DELETE", part)
    }

    fn method(method: &'static str, part: &str) -> Self {
        Self {
            method: Some(method),
            ..Self::any(part)
        }
    }

    /// Of these, the ones whose path and query `pattern` matches too.
    pub fn matching(self, pattern: Regex) -> Self {
        Self {
            pattern: Some(pattern),
            ..self
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
        let named = self.method.is_none_or(|wanted| wanted == method)
            && target.contains(&self.part)
            && self
                .pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(target));
        if named && self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        named
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
        /// The body: JSON when it starts like it, else HTML.
        body: String,
    },
    /// Nothing is done; the answer points elsewhere, as for a renamed or transferred repository.
    Redirect {
        /// 301, 302, 307 or 308.
        code: u16,
        /// Where to: absolute, or a path on the double itself.
        location: String,
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
    /// What was asked is done; the answer comes with these headers, in place of its own of the same
    /// names.
    WithHeaders(Vec<(String, String)>),
}

/// When a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before anything is done.
    Before,
    /// When it is done, before the answer is sent.
    AfterApplied,
}

/// What becomes of a request at a moment where it could be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// It goes on.
    Open,
    /// Its connection is cut.
    Cut,
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
    /// What the test decided.
    decided: Option<Passage>,
}

impl Faults {
    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, fault: Fault) {
        self.armed().faults.push(fault);
    }

    /// How many requests are still to fail.
    pub(super) fn left(&self) -> u32 {
        self.armed().faults.iter().map(|fault| fault.times).sum()
    }

    /// Lets nothing fail any more.
    pub(super) fn clear(&self) {
        self.armed().faults.clear();
    }

    /// The failure of this request, if it is to fail.
    pub(super) fn take(&self, method: &str, target: &str) -> Option<Action> {
        let mut armed = self.armed();
        let mut live = armed.faults.iter_mut().filter(|fault| fault.times > 0);
        let fault = live.find_map(|fault| fault.matcher.takes(method, target).then_some(fault))?;
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
                decided: None,
            },
        );
        Hold {
            faults: Arc::clone(self),
            id,
        }
    }

    /// Parks the calling thread when this request is held at `moment`.
    pub(super) fn pass(&self, method: &str, target: &str, moment: Moment) -> Passage {
        let mut armed = self.armed();
        let found = armed.holds.iter_mut().find_map(|(id, held)| {
            let ours = !held.taken && held.moment == moment && held.matcher.takes(method, target);
            ours.then(|| {
                held.taken = true;
                *id
            })
        });
        let Some(id) = found else {
            return Passage::Open;
        };
        self.changed.notify_all();
        loop {
            if armed.closed {
                return Passage::Cut;
            }
            if let Some(decided) = armed.holds.get(&id).and_then(|held| held.decided) {
                armed.holds.remove(&id);
                return decided;
            }
            armed = self
                .changed
                .wait(armed)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for `time`, or until the double ends.
    pub(super) fn delay(&self, time: Duration) {
        let waited = self
            .changed
            .wait_timeout_while(self.armed(), time, |armed| !armed.closed);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends every wait: the double ends.
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
        self.decide(Passage::Open);
    }

    /// Cuts the request's connection: held before it is handled, it never is; held after, its answer
    /// is lost.
    pub fn cut(self) {
        self.decide(Passage::Cut);
    }

    /// The first decision counts; a hold that no request has reached is off.
    fn decide(&self, passage: Passage) {
        let mut armed = self.faults.armed();
        match armed.holds.get_mut(&self.id) {
            Some(held) if held.taken => {
                held.decided.get_or_insert(passage);
            }
            _ => drop(armed.holds.remove(&self.id)),
        }
        self.faults.changed.notify_all();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.decide(Passage::Open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_needs_method_part_and_pattern_and_skips_what_it_is_told_to() {
        let digits = Regex::new(r"/issues/\d+/comments$").unwrap();
        let mut matcher = Matcher::post("/issues/").matching(digits).after(1);
        let target = "/repos/o/r/issues/7/comments";
        assert!(!matcher.takes("GET", target));
        assert!(!matcher.takes("POST", "/repos/o/r/issues/x/comments"));
        assert!(!matcher.takes("POST", "/repos/o/r/pulls"));
        assert!(!matcher.takes("POST", target), "the first is skipped");
        assert!(matcher.takes("POST", target));
        assert!(Matcher::any("pulls").takes("PUT", "/pulls"));
    }

    #[test]
    fn a_fault_hits_as_often_as_it_says_and_the_older_one_first() {
        let faults = Faults::default();
        let arm = |times, code| {
            faults.add(Fault {
                matcher: Matcher::any("/x"),
                times,
                action: Action::Redirect {
                    code,
                    location: String::new(),
                },
            });
        };
        arm(2, 301);
        arm(1, 302);
        let mut codes = Vec::new();
        while let Some(Action::Redirect { code, .. }) = faults.take("GET", "/x") {
            codes.push(code);
        }
        assert_eq!(codes, [301, 301, 302]);
        assert_eq!(faults.left(), 0);
    }

    #[test]
    fn the_end_of_the_double_ends_holds_and_delays() {
        let faults = Arc::new(Faults::default());
        let hold = faults.hold(Matcher::any("/x"), Moment::Before);
        let waiting = {
            let faults = Arc::clone(&faults);
            std::thread::spawn(move || faults.pass("GET", "/x", Moment::Before))
        };
        assert!(hold.wait_until_parked(Duration::from_secs(60)));
        faults.close();
        assert_eq!(waiting.join().unwrap(), Passage::Cut);
        faults.delay(Duration::from_secs(3600));
    }
}
