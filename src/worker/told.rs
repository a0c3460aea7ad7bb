//! What the operator was told of refusals, so that each is told once and not at every look.

use std::collections::BTreeSet;

use crate::budget::{Refusal, Scope};

/// The states of refusal in force that were told. Shared by all workers of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told(BTreeSet<String>);

impl Told {
    /// Those that were told before, by their [`Refusal::state`].
    pub fn new(states: BTreeSet<String>) -> Self {
        Self(states)
    }

    /// The states, to be kept.
    pub fn states(&self) -> &BTreeSet<String> {
        &self.0
    }

    /// Which of `refused`, all that a look found, are news. Forgets what no longer holds.
    pub fn news<'a>(&mut self, refused: &'a [Refusal]) -> Vec<&'a Refusal> {
        let known = std::mem::take(&mut self.0);
        let mut news = Vec::new();
        for refusal in refused {
            let state = refusal.state();
            if !known.contains(&state) && !self.0.contains(&state) {
                news.push(refusal);
            }
            self.0.insert(state);
        }
        news
    }

    /// A run that spends was admitted: what held for all of them does not hold any more.
    pub fn admitted(&mut self) {
        let all = Scope::All.to_string();
        self.0.retain(|state| !state.starts_with(&all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Reason, WindowKind};
    use crate::clock::Timestamp;

    fn no_room(left: u64) -> Refusal {
        Refusal {
            scope: Scope::All,
            reason: Reason::NoRoom {
                window: WindowKind::Session,
                left,
                needed: 100,
            },
            until: Some(Timestamp::from_unix(i64::try_from(left).unwrap())),
        }
    }

    fn requests_only() -> Refusal {
        Refusal {
            scope: Scope::Automatic,
            reason: Reason::MentionOnly {
                window: WindowKind::Session,
            },
            until: None,
        }
    }

    #[test]
    fn a_state_is_news_once_whatever_its_amounts() {
        let mut told = Told::default();
        assert_eq!(told.news(&[no_room(5), requests_only()]).len(), 2);
        assert!(told.news(&[no_room(4), requests_only()]).is_empty());
        assert!(told.news(&[no_room(3)]).is_empty());
        assert_eq!(told.news(&[requests_only()]).len(), 1, "it had passed");
    }

    #[test]
    fn an_admitted_run_ends_what_held_for_all() {
        let mut told = Told::default();
        told.news(&[no_room(5), requests_only()]);
        told.admitted();
        assert_eq!(told.news(&[no_room(5), requests_only()]), [&no_room(5)]);
    }
}
