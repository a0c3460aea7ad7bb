//! The structure of a document, written again.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag, TagEnd};
use url::Url;

use super::plain::{BLANKS, Plain, own_target};
use super::{longest_run, visible, without_markers};

/// Quotations and lists inside of each other up to this depth keep their shape; what is deeper is
/// written at that depth. It bounds what stands in front of a line.
const DEEPEST: usize = 5;

/// Languages of fenced code that GitHub renders instead of showing.
const RENDERED: [&str; 6] = [
    "mermaid",
    "math",
    "geojson",
    "topojson",
    "stl",
    "suggestion",
];

/// What was written last in the current container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing: its marker, or the beginning of the text.
    Nothing,
    /// Part of a paragraph.
    Inline,
    /// A whole block.
    Block,
}

/// How blocks are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    NewLine,
    BlankLine,
}

struct List {
    /// The next number; `None` for bullets.
    next: Option<u64>,
    /// Its items stand without blank lines.
    tight: bool,
}

/// A mark of emphasis.
struct Mark {
    mark: &'static str,
    state: Written,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    NotYet,
    Never,
}

/// A link that is being written.
struct Link {
    /// What follows its text.
    tail: String,
    /// Where it began.
    start: usize,
}

pub(super) struct Writer<'a> {
    out: Plain,
    own: Option<&'a Url>,
    /// What stands in front of each line: quotation marks and the indentation of lists.
    front: String,
    /// For each open container, the length to which `front` is cut when it ends.
    outer: Vec<usize>,
    lists: Vec<List>,
    last: Last,
    /// Open marks of emphasis.
    marks: Vec<Mark>,
    links: Vec<Link>,
    /// The code block being collected, with its language.
    code: Option<(String, String)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(own: Option<&'a Url>) -> Self {
        Self {
            out: Plain::default(),
            own,
            front: String::new(),
            outer: Vec::new(),
            lists: Vec::new(),
            last: Last::Nothing,
            marks: Vec::new(),
            links: Vec::new(),
            code: None,
        }
    }

    pub(super) fn write(mut self, events: &[Event<'_>]) -> String {
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Start(tag) => self.start(tag, &events[at + 1..]),
                Event::End(tag) => self.end(*tag),
                Event::Text(text) => match &mut self.code {
                    Some((_, code)) => code.push_str(text),
                    None => self.text(text),
                },
                Event::Code(text) => {
                    self.inline();
                    self.write_marks();
                    self.out.span(text);
                }
                Event::SoftBreak => self.line_break(),
                Event::HardBreak => {
                    if !self.out.at_line_start() {
                        self.out.raw("  ");
                    }
                    self.line_break();
                }
                _ => {}
            }
        }
        self.out.into_text()
    }

    fn start(&mut self, tag: &Tag<'_>, following: &[Event<'_>]) {
        let empty = matches!(following.first(), Some(Event::End(_)));
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::Heading { .. } if empty => {}
            Tag::Paragraph | Tag::HtmlBlock => self.block(Gap::BlankLine),
            // A heading must not look like one of ours.
            Tag::Heading { .. } => {
                self.block(Gap::BlankLine);
                self.open_mark("**");
            }
            Tag::BlockQuote(_) => {
                self.block(Gap::BlankLine);
                self.open("> ", "> ");
            }
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => shown_language(language),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                // Only a list that begins with 1 can follow a line of text directly.
                let tight = is_tight(following);
                let follows = tight && first.is_none_or(|first| first == 1);
                let nested = self.lists.last().is_some_and(|list| list.tight);
                self.gap_before_list(nested && follows);
                self.lists.push(List {
                    next: *first,
                    tight,
                });
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.open_mark("*"),
            Tag::Strong => self.open_mark("**"),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => self.open_link(*link_type, dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_inline(),
            TagEnd::Heading(_) => {
                self.close_mark();
                self.end_inline();
            }
            TagEnd::BlockQuote(_) => self.close(),
            TagEnd::Item => self.close(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.last = Last::Block;
            }
            TagEnd::Emphasis | TagEnd::Strong => self.close_mark(),
            TagEnd::Link => self.close_link(),
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.fence(&language, &code);
                }
            }
            _ => {}
        }
    }

    /// Text, which has newlines where it was HTML.
    fn text(&mut self, text: &str) {
        let linked = !self.links.is_empty();
        let own = self.own.filter(|_| !linked);
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.line_break();
            }
            let content = line.trim_start_matches(BLANKS);
            if content.len() < line.len() && self.last == Last::Inline {
                self.out.text(" ", None);
            }
            if !content.is_empty() {
                self.inline();
                self.write_marks();
                self.out.text(content, own);
            }
        }
    }

    /// Makes sure that inline content does not stick to a block that ended.
    fn inline(&mut self) {
        if self.last == Last::Block {
            self.separate(Gap::BlankLine);
        }
        self.last = Last::Inline;
    }

    fn end_inline(&mut self) {
        if self.last == Last::Inline {
            self.last = Last::Block;
        }
    }

    /// Makes room for a block.
    fn block(&mut self, gap: Gap) {
        if self.last != Last::Nothing {
            self.separate(gap);
        }
        // Blocks that have no content leave nothing that the next one must keep apart from.
        self.last = Last::Nothing;
    }

    fn separate(&mut self, gap: Gap) {
        if gap == Gap::BlankLine {
            self.out.new_line(self.front.trim_end());
        }
        self.out.new_line(&self.front);
    }

    /// A new line within a paragraph; never a blank one.
    fn line_break(&mut self) {
        if !self.out.at_line_start() {
            self.out.new_line(&self.front);
        }
    }

    fn gap_before_list(&mut self, nested: bool) {
        match self.last {
            Last::Nothing => {}
            Last::Inline if nested => self.block(Gap::NewLine),
            _ => self.block(Gap::BlankLine),
        }
    }

    fn item(&mut self) {
        let (marker, tight) = match self.lists.last_mut() {
            Some(list) => {
                let marker = match &mut list.next {
                    Some(number) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    None => "- ".to_owned(),
                };
                (marker, list.tight)
            }
            None => return,
        };
        let gap = if tight { Gap::NewLine } else { Gap::BlankLine };
        self.block(gap);
        let indentation = " ".repeat(marker.len());
        self.open(&marker, &indentation);
    }

    /// Begins a container with `marker`; `front` stands in front of its other lines.
    fn open(&mut self, marker: &str, front: &str) {
        self.outer.push(self.front.len());
        if self.outer.len() <= DEEPEST {
            self.out.front(marker);
            self.front.push_str(front);
        }
    }

    fn close(&mut self) {
        if self.last == Last::Nothing {
            // An empty item would turn the line before it into a heading.
            self.out.raw("&nbsp;");
        }
        if let Some(length) = self.outer.pop() {
            self.front.truncate(length);
        }
        self.last = Last::Block;
    }

    /// Begins emphasis. The same mark inside of itself changes nothing and is not written.
    fn open_mark(&mut self, mark: &'static str) {
        let open = self.marks.iter().any(|open| open.mark == mark);
        let state = if open {
            Written::Never
        } else {
            Written::NotYet
        };
        self.marks.push(Mark { mark, state });
    }

    /// Writes the marks that wait for content: without it they leave nothing, for two marks could be
    /// a rule, and a mark before a blank is none.
    fn write_marks(&mut self) {
        for mark in &mut self.marks {
            if mark.state == Written::NotYet {
                mark.state = Written::Yes;
                self.out.raw(mark.mark);
            }
        }
    }

    fn close_mark(&mut self) {
        if let Some(mark) = self.marks.pop()
            && mark.state == Written::Yes
        {
            self.out.raw(mark.mark);
        }
    }

    fn open_link(&mut self, link_type: LinkType, target: &str) {
        self.inline();
        self.write_marks();
        let start = self.out.as_str().len();
        let own = self.own.and_then(|host| own_target(host, target));
        let tail = match (own, link_type) {
            (Some(own), _) => {
                self.out.open_link();
                format!("]({own})")
            }
            // Its text says where it leads.
            (None, LinkType::Autolink | LinkType::Email) => String::new(),
            (None, _) if target.is_empty() => String::new(),
            (None, _) => format!(" ({})", super::code(target)),
        };
        self.links.push(Link { tail, start });
    }

    fn close_link(&mut self) {
        let Some(link) = self.links.pop() else {
            return;
        };
        if self.out.as_str()[link.start..].trim() == "[" {
            self.out.raw("link");
        }
        self.out.raw(&link.tail);
    }

    /// A fence that is longer than any run of backticks inside.
    fn fence(&mut self, language: &str, code: &str) {
        self.block(Gap::BlankLine);
        let code = without_markers(&visible(code));
        let fence = "`".repeat((longest_run(&code) + 1).max(3));
        self.out.raw(&fence);
        self.out.raw(language);
        for line in code.trim_end_matches('\n').split('\n') {
            let front = if line.is_empty() {
                self.front.trim_end()
            } else {
                &self.front
            };
            self.out.new_line(front);
            self.out.raw(line);
        }
        self.out.new_line(&self.front);
        self.out.raw(&fence);
        self.last = Last::Block;
    }
}

/// Whether the items of the list that `events` begin with hold no paragraphs: then it was written
/// without blank lines.
fn is_tight(events: &[Event<'_>]) -> bool {
    let mut depth = 0_usize;
    for event in events {
        match event {
            Event::Start(Tag::Paragraph) if depth == 1 => return false,
            Event::Start(_) => depth += 1,
            Event::End(_) if depth == 0 => return true,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    true
}

/// The language of a fence, when it is one and only colours the code.
fn shown_language(info: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#');
    let language: String = info.chars().take_while(plain).take(20).collect();
    let rendered = RENDERED
        .iter()
        .any(|name| name.eq_ignore_ascii_case(&language));
    if rendered { String::new() } else { language }
}
