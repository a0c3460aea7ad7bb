//! The log: one stream of lines on standard error.
//!
//! Whatever a message contains, it stays one line and can't pretend to be another: line breaks,
//! terminal controls and invisible characters are escaped, here and not only where messages are
//! made. Lines of other crates are written from `warn` on at most, because their debug lines may
//! hold request headers.

use std::io::{IsTerminal, Write as _};

use ::log::kv::{Error as KvError, Key, Value, VisitSource};
use ::log::{Level, LevelFilter, Record};
use env_logger::WriteStyle;
use nix::sys::stat::fstat;
use serde_json::{Map, Value as Json};

use super::escape;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::config::{Env, LogConfig, LogFormat};

/// Longest message, in characters. Untrusted parts are clipped far below it where they come in.
const MESSAGE: usize = 4_000;

/// Longest value of a field, in characters.
const FIELD: usize = 200;

/// The fields that a line may have, in this order; others follow.
const FIELDS: [&str; 6] = ["repo", "pr", "key", "role", "reason", "tokens"];

/// What the command line says about the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogFlags {
    /// `--log`.
    pub level: Option<LevelFilter>,
    /// `--log-format`.
    pub format: Option<LogFormat>,
}

/// An environment variable that counts holds something else than a choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} is wrong; write one of {choices}, or unset it")]
pub struct LogError {
    variable: &'static str,
    choices: &'static str,
}

/// What is in force: flag, else environment (`PRWARDEN_LOG`, `PRWARDEN_LOG_FORMAT`), else file. An
/// empty variable counts as not set.
///
/// # Errors
/// When a variable that counts can't be read.
pub fn settings(file: &LogConfig, flags: LogFlags, env: Env<'_>) -> Result<LogConfig, LogError> {
    let level = match flags.level {
        Some(level) => level,
        None => variable(env, "PRWARDEN_LOG", "error, warn, info, debug, trace, off")?
            .unwrap_or(file.level),
    };
    let format = match flags.format {
        Some(format) => format,
        None => variable(env, "PRWARDEN_LOG_FORMAT", "auto, text, json")?.unwrap_or(file.format),
    };
    Ok(LogConfig { level, format })
}

fn variable<T: std::str::FromStr>(
    env: Env<'_>,
    variable: &'static str,
    choices: &'static str,
) -> Result<Option<T>, LogError> {
    match env(variable).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => text
            .parse()
            .map(Some)
            .map_err(|_| LogError { variable, choices }),
    }
}

/// Starts writing the log. `env` gives `PRWARDEN_LOG`, `PRWARDEN_LOG_FORMAT`, `JOURNAL_STREAM`,
/// `NO_COLOR` and `TERM`. A second start in one process keeps what the first one set.
///
/// # Errors
/// As for [`settings`].
pub fn init(file: &LogConfig, flags: LogFlags, env: Env<'_>) -> Result<(), LogError> {
    let LogConfig { level, format } = settings(file, flags, env)?;
    let terminal = std::io::stderr().is_terminal();
    let layout = Layout::new(format, terminal, journal(env), env);
    // Only a second start fails.
    let _ = env_logger::Builder::new()
        .filter_level(level.min(LevelFilter::Warn))
        .filter_module("prwarden", level)
        // The layout decides about colours; this keeps its decision.
        .write_style(if layout.colours {
            WriteStyle::Always
        } else {
            WriteStyle::Never
        })
        .format(move |out, record| writeln!(out, "{}", layout.line(record, SystemClock.now())))
        .try_init();
    Ok(())
}

/// Whether standard error is the stream that the service manager named in `JOURNAL_STREAM` as
/// `DEVICE:INODE`. The variable alone says nothing: a child whose output went elsewhere inherits it.
fn journal(env: Env<'_>) -> bool {
    let stream = env("JOURNAL_STREAM");
    let stderr = fstat(std::io::stderr()).ok();
    stream
        .zip(stderr)
        .is_some_and(|(stream, stat)| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    json: bool,
    colours: bool,
    priority: bool,
}

impl Layout {
    fn new(format: LogFormat, terminal: bool, journal: bool, env: Env<'_>) -> Self {
        let json = match format {
            LogFormat::Auto => !terminal,
            LogFormat::Text => false,
            LogFormat::Json => true,
        };
        let plain = env("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env("TERM").is_some_and(|value| value == "dumb");
        Self {
            json,
            colours: !json && terminal && !plain,
            priority: journal,
        }
    }

    fn line(self, record: &Record<'_>, time: Timestamp) -> String {
        let mut fields = Fields(Map::new());
        // Collecting fields refuses none of them.
        let _ = record.key_values().visit(&mut fields);
        let message = escape(&record.args().to_string(), MESSAGE);
        let line = if self.json {
            json(record, time, message, fields.0)
        } else {
            self.text(record, time, &message, &fields.0)
        };
        if self.priority {
            format!("<{}>{line}", priority(record.level()))
        } else {
            line
        }
    }

    /// `TIME LEVEL TARGET FIELD=VALUE ...: MESSAGE`. The message comes last, so that nothing in it
    /// looks like a field.
    fn text(
        self,
        record: &Record<'_>,
        time: Timestamp,
        message: &str,
        fields: &Map<String, Json>,
    ) -> String {
        let (on, off) = if self.colours {
            (colour(record.level()), "\u{1b}[0m")
        } else {
            ("", "")
        };
        let target = escape(record.target(), FIELD);
        let target = target.strip_prefix("prwarden::").unwrap_or(&target);
        let mut line = format!(
            "{} {on}{:<5}{off} {target}",
            time.to_github(),
            record.level()
        );
        for (name, value) in ordered(fields) {
            let value = match value {
                Json::String(text) if text.is_empty() || text.contains([' ', '"', '=', ':']) => {
                    value.to_string()
                }
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            line.push_str(&format!(" {name}={value}"));
        }
        line.push_str(": ");
        line.push_str(message);
        line
    }
}

fn json(
    record: &Record<'_>,
    time: Timestamp,
    message: String,
    fields: Map<String, Json>,
) -> String {
    let mut line = Map::new();
    let mut put = |name: &str, value: Json| {
        line.entry(name).or_insert(value);
    };
    put("time", time.to_string().into());
    put("level", record.level().as_str().to_lowercase().into());
    put("target", escape(record.target(), FIELD).into());
    put("message", message.into());
    for (name, value) in ordered(&fields) {
        put(name, value.clone());
    }
    Json::Object(line).to_string()
}

/// The known fields in their order, then the others.
fn ordered(fields: &Map<String, Json>) -> impl Iterator<Item = (&str, &Json)> {
    let known = FIELDS.iter().filter_map(|name| {
        let value = fields.get(*name)?;
        Some((*name, value))
    });
    let others = fields.iter().map(|(name, value)| (name.as_str(), value));
    known.chain(others.filter(|(name, _)| !FIELDS.contains(name)))
}

/// What journald takes for a line's priority (`sd-daemon(3)`).
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::Error => "\u{1b}[1;31m",
        Level::Warn => "\u{1b}[33m",
        Level::Info => "\u{1b}[32m",
        Level::Debug => "\u{1b}[34m",
        Level::Trace => "\u{1b}[36m",
    }
}

/// The key-values of a record: numbers and booleans as such, everything else as one clipped line.
struct Fields(Map<String, Json>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), KvError> {
        let json = if let Some(number) = value.to_i64() {
            number.into()
        } else if let Some(number) = value.to_u64() {
            number.into()
        } else if let Some(flag) = value.to_bool() {
            flag.into()
        } else {
            escape(&value.to_string(), FIELD).into()
        };
        self.0.insert(escape(key.as_str(), FIELD), json);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::log::kv::Source;
    use proptest::prelude::*;

    const TEXT: Layout = Layout {
        json: false,
        colours: false,
        priority: false,
    };
    const JSON: Layout = Layout { json: true, ..TEXT };

    const NONE: &[(&str, i64)] = &[];

    fn no_env(_: &str) -> Option<String> {
        None
    }

    fn written(layout: Layout, message: &str, fields: &dyn Source) -> String {
        let args = format_args!("{message}");
        let mut record = Record::builder();
        record.level(Level::Warn).target("prwarden::worker");
        layout.line(
            &record.args(args).key_values(&fields).build(),
            Timestamp::EPOCH,
        )
    }

    #[test]
    fn a_line_of_text_has_its_fields_before_the_message() {
        let fields: &[(&str, Value<'_>)] = &[
            ("reason", "too large".into()),
            ("pr", 12_i64.into()),
            ("repo", "o/r".into()),
        ];
        assert_eq!(
            written(TEXT, "skipped repo=x", &fields),
            "1970-01-01T00:00:00Z WARN  worker repo=o/r pr=12 reason=\"too large\": skipped repo=x"
        );
    }

    #[test]
    fn a_json_line_has_the_fields_in_their_order_and_numbers_as_numbers() {
        let fields: &[(&str, Value<'_>)] = &[
            ("tokens", 5_u64.into()),
            ("extra", true.into()),
            ("message", "forged".into()),
            ("pr", 12_i64.into()),
        ];
        assert_eq!(
            written(JSON, "say \"hi\"", &fields),
            r#"{"time":"1970-01-01T00:00:00.000000+00:00","level":"warn","target":"prwarden::worker","message":"say \"hi\"","pr":12,"tokens":5,"extra":true}"#
        );
    }

    #[test]
    fn journald_gets_its_priority() {
        let layout = Layout {
            priority: true,
            ..JSON
        };
        assert!(written(layout, "x", &NONE).starts_with("<4>{\"time\""));
        let stat = fstat(std::io::stderr()).unwrap();
        let own = format!("{}:{}", stat.st_dev, stat.st_ino);
        assert!(journal(
            &|name| (name == "JOURNAL_STREAM").then(|| own.clone())
        ));
        assert!(!journal(
            &|name| (name == "JOURNAL_STREAM").then(|| format!("{own}0"))
        ));
        assert!(!journal(&no_env));
    }

    #[test]
    fn flags_win_over_the_environment_and_the_environment_over_the_file() {
        let file = LogConfig {
            level: LevelFilter::Error,
            format: LogFormat::Text,
        };
        let env = |name: &str| match name {
            "PRWARDEN_LOG" => Some("debug".to_owned()),
            "PRWARDEN_LOG_FORMAT" => Some("json".to_owned()),
            _ => None,
        };
        let read = settings(&file, LogFlags::default(), &no_env).unwrap();
        assert_eq!(
            (read.level, read.format),
            (LevelFilter::Error, LogFormat::Text)
        );
        let read = settings(&file, LogFlags::default(), &env).unwrap();
        assert_eq!(
            (read.level, read.format),
            (LevelFilter::Debug, LogFormat::Json)
        );
        let flags = LogFlags {
            level: Some(LevelFilter::Trace),
            format: Some(LogFormat::Auto),
        };
        let read = settings(&file, flags, &env).unwrap();
        assert_eq!(
            (read.level, read.format),
            (LevelFilter::Trace, LogFormat::Auto)
        );
        let wrong = |_: &str| Some("loud".to_owned());
        let error = settings(&file, LogFlags::default(), &wrong).unwrap_err();
        assert!(error.to_string().contains("PRWARDEN_LOG"), "{error}");
        assert!(
            settings(&file, flags, &wrong).is_ok(),
            "a flag makes the variable irrelevant"
        );
        let empty = |_: &str| Some(String::new());
        assert_eq!(
            settings(&file, LogFlags::default(), &empty).unwrap().level,
            LevelFilter::Error
        );
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let layout = |format, terminal, env: Env<'_>| Layout::new(format, terminal, false, env);
        assert!(layout(LogFormat::Auto, true, &no_env).colours);
        assert!(!layout(LogFormat::Auto, true, &no_env).json);
        assert!(layout(LogFormat::Auto, false, &no_env).json);
        assert!(!layout(LogFormat::Text, false, &no_env).colours);
        assert!(!layout(LogFormat::Json, true, &no_env).colours);
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        assert!(!layout(LogFormat::Auto, true, &no_color).colours);
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(!layout(LogFormat::Auto, true, &dumb).colours);
    }

    #[test]
    fn a_long_message_is_cut() {
        assert!(written(TEXT, &"x".repeat(1_000_000), &NONE).len() < 5_000);
    }

    /// Not a test of its own: what the next one runs in a process of its own.
    #[test]
    fn writes_three_lines_when_asked() {
        if std::env::var_os("PRWARDEN_TEST_LOG").is_none() {
            return;
        }
        let config = LogConfig {
            level: LevelFilter::Trace,
            format: LogFormat::Auto,
        };
        init(&config, LogFlags::default(), &|name| {
            std::env::var(name).ok()
        })
        .unwrap();
        ::log::debug!(pr = 12; "ours\nforged");
        ::log::debug!(target: "ureq::run", "authorization: hunter2");
        ::log::warn!(target: "rustls", "theirs");
    }

    #[test]
    fn a_pipe_gets_json_lines_without_other_crates_details() {
        let run = |level: &str| {
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "output::log::tests::writes_three_lines_when_asked",
                ])
                .env("PRWARDEN_TEST_LOG", "1")
                .env("PRWARDEN_LOG", level)
                .env_remove("PRWARDEN_LOG_FORMAT")
                .env_remove("JOURNAL_STREAM")
                .output()
                .unwrap();
            let lines = String::from_utf8(output.stderr).unwrap();
            let read = |line: &str| serde_json::from_str::<Json>(line).unwrap();
            lines.lines().map(read).collect::<Vec<_>>()
        };
        let lines = run("debug");
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0]["message"], "ours\\nforged");
        assert_eq!(lines[0]["pr"], 12);
        assert_eq!(lines[0]["target"], "prwarden::output::log::tests");
        assert_eq!(lines[1]["target"], "rustls");
        assert_eq!(run("error").len(), 0);
    }

    proptest! {
        #[test]
        fn no_text_forges_a_line(
            message in "(\\PC|[\n\r\t\u{1b}\u{85}\u{9b}\u{2028}\u{202e}\u{e0041}]){0,60}",
            value in "(\\PC|[\n\r\t\u{1b}\u{85}\u{2028}]){0,60}",
        ) {
            let fields: &[(&str, Value<'_>)] = &[("reason", value.as_str().into())];
            for layout in [TEXT, JSON] {
                let line = written(layout, &message, &fields);
                prop_assert!(!line.chars().any(super::super::is_hidden), "{line:?}");
                if layout.json {
                    let read: Json = serde_json::from_str(&line).unwrap();
                    prop_assert_eq!(read.as_object().unwrap().len(), 5);
                    prop_assert_eq!(&read["level"], "warn");
                } else {
                    prop_assert!(line.starts_with("1970-01-01T00:00:00Z WARN  worker reason="));
                }
            }
        }
    }
}
