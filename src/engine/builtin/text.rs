//! Conflict markers, and characters that show something else than the compiler reads.

use std::sync::LazyLock;

use regex::Regex;

use super::place::Place;
use super::{finding, texts};
use crate::findings::{Finding, Severity};
use crate::workspace::FileChange;

pub(super) fn check(file: &FileChange) -> Vec<Finding> {
    let place = Place::of(&file.path.to_text());
    let mut findings = conflict_markers(file, place);
    findings.extend(hidden_characters(file, place));
    findings
}

/// Markers that git writes and people don't: with the names that only a merge gives.
static UNMISTAKABLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:<<<<<<< (?:HEAD|ours|Updated upstream)|>>>>>>> (?:[0-9a-f]{7,40}(?: .*)?|theirs|Stashed changes|(?:origin|upstream)/\S+))\s*$",
    )
    .ok()
});

/// All three markers among the added lines, as a merge leaves them; outside of prose one that is
/// unmistakable is enough. What stands in a fence of a document is shown, not left over.
fn conflict_markers(file: &FileChange, place: Place) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut start, mut middle, mut fenced) = (None, false, false);
    let mut lone = Vec::new();
    for (number, line) in texts(file) {
        if place.prose
            && ["```", "~~~"]
                .iter()
                .any(|fence| line.trim_start().starts_with(fence))
        {
            fenced = !fenced;
        }
        let looks_like_one = line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>");
        if looks_like_one
            && UNMISTAKABLE
                .as_ref()
                .is_some_and(|regex| regex.is_match(&line))
        {
            lone.push(number);
        }
        if is_marker(&line, "<<<<<<<") {
            (start, middle) = ((!fenced).then_some(number), false);
        } else if line.trim_end() == "=======" {
            middle = true;
        } else if is_marker(&line, ">>>>>>>")
            && middle
            && let Some(start) = start.take()
        {
            lone.retain(|marker| !(start..=number).contains(marker));
            findings.push(conflict(
                file,
                start,
                &format!(
                    "Lines {start} to {number} hold both sides of a merge that was not finished."
                ),
            ));
        }
    }
    if !place.example {
        let left = lone.into_iter().map(|number| {
            conflict(
                file,
                number,
                "A merge wrote this line, and it is not part of the text.",
            )
        });
        findings.extend(left);
    }
    findings
}

fn conflict(file: &FileChange, line: u32, why: &str) -> Finding {
    finding(
        file,
        Some(line),
        Severity::Blocker,
        "conflict-marker",
        "A conflict marker was left in the file",
        format!("{why} Keep the right side and remove the markers."),
    )
}

/// Seven characters, then a space and a name, as git writes them.
fn is_marker(line: &str, marker: &str) -> bool {
    let rest = line.strip_prefix(marker);
    rest.is_some_and(|rest| rest.trim_end().is_empty() || rest.starts_with(' '))
}

/// Characters that reorder what is displayed (CVE-2021-42574), hide in names, or end a line only for
/// some readers.
fn hidden_characters(file: &FileChange, place: Place) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in texts(file) {
        let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
        if line.bytes().all(plain) {
            continue;
        }
        if let Some(c) = bidirectional(&line, place) {
            findings.push(finding(
                file,
                Some(number),
                Severity::Blocker,
                "hidden/bidirectional",
                format!("A bidirectional control character (U+{:04X}) reorders this line", c as u32),
                "What is displayed is not what a compiler reads. Remove the character, or write it as \
                 an escape where the text needs it.",
            ));
        } else if let Some(c) = invisible(&line) {
            findings.push(finding(
                file,
                Some(number),
                Severity::Major,
                "hidden/invisible",
                format!("An invisible character (U+{:04X}) is hidden in this line", c as u32),
                "Two texts that look the same may differ by it. Remove the character, or write it as \
                 an escape where the text needs it.",
            ));
        } else if let Some(c) = line_end(&line, place) {
            findings.push(finding(
                file,
                Some(number),
                Severity::Major,
                "hidden/line-end",
                format!("A line end (U+{:04X}) that most editors do not show is inside this line", c as u32),
                "What follows it may be code where a comment is displayed. Remove it, or write it as an \
                 escape.",
            ));
        }
    }
    findings
}

/// A control that embeds, overrides or isolates. In prose of a script that runs from right to left
/// it is at home as long as everything that it opens is closed in the line.
fn bidirectional(line: &str, place: Place) -> Option<char> {
    let controls = || {
        line.chars()
            .filter(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    let first = controls().next()?;
    let right_to_left = |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    let mut open = Vec::new();
    let balanced = controls().all(|c| match c {
        '\u{202a}' | '\u{202b}' => {
            open.push('\u{202c}');
            true
        }
        '\u{2066}'..='\u{2068}' => {
            open.push('\u{2069}');
            true
        }
        // An override is never needed.
        '\u{202d}' | '\u{202e}' => false,
        close => open.pop() == Some(close),
    });
    let at_home = place.prose && balanced && open.is_empty() && line.chars().any(right_to_left);
    (!at_home).then_some(first)
}

/// A character without width between ASCII letters or digits, a letter that looks like nothing, a
/// hidden message in tag characters or variation selectors, or a control character that no text
/// file needs.
fn invisible(line: &str) -> Option<char> {
    let foreign = is_foreign(line);
    let mut before = None;
    let mut flag = false;
    let mut chars = line.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied();
        let ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let selector = |c: char| matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
        let tag = matches!(c, '\u{e0000}'..='\u{e007f}');
        // Flags of regions are a black flag and tags.
        flag = c == '\u{1f3f4}' || (flag && tag);
        let zero_width = matches!(c, '\u{7f}' | '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
            && ascii(before)
            && ascii(after);
        let blank_letter = matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
        let message = (tag && !flag) || (selector(c) && before.is_some_and(selector));
        let control = !foreign && matches!(c, '\u{0}' | '\u{8}');
        if zero_width || blank_letter || message || control {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

/// A carriage return that does not belong to the line's end, or, where a language takes it for one, a
/// Unicode line end. A file of many carriage returns is written so as a whole.
fn line_end(line: &str, place: Place) -> Option<char> {
    if place.prose || is_foreign(line) {
        return None;
    }
    let inner = line.trim_end_matches('\r');
    let returns = inner.bytes().filter(|byte| *byte == b'\r').take(4).count();
    if (1..4).contains(&returns) {
        return Some('\r');
    }
    inner.chars().find(|c| matches!(c, '\u{2028}' | '\u{2029}'))
}

/// Whether a line is not UTF-8: then control characters in it are data or another encoding.
fn is_foreign(line: &str) -> bool {
    line.contains('\u{fffd}')
}
