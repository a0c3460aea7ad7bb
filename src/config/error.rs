//! What is wrong with a configuration, where, and what to write instead.

use std::fmt;
use std::path::PathBuf;

/// One problem that refuses the configuration.
///
/// Its text is one line, `FILE:LINE: KEY: PROBLEM; REMEDY`. It never shows a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, when the problem is in one.
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// The key as one would write it, for example `budget.session_tokens`.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to write or do instead.
    pub remedy: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, &self.key)?;
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ConfigError {}

/// All problems of one configuration, in the order of their lines. Its text is one line for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub(super) Vec<ConfigError>);

impl ConfigErrors {
    /// The problems, at least one.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Something that is allowed but probably not meant. Its text is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file, when the configuration came from one.
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// The key as one would write it.
    pub key: Option<String>,
    /// What follows from it and what to do.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, &self.key)?;
        f.write_str(&self.message)
    }
}

fn write_place(
    f: &mut fmt::Formatter<'_>,
    file: &Option<PathBuf>,
    line: Option<usize>,
    key: &Option<String>,
) -> fmt::Result {
    if let Some(file) = file {
        write!(f, "{}:", file.display())?;
        if let Some(line) = line {
            write!(f, "{line}:")?;
        }
        f.write_str(" ")?;
    }
    if let Some(key) = key {
        write!(f, "{key}: ")?;
    }
    Ok(())
}

/// What is wrong with one value, before its place is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) problem: String,
    pub(super) remedy: String,
}

impl Wrong {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// A value read from the file, or why it can't be used.
pub(super) type Parsed<T> = Result<T, Wrong>;

/// A text from the file in quotes, escaped and cut at 60 characters, for a message.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
