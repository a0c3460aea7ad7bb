//! Which pull requests of a repository are open, as far as that is known: pure.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::ids::PrNumber;

/// What the last new response of `/pulls` said. It only ever saves a request: whatever is not known
/// for certain is let through, and the worker asks GitHub before anything is spent.
#[derive(Debug, Default)]
pub struct OpenPulls {
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    labels: HashMap<PrNumber, Vec<String>>,
    complete: bool,
    as_of: Timestamp,
}

impl OpenPulls {
    /// Takes what a response listed. `complete` is false when more may be open than it lists.
    pub fn replace(
        &mut self,
        labels: HashMap<PrNumber, Vec<String>>,
        complete: bool,
        as_of: Timestamp,
    ) {
        self.known = Some(Known {
            labels,
            complete,
            as_of,
        });
    }

    /// A 304 says that the list still holds.
    pub fn confirm(&mut self, as_of: Timestamp) {
        if let Some(known) = &mut self.known {
            known.as_of = as_of;
        }
    }

    /// Whether `number` was open when something happened there at `time`; `None` when that is not
    /// known: no list yet, a list that is cut, or an event younger than the list, which a pull
    /// request opened or reopened meanwhile would be missing from.
    pub fn is_open(&self, number: PrNumber, time: Timestamp) -> Option<bool> {
        let known = self.known.as_ref()?;
        if known.labels.contains_key(&number) {
            return Some(true);
        }
        (known.complete && time < known.as_of.whole_second()).then_some(false)
    }

    /// The labels of an open pull request, when they are known.
    pub fn labels(&self, number: PrNumber) -> &[String] {
        let known = self
            .known
            .as_ref()
            .and_then(|known| known.labels.get(&number));
        known.map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: i64) -> PrNumber {
        PrNumber::try_from(n).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(seconds)
    }

    fn listed(complete: bool) -> OpenPulls {
        let mut open = OpenPulls::default();
        open.replace(
            HashMap::from([(number(1), vec!["wip".to_owned()])]),
            complete,
            at(100),
        );
        open
    }

    #[test]
    fn nothing_is_known_before_the_first_list() {
        assert_eq!(OpenPulls::default().is_open(number(1), at(0)), None);
    }

    #[test]
    fn a_complete_list_tells_open_from_closed() {
        let open = listed(true);
        assert_eq!(open.is_open(number(1), at(500)), Some(true));
        assert_eq!(open.is_open(number(2), at(99)), Some(false));
        assert_eq!(open.labels(number(1)), ["wip"]);
    }

    #[test]
    fn what_a_cut_list_does_not_hold_is_unknown() {
        assert_eq!(listed(false).is_open(number(2), at(99)), None);
    }

    #[test]
    fn an_event_younger_than_the_list_may_be_on_a_newly_opened_pull_request() {
        let mut open = listed(true);
        assert_eq!(open.is_open(number(2), at(100)), None);
        open.confirm(at(200));
        assert_eq!(open.is_open(number(2), at(100)), Some(false));
    }
}
