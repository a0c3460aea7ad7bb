//! Plain text in Markdown: every character that could act is written so that it can't.

use url::Url;

use super::{code, target, visible};

/// What Markdown takes for indentation.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];

/// Markdown that is being written.
#[derive(Debug, Default)]
pub(super) struct Plain {
    out: String,
    /// Where the content of the current line begins, after what stands in front of it.
    line: usize,
}

impl Plain {
    pub(super) fn into_text(self) -> String {
        self.out
    }

    pub(super) fn as_str(&self) -> &str {
        &self.out
    }

    /// Whether nothing stands on the current line yet.
    pub(super) fn at_line_start(&self) -> bool {
        self.out.len() == self.line
    }

    /// Appends Markdown of ours.
    pub(super) fn raw(&mut self, markdown: &str) {
        self.out.push_str(markdown);
    }

    /// Appends what stands in front of a line's content.
    pub(super) fn front(&mut self, markdown: &str) {
        self.out.push_str(markdown);
        self.line = self.out.len();
    }

    /// Ends the line and begins the next with `front`.
    pub(super) fn new_line(&mut self, front: &str) {
        self.out.push('\n');
        self.front(front);
    }

    /// Begins a link. An exclamation mark right before it would make a picture of it.
    pub(super) fn open_link(&mut self) {
        if self.out.ends_with('!') {
            self.out.pop();
            self.out.push_str("&#33;");
        }
        self.out.push('[');
    }

    /// A code span. A backtick right before it would make another fence of its own.
    pub(super) fn span(&mut self, text: &str) {
        let span = code(text);
        if span.is_empty() {
            return;
        }
        if self.out.ends_with('`') {
            self.out.push(' ');
        }
        self.out.push_str(&span);
    }

    /// Text of one line. An address, which GitHub would make a link of, becomes code, and a link when
    /// it leads to `own`.
    pub(super) fn text(&mut self, text: &str, own: Option<&Url>) {
        let text = visible(text);
        let text = if self.at_line_start() {
            text.trim_start_matches(BLANKS)
        } else {
            &text
        };
        let mut rest = text;
        while let Some((start, length)) = address(rest) {
            self.escaped(&rest[..start]);
            let address = &rest[start..start + length];
            match own.and_then(|host| own_target(host, address)) {
                Some(target) => {
                    self.open_link();
                    self.span(address);
                    self.out.push_str(&format!("]({target})"));
                }
                None => self.span(address),
            }
            rest = &rest[start + length..];
        }
        self.escaped(rest);
    }

    fn escaped(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let after = chars.peek().copied();
            self.character(c, after);
        }
    }

    fn character(&mut self, c: char, after: Option<char>) {
        let before = self.out[self.line..].chars().next_back();
        let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        match c {
            '@' => self.out.push_str("&#64;"),
            '&' => self.out.push_str("&amp;"),
            '<' => self.out.push_str("&lt;"),
            '>' => self.out.push_str("&gt;"),
            '`' => self.out.push_str("&#96;"),
            '$' => self.out.push_str("&#36;"),
            // References are looked for in the text that character references stand for, too: a
            // zero-width space keeps the number apart.
            '#' if digit(after) => self.out.push_str("&#35;&#8203;"),
            '#' => self.out.push_str("&#35;"),
            '-' if digit(after) && self.ends_with("gh") => self.out.push_str("&#45;&#8203;"),
            // Addresses put together from pieces.
            '/' if self.ends_with(":") => self.out.push_str("&#47;"),
            '.' if self.ends_with("www") => self.out.push_str("&#46;"),
            '_' if word(before) && word(after) => self.out.push('_'),
            '\\' | '*' | '_' | '[' | ']' | '|' | '~' => self.backslash(c),
            '-' | '+' | '=' | ':' if self.at_line_start() => self.backslash(c),
            '.' | ')' if digit(before) && self.only_digits() => self.backslash(c),
            _ => self.out.push(c),
        }
    }

    fn backslash(&mut self, c: char) {
        self.out.push('\\');
        self.out.push(c);
    }

    /// Whether what was written ends with `word`, apart from what opens emphasis or a link.
    fn ends_with(&self, word: &str) -> bool {
        let out = self.out.trim_end_matches(['*', '[']);
        let tail = out.len().checked_sub(word.len());
        let tail = tail.and_then(|start| out.get(start..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(word))
    }

    /// Whether the line consists of digits so far, which a dot would turn into a list.
    fn only_digits(&self) -> bool {
        let line = &self.out[self.line..];
        line.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The first address in `text` that GitHub would make a link of: where it starts and how long it is.
fn address(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let start = ["http://", "https://", "ftp://", "www."]
        .iter()
        .filter_map(|scheme| lower.find(scheme))
        .min()?;
    let end = text[start..]
        .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`'))
        .unwrap_or(text.len() - start);
    let end = text[start..start + end]
        .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '*', '_'])
        .len();
    Some((start, end))
}

/// The target of a link that may stay one: a page of the web host that readers trust already, which
/// shows something and does nothing. Addresses with a query can carry data or prefill a form, and
/// those of issues and pull requests leave a reference there.
pub(super) fn own_target(host: &Url, address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let plain = url.origin() == host.origin()
        && url.origin().is_tuple()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none();
    let mut parts = url.path_segments()?;
    let refers = parts.any(|part| {
        matches!(
            part.to_ascii_lowercase().as_str(),
            "issues"
                | "pull"
                | "pulls"
                | "discussions"
                | "commit"
                | "login"
                | "logout"
                | "settings"
        )
    });
    (plain && !refers).then(|| target(&url))
}
