//! Untrusted Markdown made inert: what remains reads the same and does nothing.
//!
//! The text is parsed as CommonMark and written again from its structure, so that nothing depends on
//! spotting bad strings: HTML becomes text, pictures become their description, links that lead
//! elsewhere become code, and every fence is closed. Character references keep `@` and `#` from being
//! read as mentions and references. What must hold for the text as a whole, whatever the pieces it
//! was put together from, is decided on the characters that were written last.

mod plain;
mod writer;

#[cfg(test)]
mod tests;

use pulldown_cmark::{Event, Parser, Tag, TagEnd, TextMergeStream};
use url::Url;

use plain::Plain;
use writer::Writer;

/// Most characters of one block; more are cut.
const LIMIT: usize = 10_000;

/// Most characters of one line or code span; more are cut.
const LINE_LIMIT: usize = 300;

/// A block of Markdown that is safe to stand in a comment, complete in itself. Links stay links only
/// to `web_host`. At most 10,000 characters of `text` are used; an ellipsis shows a cut.
pub fn block(text: &str, web_host: Option<&Url>) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (text, cut) = first(&text, LIMIT);
    // HTML is shown, not obeyed, and a picture's description stands for it: its address would be
    // fetched by every reader. Both are text then, joined with the text around them.
    let events = Parser::new(text).filter_map(|event| match event {
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        event => Some(event),
    });
    let events: Vec<_> = TextMergeStream::new(events).collect();
    let mut out = Writer::new(web_host).write(&events);
    if cut {
        out.push_str("\n\n…");
    }
    out
}

/// One line of plain text that is safe to stand in a comment, with code spans where `text` has them;
/// no other Markdown of it is in force. At most 300 characters.
pub fn line(text: &str) -> String {
    let one = one_line(text);
    let mut out = Plain::default();
    let mut rest = one.as_str();
    while let Some(start) = rest.find('`') {
        let fence = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let inside = &rest[start + fence..];
        let Some(end) = closing(inside, fence) else {
            out.text(&rest[..start + fence], None);
            rest = inside;
            continue;
        };
        out.text(&rest[..start], None);
        out.span(&inside[..end]);
        rest = &inside[end + fence..];
    }
    out.text(rest, None);
    out.into_text()
}

/// A code span that shows `text` as it is, on one line. At most 300 characters.
pub fn code(text: &str) -> String {
    let one = one_line(&visible(&one_line(text)));
    let one = without_markers(&one);
    let fence = "`".repeat(longest_run(&one) + 1);
    match one.as_str() {
        "" => String::new(),
        one if one.starts_with('`') || one.ends_with('`') => format!("{fence} {one} {fence}"),
        one => format!("{fence}{one}{fence}"),
    }
}

/// An address as the target of a Markdown link: what Markdown or a search for mentions would read is
/// percent-encoded.
pub fn target(url: &Url) -> String {
    let mut out = String::with_capacity(url.as_str().len());
    for c in url.as_str().chars() {
        match c {
            '(' | ')' | '<' | '>' | '@' | '`' | '"' | '\'' | '|' | '*' | '[' | ']' | '\\' | '&'
            | '$' => out.push_str(&format!("%{:02X}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Characters that reorder, hide or break text, written so that they can be seen. Newlines and tabs
/// stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if deceives(c) {
            out.push_str(&format!("[U+{:04X}]", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character is shown as nothing, or changes how others are shown. The joiners of Persian,
/// Indic scripts and emoji are not among them.
fn deceives(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// Our own hidden markers can't be quoted, not even in code, where they would do no harm to a reader
/// but confuse a search.
fn without_markers(code: &str) -> String {
    code.replace("<!--", "<! --")
}

/// White space of any kind is one blank; at most [`LINE_LIMIT`] characters.
fn one_line(text: &str) -> String {
    let (text, cut) = first(text, LINE_LIMIT);
    let mut one = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if cut {
        one.push('…');
    }
    one
}

/// The first `count` characters, and whether there were more.
fn first(text: &str, count: usize) -> (&str, bool) {
    match text.char_indices().nth(count) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Where the first run of exactly `fence` backticks stands.
fn closing(text: &str, fence: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == fence {
            return Some(start);
        }
        at = start + run;
    }
    None
}
