//! Single values: TOML on one side, checked Rust types on the other.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::error::{Parsed, Wrong, quoted};
use super::raw::kind;
use crate::ids::{MicroUsd, Tokens, UserId};

/// A text without NUL.
pub(super) fn text<'a>(value: &'a DeValue<'_>) -> Parsed<&'a str> {
    let Some(text) = value.as_str() else {
        return Err(Wrong::new(
            format!("a text is expected, not {}", kind(value)),
            "put it in quotes",
        ));
    };
    if text.contains('\0') {
        return Err(Wrong::new("it contains a NUL character", "remove it"));
    }
    Ok(text)
}

/// A text of one line that isn't empty.
pub(super) fn line(value: &DeValue<'_>) -> Parsed<String> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err(Wrong::new("it is empty", "write a text or remove it"));
    }
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(
            "it contains a line break or another control character",
            "write it on one line",
        ));
    }
    Ok(text.to_owned())
}

/// A text that may be empty for "none".
pub(super) fn optional<T>(
    value: &DeValue<'_>,
    parse: impl FnOnce(&DeValue<'_>) -> Parsed<T>,
) -> Parsed<Option<T>> {
    if text(value)?.is_empty() {
        Ok(None)
    } else {
        parse(value).map(Some)
    }
}

/// `true` or `false`.
pub(super) fn flag(value: &DeValue<'_>) -> Parsed<bool> {
    value.as_bool().ok_or_else(|| {
        Wrong::new(
            format!("true or false is expected, not {}", kind(value)),
            "write true or false without quotes",
        )
    })
}

fn integer(value: &DeValue<'_>) -> Parsed<i128> {
    let DeValue::Integer(integer) = value else {
        return Err(Wrong::new(
            format!("a whole number is expected, not {}", kind(value)),
            "write digits without quotes",
        ));
    };
    i128::from_str_radix(integer.as_str(), integer.radix())
        .map_err(|_| Wrong::new("the number is too large", "write a smaller one"))
}

/// A whole number inside `range`.
pub(super) fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&DeValue<'_>) -> Parsed<T>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    move |value| {
        let number = integer(value)?;
        let inside = T::try_from(number).ok().filter(|n| range.contains(n));
        inside.ok_or_else(|| {
            Wrong::new(
                format!("{number} is out of range"),
                format!("write a number from {} to {}", range.start(), range.end()),
            )
        })
    }
}

/// Whole seconds inside `range`.
pub(super) fn seconds(range: RangeInclusive<u64>) -> impl Fn(&DeValue<'_>) -> Parsed<Duration> {
    let whole = whole(range);
    move |value| whole(value).map(Duration::from_secs)
}

/// Percent from 1 to 100.
pub(super) fn percent(value: &DeValue<'_>) -> Parsed<u32> {
    whole(1..=100)(value)
}

/// Tokens: an integer, or a text such as `"1_500_000"`, `"1500k"` or `"1.5m"`.
pub(super) fn tokens(value: &DeValue<'_>) -> Parsed<Tokens> {
    let amount = match value {
        DeValue::String(text) => parse_tokens(text)?,
        DeValue::Integer(_) => {
            let number = integer(value)?;
            u64::try_from(number).map_err(|_| out_of_range(&number.to_string()))?
        }
        other => {
            return Err(Wrong::new(
                format!("a number of tokens is expected, not {}", kind(other)),
                "write it like 1_500_000, \"1500k\" or \"1.5m\"",
            ));
        }
    };
    if amount == 0 {
        return Err(Wrong::new(
            "zero tokens allow no run",
            "write a positive number, or budget.enabled = false to stop spending",
        ));
    }
    if amount > Tokens::MOST.0 {
        return Err(out_of_range(&amount.to_string()));
    }
    Ok(Tokens(amount))
}

/// Dollars: a number or a text such as `2.50`, exact to the millionth.
pub(super) fn dollars(value: &DeValue<'_>) -> Parsed<MicroUsd> {
    const REMEDY: &str = "write dollars like 5, 2.50 or \"0.125\"";
    let text = match value {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        other => {
            return Err(Wrong::new(
                format!("an amount of dollars is expected, not {}", kind(other)),
                REMEDY,
            ));
        }
    };
    let amount = parse_dollars(text).ok_or_else(|| {
        Wrong::new(
            format!("{} is not an amount of dollars", quoted(text)),
            REMEDY,
        )
    })?;
    if amount == 0 {
        return Err(Wrong::new(
            "zero dollars allow no run",
            "write a positive amount, or remove the key",
        ));
    }
    if amount > MicroUsd::MOST.0 {
        return Err(Wrong::new(
            format!("{} is out of range", quoted(text)),
            format!("write at most {}", MicroUsd::MOST.0 / MicroUsd::DOLLAR),
        ));
    }
    Ok(MicroUsd(amount))
}

/// Reads digits with at most one point and at most six digits after it (underscores may group them)
/// as millionths; `None` for anything else, also for more than the store's signed 64 bits hold.
pub(super) fn parse_dollars(text: &str) -> Option<u64> {
    let (units, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !grouped(units) || !grouped(fraction) {
        return None;
    }
    let fraction = fraction.replace('_', "");
    let fraction = fraction.trim_end_matches('0');
    let zeros = "0".repeat(6_usize.checked_sub(fraction.len())?);
    let digits = format!("{}{fraction}{zeros}", units.replace('_', ""));
    u64::try_from(digits.parse::<i64>().ok()?).ok()
}

/// Whether `digits` are decimal digits, in groups between single underscores.
fn grouped(digits: &str) -> bool {
    digits
        .split('_')
        .all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()))
}

fn out_of_range(text: &str) -> Wrong {
    Wrong::new(
        format!("{} is out of range", quoted(text)),
        format!("write a number from 1 to {}", Tokens::MOST.0),
    )
}

/// Reads `1_500_000`, `1500k`, `1.5m` (k and m in either case). A fraction that doesn't come out as
/// whole tokens is refused, as is what the store's signed 64 bits can't hold.
pub(super) fn parse_tokens(text: &str) -> Parsed<u64> {
    let unreadable = || {
        Wrong::new(
            format!("{} is not a number of tokens", quoted(text)),
            "write it like 1_500_000, \"1500k\" or \"1.5m\"",
        )
    };
    let (number, exponent) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 3_usize),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 6),
        _ => (text, 0),
    };
    let (units, fraction) = match number.split_once('.') {
        Some((units, fraction)) => (units, Some(fraction)),
        None => (number, None),
    };
    if !grouped(units) || !fraction.is_none_or(grouped) {
        return Err(unreadable());
    }
    let fraction = fraction.unwrap_or_default().replace('_', "");
    let fraction = fraction.trim_end_matches('0');
    let Some(zeros) = exponent.checked_sub(fraction.len()) else {
        return Err(Wrong::new(
            format!("{} is not a whole number of tokens", quoted(text)),
            "write fewer digits after the point",
        ));
    };
    let digits = format!("{}{fraction}{}", units.replace('_', ""), "0".repeat(zeros));
    let amount: i64 = digits.parse().map_err(|_| out_of_range(text))?;
    u64::try_from(amount).map_err(|_| unreadable())
}

/// A path; relative ones belong to the working directory.
pub(super) fn path(value: &DeValue<'_>) -> Parsed<PathBuf> {
    let text = line(value)?;
    if text.starts_with('~') {
        return Err(Wrong::new(
            format!("{} begins with ~, which is not expanded", quoted(&text)),
            "write the whole path",
        ));
    }
    Ok(PathBuf::from(text))
}

/// A program: an absolute path or a name for `PATH`. A relative path would be looked up in the
/// directory that the program runs in, and for an engine that is a checkout of untrusted files.
pub(super) fn program(value: &DeValue<'_>) -> Parsed<PathBuf> {
    let path = path(value)?;
    let plain =
        path.components().count() == 1 && !path.as_os_str().as_encoded_bytes().contains(&b'/');
    if path.is_absolute() || (plain && path.file_name().is_some()) {
        return Ok(path);
    }
    Err(Wrong::new(
        format!("{} is a relative path", quoted(&path.to_string_lossy())),
        "write an absolute path, or a plain name that is looked up in PATH",
    ))
}

/// An account's numeric id.
pub(super) fn user_id(value: &DeValue<'_>) -> Parsed<UserId> {
    if let Some(login) = value.as_str() {
        let login = login.trim_start_matches('@');
        let plain = !login.is_empty()
            && login.len() <= 60
            && login
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        return Err(if plain && login.bytes().all(|b| b.is_ascii_digit()) {
            Wrong::new(
                format!("the id {login} stands in quotes"),
                "write the number without quotes",
            )
        } else if plain {
            Wrong::new(
                format!(
                    "{} is a login, which can be renamed and taken over",
                    quoted(login)
                ),
                format!(
                    "write the account's numeric id, the \"id\" that https://api.github.com/users/{login} shows"
                ),
            )
        } else {
            Wrong::new(
                format!("{} is not an account's id", quoted(login)),
                "write the numeric id, the \"id\" that https://api.github.com/users/LOGIN shows",
            )
        });
    }
    let number = integer(value)?;
    let id = i64::try_from(number)
        .ok()
        .and_then(|number| UserId::try_from(number).ok());
    id.ok_or_else(|| {
        Wrong::new(
            format!("{number} is not an account's id"),
            "write the positive numeric id, the \"id\" that https://api.github.com/users/LOGIN shows",
        )
    })
}

/// The name of an environment variable. What follows an `=` is never shown: it may be a key.
pub(super) fn variable(value: &DeValue<'_>) -> Parsed<String> {
    let text = text(value)?;
    if let Some((name, _)) = text.split_once('=') {
        return Err(Wrong::new(
            format!("{}=… sets a variable", quoted(name).trim_matches('"')),
            "write only the name; its value comes from the environment",
        ));
    }
    let start = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !start || !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Wrong::new(
            format!(
                "{} is not the name of an environment variable",
                quoted(text)
            ),
            "write letters, digits and _, for example GITHUB_TOKEN",
        ));
    }
    Ok(text.to_owned())
}

/// A path or pattern inside a repository: relative, without `..`.
pub(super) fn inside_repository(value: &DeValue<'_>) -> Parsed<String> {
    let text = line(value)?;
    let leaves = text.starts_with('/') || text.split('/').any(|part| part == "..");
    if leaves {
        return Err(Wrong::new(
            format!("{} leads out of the repository", quoted(&text)),
            "write it relative to the repository's root, without ..",
        ));
    }
    Ok(text)
}

/// One of `choices`.
pub(super) fn choice<T: Copy>(
    choices: &'static [(&'static str, T)],
) -> impl Fn(&DeValue<'_>) -> Parsed<T> {
    move |value| {
        let text = text(value)?;
        let found = choices.iter().find(|(name, _)| *name == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            Wrong::new(
                format!("{} is not one of the choices", quoted(text)),
                format!("write one of {}", names.join(", ")),
            )
        })
    }
}
