//! Header values, read strictly: what is not as specified counts as absent. Pure.

use std::time::Duration;

use jiff::fmt::rfc2822;
use url::Url;

use crate::clock::Timestamp;

/// `Retry-After` (RFC 9110, 10.2.3): digits, or a date that is not past.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let wait = http_date(value)?.since(now);
    (!wait.is_zero()).then_some(wait)
}

/// A date in the form that senders must use (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http_date(value: &str) -> Option<Timestamp> {
    let fixed = value.len() == 29 && value.ends_with(" GMT");
    let time = fixed
        .then(|| rfc2822::DateTimeParser::new().parse_timestamp(value).ok())
        .flatten()?;
    Some(Timestamp::from(time))
}

/// The target of `rel="next"` in a `Link` header (RFC 8288), if it is an absolute address.
pub(super) fn next_link(value: &str) -> Option<Url> {
    let mut rest = value;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>')?;
        let target = &rest[start + 1..end];
        let after = &rest[end + 1..];
        let parameters = &after[..after
            .find(",<")
            .or_else(|| after.find(", <"))
            .unwrap_or(after.len())];
        let next = parameters.split(';').any(|parameter| {
            let Some((name, value)) = parameter.trim().split_once('=') else {
                return false;
            };
            let relations = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("rel")
                && relations
                    .split(' ')
                    .any(|relation| relation.eq_ignore_ascii_case("next"))
        });
        if next {
            return Url::parse(target).ok();
        }
        rest = after;
    }
    None
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
        assert_eq!(wait("Fri, 15 Jan 2027 08:01:00 GMT"), Some(60));
        for absent in [
            "",
            "-1",
            "+1",
            "1.5",
            "1 ",
            "soon",
            "0x10",
            "99999999999999999999",
            "Fri, 15 Jan 2027 07:59:00 GMT",
            "Fri, 15 Jan 2027 08:01:00 +0000",
            "2027-01-15T08:01:00Z",
        ] {
            assert_eq!(wait(absent), None, "{absent:?}");
        }
    }

    #[test]
    fn the_next_page_is_found_among_the_links() {
        let link = "<https://h/a?page=1>; rel=\"prev\", <https://h/a?q=x,y&page=3>; rel=\"next\", \
                    <https://h/a?page=9>; rel=\"last\"";
        assert_eq!(
            next_link(link).unwrap().as_str(),
            "https://h/a?q=x,y&page=3"
        );
        assert_eq!(next_link("<https://h/a>; rel=last"), None);
        assert_eq!(next_link("<not an address>; rel=\"next\""), None);
        assert_eq!(next_link("<https://h/a>; title=\"next\""), None);
    }

    proptest! {
        #[test]
        fn any_value_can_be_read(value in any::<String>()) {
            let _ = retry_after(&value, Timestamp::from_unix(NOW));
            let _ = next_link(&value);
        }

        #[test]
        fn whole_seconds_are_read_as_they_are(seconds: u32) {
            prop_assert_eq!(wait(&seconds.to_string()), Some(u64::from(seconds)));
        }
    }
}
