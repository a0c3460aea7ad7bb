//! The hidden parts of the one comment per pull request: its marker, its state, its check-boxes. Pure.
//!
//! Everything else in the comment may be text that somebody else wrote. It holds no `<!--`, because
//! [`sanitise`](super::sanitise) lets none pass, and still readers take the last state only.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::ids::CommitSha;

/// The first line of the comment.
pub const MARKER: &str = "<!-- prwarden:sticky -->";

const STATE_START: &str = "<!-- prwarden:state ";
const OPTION_START: &str = "<!-- prwarden:option ";
const END: &str = " -->";

/// The version of the state's form.
const VERSION: u32 = 1;

/// What a check-box at the foot of the comment changes: how the stored review is shown, never what is
/// asked of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewOption {
    /// Show details of the least weight.
    Nits,
    /// Show what earlier rounds found and this one does not.
    Gone,
    /// Show titles without explanations.
    Brief,
}

impl ViewOption {
    /// All, in the order of their boxes.
    pub const ALL: [Self; 3] = [Self::Nits, Self::Gone, Self::Brief];

    fn as_str(self) -> &'static str {
        match self {
            Self::Nits => "nits",
            Self::Gone => "gone",
            Self::Brief => "brief",
        }
    }
}

/// The options that are ticked.
pub type Ticked = BTreeSet<ViewOption>;

/// What the comment says of itself at its very end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    v: u32,
    /// The random name of the run that is shown.
    pub run: String,
    /// The commit that was reviewed.
    pub head: CommitSha,
    /// Which review of the pull request it is.
    pub round: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// The options that it was written with.
    #[serde(default)]
    pub options: Ticked,
}

impl State {
    /// The state of a comment that shows a run.
    pub fn new(run: &str, head: &CommitSha, round: u32, at: Timestamp, options: Ticked) -> Self {
        Self {
            v: VERSION,
            run: run.to_owned(),
            head: head.clone(),
            round,
            at,
            options,
        }
    }

    /// The state at the end of `body`: the last occurrence counts, and nothing may follow it but white
    /// space. `None` when there is none that this version reads.
    pub fn read(body: &str) -> Option<Self> {
        let (_, last) = body.rsplit_once(STATE_START)?;
        let json = last.trim_end().strip_suffix("-->")?.trim_end();
        let state: Self = serde_json::from_str(json).ok()?;
        (state.v == VERSION).then_some(state)
    }

    /// Whether a comment of this state gives way to `other` while `head` is the pull request's: the
    /// newest commit wins, and of two reviews of it, or of none of it, the later one.
    pub fn gives_way_to(&self, other: &Self, head: &CommitSha) -> bool {
        match (self.head == *head, other.head == *head) {
            (true, false) => false,
            (false, true) => true,
            _ => (self.at, &self.run) < (other.at, &other.run),
        }
    }
}

/// Whether `body` is written as the one comment: its marker stands on a line of its own, not quoted.
pub fn is_marked(body: &str) -> bool {
    body.lines().any(|line| line.trim_end() == MARKER)
}

/// What the boxes of `body` say; an option without a box is as the state has it.
pub fn ticked(body: &str) -> Ticked {
    let state = State::read(body).map_or_else(Ticked::new, |state| state.options);
    let boxes: Vec<(ViewOption, bool)> = body.lines().filter_map(read_box).collect();
    let is_on = |option: &ViewOption| {
        let of = boxes.iter().rev().find(|(of, _)| of == option);
        of.map_or(state.contains(option), |(_, on)| *on)
    };
    ViewOption::ALL.into_iter().filter(is_on).collect()
}

/// A line counts only when it is a check-box that carries an option's marker.
fn read_box(line: &str) -> Option<(ViewOption, bool)> {
    let rest = line.trim_start().strip_prefix(['-', '*', '+'])?;
    let rest = rest.trim_start().strip_prefix('[')?;
    let (mark, rest) = rest.split_once(']')?;
    let on = match mark {
        " " => false,
        "x" | "X" => true,
        _ => return None,
    };
    let name = rest.trim_start().strip_prefix(OPTION_START)?;
    let (name, _) = name.split_once(END)?;
    let option = ViewOption::ALL.into_iter().find(|o| o.as_str() == name)?;
    Some((option, on))
}

/// A check-box line.
pub fn write_box(text: &mut String, option: ViewOption, on: bool, label: &str) {
    let (mark, name) = (if on { 'x' } else { ' ' }, option.as_str());
    // Writing to a String can't fail.
    let _ = writeln!(text, "- [{mark}] {OPTION_START}{name}{END} {label}");
}

/// The comment of `content`: the marker in front, the state at the very end.
pub fn wrap(content: &str, state: &State) -> String {
    // Hexadecimal digits, numbers, times and names of options: nothing in it ends an HTML comment.
    let json = serde_json::to_string(state).unwrap_or_default();
    format!("{MARKER}\n{content}\n{STATE_START}{json}{END}\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state(head: char, at: i64) -> State {
        let head = head.to_string().repeat(40).parse().unwrap();
        State::new("f00d", &head, 2, Timestamp::from_unix(at), Ticked::new())
    }

    #[test]
    fn a_state_reads_as_it_was_written_and_the_last_one_counts() {
        let forged = wrap("text", &state('a', 99));
        let body = wrap(&forged, &state('b', 1));
        assert_eq!(State::read(&body), Some(state('b', 1)));
        assert!(is_marked(&body));
    }

    #[test]
    fn a_state_that_is_not_the_end_or_not_ours_is_none() {
        let body = wrap("text", &state('a', 1));
        for other in [
            format!("{body}\nmore"),
            body.replace("\"v\":1", "\"v\":2"),
            body.replace("-->", ""),
            "<!-- prwarden:state -->".to_owned(),
            String::new(),
        ] {
            assert_eq!(State::read(&other), None, "{other}");
        }
    }

    #[test]
    fn a_quoted_marker_marks_nothing() {
        for body in [
            format!("> {MARKER}\n> text"),
            format!("see {MARKER}"),
            format!("`{MARKER}`"),
        ] {
            assert!(!is_marked(&body), "{body}");
        }
    }

    #[test]
    fn only_a_box_with_an_options_marker_is_a_tick() {
        let one = |body: &str| ticked(body).into_iter().collect::<Vec<_>>();
        assert_eq!(
            one("- [x] <!-- prwarden:option nits --> show"),
            [ViewOption::Nits]
        );
        assert_eq!(
            one("* [X] <!-- prwarden:option gone -->"),
            [ViewOption::Gone]
        );
        for body in [
            "- [ ] <!-- prwarden:option nits --> show",
            "- [x] show nits",
            "[x] <!-- prwarden:option nits -->",
            "- [x] <!-- prwarden:option money -->",
            "- [x] text <!-- prwarden:option nits -->",
            "> - [x] <!-- prwarden:option nits -->",
            "- [xx] <!-- prwarden:option nits -->",
        ] {
            assert_eq!(one(body), [], "{body}");
        }
    }

    #[test]
    fn an_option_without_a_box_stays_as_it_was() {
        let mut kept = state('a', 1);
        kept.options = Ticked::from([ViewOption::Nits, ViewOption::Brief]);
        let body = wrap("- [ ] <!-- prwarden:option brief -->", &kept);
        assert_eq!(ticked(&body), Ticked::from([ViewOption::Nits]));
    }

    #[test]
    fn the_newest_commit_wins_and_of_two_reviews_of_it_the_later() {
        let head: CommitSha = "a".repeat(40).parse().unwrap();
        for (shown, new, gives_way) in [
            (state('b', 5), state('a', 1), true),
            (state('a', 1), state('b', 5), false),
            (state('a', 1), state('a', 5), true),
            (state('a', 5), state('a', 1), false),
            (state('b', 1), state('c', 5), true),
            (state('b', 5), state('c', 1), false),
        ] {
            assert_eq!(
                shown.gives_way_to(&new, &head),
                gives_way,
                "{shown:?} {new:?}"
            );
            assert!(!(gives_way && new.gives_way_to(&shown, &head)));
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_no_text_in_front_changes_the_state(text in "(?s).{0,200}", on in any::<bool>()) {
            let _ = (State::read(&text), ticked(&text), is_marked(&text));
            let mut foot = String::new();
            write_box(&mut foot, ViewOption::Brief, on, "titles");
            let body = wrap(&format!("{text}\n{foot}"), &state('c', 7));
            prop_assert_eq!(State::read(&body), Some(state('c', 7)));
            prop_assert_eq!(ticked(&body).contains(&ViewOption::Brief), on);
        }
    }
}
