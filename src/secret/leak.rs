//! The last look at a text before it is posted: does it contain one of our own secrets?

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::secret::Secret;

/// Shorter secrets would be found everywhere; no token is that short.
const SHORTEST: usize = 8;

/// With at least this many letters and digits a secret is known by them alone.
const TELLING: usize = 12;

/// Whether `body` contains one of `secrets`: as it is, as Markdown shows it, percent-encoded, or
/// within a text that was base64-encoded, also with marks or white space in between.
pub fn contains_secret(body: &str, secrets: &[&Secret]) -> bool {
    let shown = shown(body);
    let decoded = percent_decoded(shown.as_bytes());
    let views = [
        body.as_bytes(),
        shown.as_bytes(),
        &percent_decoded(body.as_bytes()),
        &decoded,
    ];
    // Marks and white space in the middle hide a secret from a search and from nobody else.
    let letters = [letters(shown.as_bytes()), letters(&decoded)];
    secrets
        .iter()
        .map(|secret| secret.expose().as_bytes())
        .filter(|secret| secret.len() >= SHORTEST)
        .any(|secret| {
            let mut forms = encoded_forms(secret);
            forms.push(secret.to_vec());
            forms.iter().any(|form| {
                let only = self::letters(form);
                views.iter().any(|view| contains(view, form))
                    || (only.len() >= TELLING && letters.iter().any(|text| contains(text, &only)))
            })
        })
}

/// The ASCII letters and digits.
fn letters(text: &[u8]) -> Vec<u8> {
    let letters = text.iter().filter(|byte| byte.is_ascii_alphanumeric());
    letters.copied().collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.first().is_some_and(|first| {
        text.iter().enumerate().any(|(at, byte)| {
            byte == first
                && text
                    .get(at..at + part.len())
                    .is_some_and(|found| found == part)
        })
    })
}

/// What readers see of Markdown, roughly: character references stand for their characters,
/// backslashes before punctuation for nothing, and characters without width are gone.
fn shown(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let reference = if c == '&' { reference(after) } else { None };
        rest = match reference {
            Some((meant, length)) => {
                out.extend(meant.filter(|c| !is_hidden(*c)));
                &after[length..]
            }
            None => {
                let escapes = c == '\\' && after.starts_with(|c: char| c.is_ascii_punctuation());
                if !escapes && !is_hidden(c) {
                    out.push(c);
                }
                after
            }
        };
    }
    out
}

fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The character that a reference after its `&` stands for, and the reference's length. Those that
/// the sanitiser writes and all numbers are known.
fn reference(text: &str) -> Option<(Option<char>, usize)> {
    let end = text.bytes().take(10).position(|byte| byte == b';')?;
    let name = &text[..end];
    let meant = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "nbsp" => Some(' '),
        _ => {
            let digits = name.strip_prefix('#')?;
            let number = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            char::from_u32(number.ok()?)
        }
    };
    Some((meant, end + 1))
}

/// What base64 makes of the secret at each of the three alignments, without the characters at the
/// ends that depend on what stands next to it.
fn encoded_forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for offset in 0..3 {
        let mut padded = vec![0_u8; offset];
        padded.extend_from_slice(secret);
        let skip = [0, 2, 3][offset];
        let keep = (padded.len() * 4) / 3;
        for encoded in [
            STANDARD_NO_PAD.encode(&padded),
            URL_SAFE_NO_PAD.encode(&padded),
        ] {
            let end = keep.min(encoded.len());
            forms.push(encoded.as_bytes()[skip.min(end)..end].to_vec());
        }
    }
    forms
}

fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        let value = digits.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], value) {
            (b'%', Some(value)) => {
                out.push(value);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    fn found(body: &str, secret: &str) -> bool {
        contains_secret(body, &[&Secret::new(secret)])
    }

    #[test]
    fn a_secret_is_found_as_it_is_and_percent_encoded() {
        assert!(found("x tok-ABC/123? y", "tok-ABC/123?"));
        assert!(found("x tok%2DABC%2f123%3F y", "tok-ABC/123?"));
        assert!(!found("x tok-ABC/124? y", "tok-ABC/123?"));
        assert!(!found("short", "short"));
        assert!(!found("", "longer-secret"));
    }

    #[test]
    fn a_secret_is_found_behind_what_the_sanitiser_writes() {
        let secret = "sk-gh-4@<xQ7>_#12&y*zR9";
        for shown in [
            crate::report::sanitise::block(secret, None),
            crate::report::sanitise::line(secret),
            "sk&#45;gh-4&#x40;<xQ7>&#95;&#8203;#12&amp;y*zR9".to_owned(),
            "sk-gh-4@<xQ7>\n_#12&y*zR9".to_owned(),
        ] {
            assert!(found(&format!("so: {shown}."), secret), "{shown}");
        }
        let encoded = STANDARD.encode(format!("token={secret}\n"));
        let (first, second) = encoded.split_at(11);
        assert!(found(&format!("{first}\n{second}"), secret));
        assert!(found(
            &encoded.replace('=', "%3D").replace('+', "%2B"),
            secret
        ));
        assert!(!found("an &unknown; & reference &#99999999; \\", secret));
    }

    proptest! {
        #[test]
        fn a_secret_is_found_in_any_prose_that_is_written(
            before in "[ -~]{0,20}", after in "[ -~]{0,20}", secret in "[A-Za-z0-9]{12}[A-Za-z0-9_.*-]{0,28}",
        ) {
            let body = crate::report::sanitise::block(&format!("x{before} {secret} {after}"), None);
            prop_assert!(found(&body, &secret), "{body}");
        }

        #[test]
        fn a_secret_is_found_in_any_base64_around_it(
            before in prop::collection::vec(any::<u8>(), 0..7),
            after in prop::collection::vec(any::<u8>(), 0..7),
            secret in "[!-~]{12,40}",
        ) {
            let all = [before.as_slice(), secret.as_bytes(), after.as_slice()].concat();
            prop_assert!(found(&STANDARD.encode(&all), &secret));
            prop_assert!(found(&URL_SAFE.encode(&all), &secret));
        }
    }
}
