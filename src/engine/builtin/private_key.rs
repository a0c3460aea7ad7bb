//! Private keys in PEM or armour (RFC 7468, RFC 4880), which span lines. The first line alone is no
//! key: programs that read keys hold it too.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::credentials::entropy;

static BEGIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("-----BEGIN (?:[A-Z0-9]{1,20} ){0,2}PRIVATE KEY(?: BLOCK)?-----").ok()
});

/// A line of a key has at least this many characters, except for its last.
const FULL_LINE: usize = 40;

/// Most lines of one key: 16,384 bits of RSA have some 210.
const MOST_LINES: u32 = 400;

/// Follows private keys through consecutive lines.
#[derive(Debug, Default)]
pub struct KeyReader {
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Outside,
    /// After the first line, with the number of lines since and whether the key itself has begun.
    Inside { lines: u32, body: bool },
}

/// What a line has to do with a private key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyLine {
    /// A key's first line stands here.
    pub begins: bool,
    /// There is no doubt left that this is a key: a full line of it was read.
    pub is_key: bool,
    /// The bytes of this line that belong to the key itself.
    pub secret: Option<Range<usize>>,
}

impl KeyReader {
    /// Reads the next line, with or without the first column of a diff.
    pub fn read(&mut self, line: &str) -> KeyLine {
        let begin = BEGIN
            .as_ref()
            .filter(|_| line.contains("-----BEGIN "))
            .and_then(|regex| regex.find(line));
        if let Some(begin) = begin {
            return self.begin(line, begin.end());
        }
        match self.state {
            State::Outside => KeyLine::default(),
            State::Inside { lines, body } => self.inside(line, lines, body),
        }
    }

    /// A key may follow on the same line, as strings in programs hold it with `\n` for each newline.
    fn begin(&mut self, line: &str, from: usize) -> KeyLine {
        let rest = &line[from..];
        let end = rest.find("-----END").unwrap_or(rest.len());
        let blanks = rest[..end].len() - strip_start(&rest[..end]).len();
        let body = key_characters(&rest[blanks..end]);
        let is_key = body.is_material(FULL_LINE);
        self.state = if body.characters > 0 || end < rest.len() {
            State::Outside
        } else {
            State::Inside {
                lines: 0,
                body: false,
            }
        };
        KeyLine {
            begins: true,
            is_key,
            secret: is_key.then(|| from + blanks..from + blanks + body.length),
        }
    }

    fn inside(&mut self, line: &str, lines: u32, body: bool) -> KeyLine {
        let from = line.len() - strip_start(line).len();
        let text = strip_end(&line[from..]);
        let header = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:"]
            .iter()
            .any(|name| text.starts_with(name));
        let lines = lines + 1;
        if lines > MOST_LINES || text.starts_with("-----") {
            self.state = State::Outside;
            return KeyLine::default();
        }
        if !body && (text.is_empty() || header) {
            self.state = State::Inside { lines, body };
            return KeyLine::default();
        }
        let characters = key_characters(text);
        let whole = characters.length == text.len() && characters.characters > 0;
        let is_key = whole && characters.is_material(FULL_LINE);
        let last = body && whole;
        // A short line is the last one.
        self.state = if is_key {
            State::Inside { lines, body: true }
        } else {
            State::Outside
        };
        KeyLine {
            begins: false,
            is_key,
            secret: (is_key || last).then(|| from..from + text.len()),
        }
    }
}

/// The beginning of a text that consists of base64 and of escaped newlines.
struct KeyCharacters<'a> {
    text: &'a str,
    /// In bytes.
    length: usize,
    /// Without the escapes.
    characters: usize,
}

impl KeyCharacters<'_> {
    /// Long and random enough for a key: examples repeat letters or hold dots.
    fn is_material(&self, least: usize) -> bool {
        let lower = || self.text[..self.length].to_ascii_lowercase();
        self.characters >= least
            && entropy(&self.text[..self.length]) >= 3.5
            && !lower().contains("example")
            && !lower().contains("xxxx")
    }
}

fn key_characters(text: &str) -> KeyCharacters<'_> {
    let bytes = text.as_bytes();
    let (mut length, mut characters) = (0, 0);
    while let Some(byte) = bytes.get(length) {
        match (byte, bytes.get(length + 1)) {
            (b'\\', Some(b'n' | b'r')) => length += 2,
            (byte, _) if byte.is_ascii_alphanumeric() || b"+/=".contains(byte) => {
                length += 1;
                characters += 1;
            }
            _ => break,
        }
    }
    KeyCharacters {
        text,
        length,
        characters,
    }
}

/// Without the first column of a diff, indentation, quotation marks and escaped newlines.
fn strip_start(text: &str) -> &str {
    let text = text.strip_prefix(['+', '-', ' ']).unwrap_or(text);
    let mut text = text.trim_start_matches([' ', '\t', '"', '\'', '`']);
    while let Some(rest) = text.strip_prefix("\\n").or(text.strip_prefix("\\r")) {
        text = rest;
    }
    text
}

/// Without what ends a line of a string in a program.
fn strip_end(text: &str) -> &str {
    let marks = [' ', '\t', '\r', '"', '\'', '`', ',', ';', '\\'];
    let mut text = text.trim_end_matches(marks);
    while let Some(rest) = text.strip_suffix("\\n").or(text.strip_suffix("\\r")) {
        text = rest.trim_end_matches(marks);
    }
    // ` + ` between strings: the plus sign of base64 stands without a blank.
    text.strip_suffix(" +")
        .map_or(text, |rest| rest.trim_end_matches(marks))
}
