//! Hides credentials from a model: what the built-in checks find is replaced before a patch is shown.

use super::builtin::credentials;
use super::builtin::place::Place;
use super::builtin::private_key::KeyReader;

/// `patch`, a diff in git's format or any text, with every credential in it replaced by a placeholder
/// that names its kind. Lines keep their number, their ends and everything else. Nothing but
/// credentials is hidden: the body of a private key ends where its lines stop looking like one, so
/// that a stray first line can't hide code from a review.
pub fn redact(patch: &str) -> String {
    let mut out = String::with_capacity(patch.len());
    let mut keys = KeyReader::default();
    let mut place = Place::default();
    for line in patch.split_inclusive('\n') {
        let text = line.trim_end_matches(['\n', '\r']);
        if text.starts_with("diff --git ") || text.starts_with("@@ ") {
            keys = KeyReader::default();
        }
        if let Some(path) = text.strip_prefix("+++ b/") {
            // What is hidden in an example costs nothing; what is shown of a secret does.
            place = Place {
                example: false,
                ..Place::of(path)
            };
        }
        let mut hidden: Vec<_> = credentials::find(text, place)
            .into_iter()
            .map(|found| (found.range, format!("[hidden: {}]", found.name)))
            .collect();
        if let Some(range) = keys.read(text).secret {
            hidden.retain(|(other, _)| other.end <= range.start || range.end <= other.start);
            hidden.push((range, "[hidden: a private key]".to_owned()));
            hidden.sort_by_key(|(range, _)| range.start);
        }
        let mut done = 0;
        for (range, placeholder) in hidden {
            out.push_str(&text[done..range.start]);
            out.push_str(&placeholder);
            done = range.end;
        }
        out.push_str(&text[done..]);
        out.push_str(&line[text.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A line of a key that no scanner of this repository takes for one: it is made here.
    fn key_line() -> String {
        "q7Rk2Zt9Wm4Xc8Vb3Nf6Hj1Gd5Lp0SyUoIeAzTw+/B"
            .chars()
            .cycle()
            .take(64)
            .collect()
    }

    #[test]
    fn a_credential_is_replaced_and_the_line_stays() {
        let token = format!("{}{}", "ghp_", "q7Rk2Zt9Wm4Xc8Vb3Nf6Hj1Gd5Lp0SyUoIeA");
        let patch = format!("@@ -1 +1 @@\n-old\n+key = '{token}'\r\n context\n");
        let hidden = "@@ -1 +1 @@\n-old\n+key = '[hidden: a GitHub token]'\r\n context\n";
        assert_eq!(redact(&patch), hidden);
    }

    #[test]
    fn a_password_without_quotation_marks_is_replaced_where_files_are_written_so() {
        let line = format!("+DB_PASSWORD={}\n", "Zq8Wn3Kx7Lm2Vt5Rp9");
        let hidden = "+++ b/deploy/.env\n+DB_PASSWORD=[hidden: a secret in an assignment]\n";
        assert_eq!(redact(&format!("+++ b/deploy/.env\n{line}")), hidden);
        let code = format!("+++ b/src/a.rs\n{line}");
        assert_eq!(redact(&code), code);
    }

    #[test]
    fn the_body_of_a_private_key_is_hidden_on_many_lines_and_on_one() {
        let (word, line) = ("PRIVATE", key_line());
        let patch = format!(
            "+-----BEGIN {word} KEY-----\n+{line}\n+{line}\n+c2hvcnQ=\n+-----END {word} KEY-----\n+x\n"
        );
        let hidden = "[hidden: a private key]";
        assert_eq!(
            redact(&patch),
            format!(
                "+-----BEGIN {word} KEY-----\n+{hidden}\n+{hidden}\n+{hidden}\n\
                 +-----END {word} KEY-----\n+x\n"
            )
        );
        let one =
            format!("+K = '-----BEGIN {word} KEY-----\\n{line}\\n-----END {word} KEY-----'\n+x\n");
        let redacted = redact(&one);
        assert!(!redacted.contains(&line), "{redacted}");
        assert!(redacted.ends_with("+x\n"));
    }

    #[test]
    fn a_stray_first_line_of_a_key_hides_no_code() {
        let patch = format!(
            "+# -----BEGIN {} KEY-----\n+import os\n+os.system('x')\ndiff --git a/b b/b\n+y = 1\n",
            "PRIVATE"
        );
        assert_eq!(redact(&patch), patch);
    }

    proptest! {
        #[test]
        fn lines_are_kept_and_a_second_pass_changes_nothing(
            lines in prop::collection::vec("[ -~é\t]{0,60}", 0..12),
            secret_at in 0_usize..12,
        ) {
            let token = format!("{}{}", "npm_", &key_line()[..36]);
            let mut lines = lines;
            if let Some(line) = lines.get_mut(secret_at) {
                line.push_str(&format!(" {token} "));
            }
            let patch = lines.join("\n");
            let once = redact(&patch);
            prop_assert_eq!(once.split('\n').count(), patch.split('\n').count());
            prop_assert!(!once.contains(&token));
            prop_assert_eq!(redact(&once), once);
        }
    }
}
