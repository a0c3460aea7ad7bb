//! What an operator reads outside of a pull request: log lines and tables.

pub mod log;

/// A number with what it counts, which takes an `s` for all but one: `1 file`, `3 files`.
pub fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    }
}

/// Makes untrusted text fit for one log line: control and invisible characters are escaped, and
/// anything above 200 characters is cut with an ellipsis.
pub fn clip(text: &str) -> String {
    escape(text, 200)
}

/// [`clip`] with another limit, in characters of `text`.
fn escape(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        if is_hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that end a line, steer a terminal, reorder what stands around them or show nothing.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_stays_on_one_short_line() {
        assert_eq!(clip("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(clip("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(clip(&"z".repeat(500)).chars().count(), 201);
    }
}
