//! The files that `config init` writes.

use std::fmt::Write as _;

use super::keys::{self, Fallback, Key, Section};

/// The repository in the templates, which loading refuses.
pub(super) const PLACEHOLDER: &str = "example-owner/example-repo";

/// The keys that an operator has to decide on, with comments.
pub fn minimal() -> String {
    include_str!("minimal.toml").to_owned()
}

/// Every key with its default, commented out, except those of the minimal file.
pub fn full() -> String {
    let mut out = String::from(
        "# Configuration of prwarden, see prwarden.toml(5).\n\
         # A key that begins with # is not set; the value shown is its default, or an example where\n\
         # there is none. prwarden config check reads the file and says what is wrong.\n",
    );
    for section in keys::SECTIONS {
        let header = match section.name {
            "repo" => "[[repo]]".to_owned(),
            name => format!("[{name}]"),
        };
        out.push('\n');
        comment(&mut out, section.doc);
        // Writing to a String can't fail.
        let _ = writeln!(out, "{header}");
        for key in section.keys {
            write_key(&mut out, section, key);
        }
    }
    out
}

fn write_key(out: &mut String, section: &Section, key: &Key) {
    let doc = match key.default {
        Fallback::Value(_) => key.doc.to_owned(),
        Fallback::Unset(_) => format!("{} (example)", key.doc),
    };
    out.push('\n');
    comment(out, &doc);
    let active = matches!(
        (section.name, key.name),
        ("repo", "name") | ("triggers", "allowlist")
    );
    let mark = if active { "" } else { "#" };
    let _ = writeln!(out, "{mark}{} = {}", key.name, key.default.shown());
}

/// Writes `text` as comment lines of at most 80 columns.
fn comment(out: &mut String, text: &str) {
    let mut width = 0;
    for word in text.split_whitespace() {
        if width == 0 || width + 1 + word.len() > 80 {
            out.push_str(if width == 0 { "# " } else { "\n# " });
            out.push_str(word);
            width = 2 + word.len();
        } else {
            out.push(' ');
            out.push_str(word);
            width += 1 + word.len();
        }
    }
    out.push('\n');
}
