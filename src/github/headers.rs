//! Header values, read strictly: what is not as specified counts as absent. Pure.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::clock::Timestamp;

/// `Retry-After` (RFC 9110, 10.2.3): digits, or a date that is not past.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // Digits that fit no number are a long wait still.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let wait = http_date(value)?.since(now);
    (!wait.is_zero()).then_some(wait)
}

/// A date in one of the forms that receivers must accept (RFC 9110, 5.6.7), the first of which is the
/// one that is sent nowadays. A text counts only if the moment is written in exactly this way.
pub(super) fn http_date(value: &str) -> Option<Timestamp> {
    const FORMS: [&str; 3] = [
        "%a, %d %b %Y %H:%M:%S GMT",
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
    ];
    FORMS.iter().find_map(|form| {
        let time = DateTime::strptime(form, value).ok()?;
        let exact = time.strftime(form).to_string() == value;
        let time = exact.then(|| TimeZone::UTC.to_timestamp(time).ok())??;
        Some(Timestamp::from(time))
    })
}

/// The target of the first link with the relation `next` in a `Link` header (RFC 8288), as it is
/// written: absolute or relative. What follows a malformed link is not read.
pub(super) fn next_link(value: &str) -> Option<&str> {
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (target, after) = rest.strip_prefix('<')?.split_once('>')?;
        let (relation, after) = relation(after)?;
        let is_next = |word: &str| word.eq_ignore_ascii_case("next");
        if relation.is_some_and(|words| words.split_ascii_whitespace().any(is_next)) {
            return Some(target);
        }
        rest = after;
    }
}

/// Reads the parameters of one link up to the comma that ends it: the first `rel`, which is the one
/// that counts, and what comes after the link.
fn relation(parameters: &str) -> Option<(Option<&str>, &str)> {
    const SPACE: [char; 2] = [' ', '\t'];
    let mut found = None;
    let mut rest = parameters.trim_start_matches(SPACE);
    while let Some(parameter) = rest.strip_prefix(';') {
        let end = parameter.find(['=', ';', ',']).unwrap_or(parameter.len());
        let (name, after) = parameter.split_at(end);
        let (value, after) = match after.strip_prefix('=') {
            Some(after) => value(after.trim_start_matches(SPACE))?,
            None => ("", after),
        };
        if found.is_none() && name.trim().eq_ignore_ascii_case("rel") {
            found = Some(value);
        }
        rest = after.trim_start_matches(SPACE);
    }
    (rest.is_empty() || rest.starts_with(',')).then_some((found, rest))
}

/// A parameter's value, quoted or plain, and what comes after it.
fn value(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        return Some((text[..end].trim_end(), &text[end..]));
    };
    let mut escaped = false;
    let end = quoted.find(|c| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    })?;
    Some((&quoted[..end], &quoted[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_800_000_000;

    fn wait(value: &str) -> Option<u64> {
        retry_after(value, Timestamp::from_unix(NOW)).map(|wait| wait.as_secs())
    }

    #[test]
    fn retry_after_is_digits_or_a_coming_date() {
        assert_eq!(wait("0"), Some(0));
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait("99999999999999999999"), Some(u64::MAX));
        assert_eq!(wait("Fri, 15 Jan 2027 08:01:00 GMT"), Some(60));
        for absent in [
            "",
            "-1",
            "+1",
            "1.5",
            "1 ",
            "soon",
            "0x10",
            "Fri, 15 Jan 2027 07:59:00 GMT",
            "Fri, 15 Jan 2027 08:01:00 +0000",
            "2027-01-15T08:01:00Z",
        ] {
            assert_eq!(wait(absent), None, "{absent:?}");
        }
    }

    #[test]
    fn each_form_of_an_http_date_is_read_and_nothing_else() {
        let moment = Some(Timestamp::from_unix(784_111_777));
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(http_date(date), moment, "{date}");
        }
        for other in [
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "sun, 06 nov 1994 08:49:37 gmt",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun,  6 Nov 1994 08:49:37 GMT",
            "Sun Nov 06 08:49:37 1994",
            " Sun, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(other), None, "{other}");
        }
    }

    #[test]
    fn the_next_page_is_found_among_the_links() {
        for (header, next) in [
            (
                r#"<https://h/a?p=1>; rel="prev", <https://h/a?q=x,y;z&p=3>; rel="next""#,
                Some("https://h/a?q=x,y;z&p=3"),
            ),
            (
                r#"<a>; rel="prev", <b>; rel="next",<c>; rel="last""#,
                Some("b"),
            ),
            (r#"<a>;rel=next"#, Some("a")),
            (r#"<a> ; REL = "last NEXT""#, Some("a")),
            (
                r#"<a>; title="; rel=next, <x>; rel=next"; rel=last, <b>; rel=next"#,
                Some("b"),
            ),
            (r#"<a>; title="\""; rel=next"#, Some("a")),
            (r#"<a>; rel=last; rel=next"#, None),
            (r#"<a>; rel="last""#, None),
            (r#"<a>; title="next""#, None),
            (r#"<a>; rel="nextpage""#, None),
            (r#"<a>; rel="next"#, None),
            ("<a", None),
            ("a; rel=next", None),
            ("", None),
        ] {
            assert_eq!(next_link(header), next, "{header}");
        }
    }

    /// A link as any server may write it, with what it is about.
    fn link() -> impl Strategy<Value = (String, String, bool)> {
        let target = "[a-z0-9:/?&=,;. ]{0,20}";
        let relation = prop_oneof!["next", "last", "prev", "nextish", "NEXT"];
        let others = "(; ?title=\"[a-z<>;=, ]{0,12}\"|;a|; b=c){0,3}";
        (target, relation, others, others, any::<bool>()).prop_map(
            |(target, relation, before, after, quoted)| {
                let quote = if quoted { "\"" } else { "" };
                let text = format!("<{target}>{before}; rel={quote}{relation}{quote}{after}");
                (text, target, relation.eq_ignore_ascii_case("next"))
            },
        )
    }

    proptest! {
        #[test]
        fn the_first_next_link_of_any_list_is_found(
            links in prop::collection::vec(link(), 0..6),
            comma in "( ?, ?){1,2}",
        ) {
            let texts: Vec<_> = links.iter().map(|(text, ..)| text.as_str()).collect();
            let first = links.iter().find(|(.., next)| *next).map(|(_, target, _)| target.as_str());
            let header = texts.join(&comma);
            prop_assert_eq!(next_link(&header), first);
        }

        #[test]
        fn any_value_can_be_read(value in any::<String>(), link in "[<>;,=\" \\\\arelnxt]{0,60}") {
            for text in [&value, &link] {
                let _ = retry_after(text, Timestamp::from_unix(NOW));
                let _ = next_link(text);
            }
        }

        #[test]
        fn every_moment_is_read_back_from_its_date(seconds in 0_i64..253_402_300_800) {
            let moment = Timestamp::from_unix(seconds);
            let date = moment.as_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            prop_assert_eq!(http_date(&date), Some(moment));
            let wait = retry_after(&date, Timestamp::from_unix(NOW)).map(|wait| wait.as_secs() as i64);
            prop_assert_eq!(wait, Some(seconds - NOW).filter(|wait| *wait > 0));
        }

        #[test]
        fn whole_seconds_are_read_as_they_are(seconds: u32) {
            prop_assert_eq!(wait(&seconds.to_string()), Some(u64::from(seconds)));
        }
    }
}
