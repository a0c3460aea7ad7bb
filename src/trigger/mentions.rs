//! The handle in a comment: finding it where a person calls it, and making sure that it is never
//! found in text of ours.
//!
//! [`find`] looks only at prose. The comment is parsed as GitHub-flavoured Markdown, and code, block
//! quotes, comments, raw HTML, link targets and picture texts are not prose. A mention is then a
//! literal `@handle` in the source: an `@` written as an entity or behind a backslash never counts.
//! [`neutralise`] relies on exactly that: without a literal `@handle` nothing can be found, whatever
//! Markdown the text is put into.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::config::Handle;
use crate::store::queue::Command;

/// A call found in a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The command that the first word after the handle names.
    pub command: Command,
    /// What follows the command's word on its line, trimmed: the question of [`Command::Ask`]. Empty
    /// when no command was named. Untrusted data, never an instruction to this program.
    pub rest: String,
}

/// The first mention of `handle` in `body`, or `None` when it calls nobody.
///
/// The case of letters does not matter. The handle must stand alone: `user@claude.ai`, `@claude-ci`,
/// `@claude/x` and a part of an address such as `https://example.org/@claude` are not mentions of
/// `@claude`. Logins are ASCII, so a letter of another script next to the handle ends it, as in
/// `请@claude看`.
pub fn find(body: &str, handle: &Handle) -> Option<Mention> {
    find_name(body, handle.as_str())
}

/// Rewrites `text` so that [`find`] never finds `handle` in it, alone or inside of any other
/// Markdown, and GitHub notifies nobody of that name.
///
/// It reads the same afterwards: outside of code the `@` becomes `&#64;`, and in code, where an
/// entity would show, an invisible word joiner follows it.
pub fn neutralise(text: &str, handle: &Handle) -> String {
    neutralise_name(text, handle.as_str())
}

fn find_name(body: &str, name: &str) -> Option<Mention> {
    // Most comments mention nobody, and need no parser.
    literal_calls(body, name).next()?;
    let prose = prose(body);
    let mut in_url = false;
    for (start, glyph) in prose.iter().enumerate() {
        if glyph.shown.is_whitespace() {
            in_url = false;
        } else if glyph.shown == '/' && shown_before(&prose, start, 2).eq(['/', ':']) {
            in_url = true;
        } else if !in_url && is_call(&prose, start, name) {
            return Some(read_command(body, &prose[start + 1 + name.len()..]));
        }
    }
    None
}

fn neutralise_name(text: &str, name: &str) -> String {
    let mut calls = literal_calls(text, name).peekable();
    if calls.peek().is_none() {
        return text.to_owned();
    }
    let code = code_ranges(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    for at in calls {
        out.push_str(&text[copied..at]);
        // A backslash before it would escape the entity's ampersand and show the entity.
        let escaped = text[..at].ends_with('\\');
        let preceding = code.partition_point(|range| range.start <= at);
        let in_code = preceding > 0 && code[preceding - 1].contains(&at);
        out.push_str(if escaped || in_code {
            "@\u{2060}"
        } else {
            "&#64;"
        });
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
    out
}

/// Where `text` holds a literal `@name`, whatever surrounds it, or ends with the beginning of one,
/// which more text could complete.
fn literal_calls<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let (text, name) = (text.as_bytes(), name.as_bytes());
    (0..text.len()).filter(move |&at| {
        let end = text.len().min(at + 1 + name.len());
        text[at] == b'@' && text[at + 1..end].eq_ignore_ascii_case(&name[..end - at - 1])
    })
}

/// Markdown as GitHub's comments have it.
fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(
        text,
        Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_GFM,
    )
}

/// The bytes of code blocks and code spans, in order and apart.
fn code_ranges(text: &str) -> Vec<Range<usize>> {
    parser(text)
        .into_offset_iter()
        .filter(|(event, _)| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))))
        .map(|(_, range)| range)
        .collect()
}

/// One character of prose, in the order in which people read it.
#[derive(Debug, Clone, Copy)]
struct Glyph {
    shown: char,
    /// Its byte in the source, when the source has this very character there.
    source: Option<usize>,
}

/// Something inside of a line that is not prose: a code span, a picture.
const OPAQUE: Glyph = Glyph {
    shown: '\u{fffc}',
    source: None,
};

/// The end of a line of prose.
const LINE: Glyph = Glyph {
    shown: '\n',
    source: None,
};

/// What people read as prose in `body`. Emphasis and tags leave no trace, so that `**@claude** fix`
/// reads like `@claude fix` and `@claude**tte**` like `@claudette`.
fn prose(body: &str) -> Vec<Glyph> {
    let mut glyphs = Vec::with_capacity(body.len());
    // How many elements are open since the first whose content is not prose.
    let mut shut = 0_usize;
    let mut html = QuotingHtml::default();
    let mut text_end = 0;
    for (event, range) in parser(body).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if shut == 0 && matches!(tag, Tag::HtmlBlock) {
                    html.read(body.get(range).unwrap_or_default());
                }
                if shut > 0 || !holds_prose(&tag) {
                    shut += 1;
                }
                glyphs.extend(mark(tag.to_end()));
            }
            Event::End(tag) => {
                shut = shut.saturating_sub(1);
                glyphs.extend(mark(tag));
            }
            Event::Text(text) if shut == 0 && !html.is_open() => {
                let literal = body.get(range.clone()) == Some(&*text);
                let escaped = range.start > text_end && body[..range.start].ends_with('\\');
                glyphs.extend(text.char_indices().map(|(at, shown)| Glyph {
                    shown,
                    source: (literal && !(escaped && at == 0)).then_some(range.start + at),
                }));
                text_end = range.end;
            }
            Event::InlineHtml(tag) if shut == 0 => html.read(&tag),
            Event::SoftBreak | Event::HardBreak | Event::Rule => glyphs.push(LINE),
            _ => glyphs.push(OPAQUE),
        }
    }
    glyphs
}

fn holds_prose(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::CodeBlock(_)
            | Tag::BlockQuote(_)
            | Tag::HtmlBlock
            | Tag::MetadataBlock(_)
            | Tag::Image { .. }
            | Tag::Link {
                link_type: LinkType::Autolink | LinkType::Email,
                ..
            }
    )
}

/// What the edge of an element leaves in the prose around it.
fn mark(tag: TagEnd) -> Option<Glyph> {
    match tag {
        TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link => None,
        TagEnd::Image => Some(OPAQUE),
        _ => Some(LINE),
    }
}

/// Follows raw HTML elements that quote or show code. Markdown goes on between their tags.
#[derive(Debug, Default)]
struct QuotingHtml {
    depth: usize,
}

impl QuotingHtml {
    const ELEMENTS: [&str; 7] = ["blockquote", "q", "pre", "code", "samp", "kbd", "tt"];

    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn read(&mut self, html: &str) {
        let mut rest = html;
        while let Some((_, tag)) = rest.split_once('<') {
            rest = tag;
            if let Some(comment) = tag.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, after)| after);
                continue;
            }
            let (name, closes) = match tag.strip_prefix('/') {
                Some(name) => (name, true),
                None => (tag, false),
            };
            let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let quotes = |element: &&str| element.eq_ignore_ascii_case(&name[..length]);
            if Self::ELEMENTS.iter().any(quotes) {
                self.depth = if closes {
                    self.depth.saturating_sub(1)
                } else {
                    self.depth + 1
                };
            }
        }
    }
}

/// The characters before `start`, nearest first; fewer than `count` at the beginning.
fn shown_before(prose: &[Glyph], start: usize, count: usize) -> impl Iterator<Item = char> + '_ {
    prose[..start].iter().rev().take(count).map(|g| g.shown)
}

/// Whether a literal `@name` that stands alone begins at `start`.
fn is_call(prose: &[Glyph], start: usize, name: &str) -> bool {
    let Some(at) = prose[start].source.filter(|_| prose[start].shown == '@') else {
        return false;
    };
    let word = &prose[start + 1..];
    let spelled = word.len() >= name.len()
        && name
            .chars()
            .zip(word)
            .enumerate()
            .all(|(i, (letter, glyph))| {
                glyph.source == Some(at + 1 + i) && glyph.shown.eq_ignore_ascii_case(&letter)
            });
    spelled
        && shown_before(prose, start, 1).all(may_precede)
        && ends_login(word[name.len()..].iter().map(|g| g.shown))
}

/// Not so after a character that the local part of an address or a path may end with.
fn may_precede(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || "_-+=#$%&^~/\\@".contains(c))
}

/// Whether a login ends before `following`: `-ci`, `/x`, `@host` and `.ai` go on with it, and a full
/// stop that ends a sentence does not.
fn ends_login(following: impl Iterator<Item = char>) -> bool {
    let mut following = following.peekable();
    let mut dots = false;
    while following.next_if_eq(&'.').is_some() {
        dots = true;
    }
    match following.peek() {
        None => true,
        Some(c) if c.is_ascii_alphanumeric() || *c == '_' => false,
        Some('-' | '/' | '@') => dots,
        Some(_) => true,
    }
}

/// Reads the word after the handle, given the prose that follows it.
fn read_command(body: &str, following: &[Glyph]) -> Mention {
    let is_punctuation = |g: &Glyph| g.shown != OPAQUE.shown && !g.shown.is_alphanumeric();
    let line = following.split(|g| g.shown == LINE.shown).next();
    let line = line.unwrap_or_default();
    let word = line.split(|g| g.shown.is_whitespace()).map(|word| {
        let start = word.iter().take_while(|g| is_punctuation(g)).count();
        let end = word.iter().rev().take_while(|g| is_punctuation(g)).count();
        word.get(start..word.len() - end).unwrap_or_default()
    });
    let word = word.into_iter().find(|word| !word.is_empty());
    let word = word.unwrap_or_default();
    let literal = word.iter().all(|g| g.source.is_some());
    let spelled: String = word.iter().map(|g| g.shown).collect();
    let command = Command::from_word(&spelled).filter(|_| literal);
    let rest = match (command, word.last().and_then(|g| g.source)) {
        (Some(_), Some(last)) => rest_of_line(body, last + 1),
        _ => String::new(),
    };
    Mention {
        command: command.unwrap_or(Command::Review),
        rest,
    }
}

/// The source after the command's word, whose last letter stands before `start`, to the end of its
/// line. Code spans and links stay as they were written.
fn rest_of_line(body: &str, start: usize) -> String {
    let rest = body.get(start..).unwrap_or_default();
    let line = rest.split(['\n', '\r']).next().unwrap_or_default();
    let (_marks, words) = line.split_once(char::is_whitespace).unwrap_or_default();
    words.trim().to_owned()
}

#[cfg(test)]
mod tests;
