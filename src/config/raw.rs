//! The file as TOML with the place of every value, and the collector of what is wrong with it.
//!
//! A section is read key by key against the table in [`super::keys`]. This is a tree and not a set of
//! serde structs because deserialising ends at the first problem, and an operator who has five wants
//! to see five.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, ConfigErrors, Parsed, Warning, Wrong, quoted};
use super::keys::{self, Scope};

/// Collects every problem and warning of one file.
pub(super) struct Report<'a> {
    file: Option<&'a Path>,
    text: &'a str,
    errors: RefCell<Vec<ConfigError>>,
    warnings: RefCell<Vec<Warning>>,
}

/// A byte offset in the file; `None` when the problem is that something isn't there.
pub(super) type Offset = Option<usize>;

impl<'a> Report<'a> {
    pub(super) fn new(file: Option<&'a Path>, text: &'a str) -> Self {
        Self {
            file,
            text,
            errors: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    fn line(&self, at: Offset) -> Option<usize> {
        let before = self.text.as_bytes().get(..at?)?;
        Some(1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    pub(super) fn error(&self, at: Offset, key: Option<String>, wrong: Wrong) {
        self.errors.borrow_mut().push(ConfigError {
            file: self.file.map(Path::to_path_buf),
            line: self.line(at),
            key,
            problem: wrong.problem,
            remedy: wrong.remedy,
        });
    }

    pub(super) fn warn(&self, at: Offset, key: Option<String>, message: impl Into<String>) {
        self.warnings.borrow_mut().push(Warning {
            file: self.file.map(Path::to_path_buf),
            line: self.line(at),
            key,
            message: message.into(),
        });
    }

    pub(super) fn failed(&self) -> bool {
        !self.errors.borrow().is_empty()
    }

    pub(super) fn into_warnings(self) -> Vec<Warning> {
        self.warnings.into_inner()
    }

    /// The problems by line; those without one come last.
    pub(super) fn into_errors(self) -> ConfigErrors {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| error.line.unwrap_or(usize::MAX));
        ConfigErrors(errors)
    }
}

/// Parses the file's text; syntax errors go to the report.
pub(super) fn parse<'a>(report: &Report<'_>, text: &'a str) -> Spanned<DeTable<'a>> {
    /// One slip often breaks every line after it.
    const SHOWN: usize = 10;
    let (table, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| error.span().map_or(usize::MAX, |span| span.start));
    for error in errors.iter().take(SHOWN) {
        let at = error.span().map(|Range { start, .. }| start);
        let wrong = Wrong::new(
            format!("not valid TOML: {}", error.message()),
            "texts stand in quotes, numbers and true/false don't, and each key stands once",
        );
        report.error(at, None, wrong);
    }
    table
}

/// One section of the file, or the place where it could have been.
pub(super) struct Section<'a> {
    report: &'a Report<'a>,
    definition: &'static keys::Section,
    scope: Scope,
    /// As one would write it, for example `repo.triggers`.
    path: String,
    table: Option<&'a DeTable<'a>>,
    at: Offset,
}

impl<'a> Section<'a> {
    /// The section `definition` of `parent`, which is the whole file or one `[[repo]]`. Keys that it
    /// may not hold go to the report.
    pub(super) fn open(
        report: &'a Report<'a>,
        parent: Option<&'a DeTable<'a>>,
        prefix: &str,
        definition: &'static keys::Section,
        scope: Scope,
    ) -> Self {
        let section = Self {
            report,
            definition,
            scope,
            path: format!("{prefix}{}", definition.name),
            table: None,
            at: None,
        };
        let Some(value) = parent.and_then(|table| table.get(definition.last_name())) else {
            return section;
        };
        let at = Some(value.span().start);
        let DeValue::Table(table) = value.get_ref() else {
            let wrong = Wrong::new(
                format!("a section is expected here, not {}", kind(value.get_ref())),
                format!("write [{}] on a line of its own", section.path),
            );
            report.error(at, Some(section.path.clone()), wrong);
            return section;
        };
        let section = Self {
            table: Some(table),
            at,
            ..section
        };
        section.refuse_unknown();
        section
    }

    /// A section at the top of the file whose keys were already looked at.
    pub(super) fn reopen(
        report: &'a Report<'a>,
        root: &'a DeTable<'a>,
        definition: &'static keys::Section,
    ) -> Self {
        let value = root.get(definition.name);
        Self {
            report,
            definition,
            scope: Scope::Process,
            path: definition.name.to_owned(),
            table: value.and_then(|value| value.get_ref().as_table()),
            at: value.map(|value| value.span().start),
        }
    }

    /// One table of an array such as `[[repo]]`.
    pub(super) fn element(
        report: &'a Report<'a>,
        definition: &'static keys::Section,
        table: &'a DeTable<'a>,
        at: usize,
    ) -> Self {
        let section = Self {
            report,
            definition,
            scope: Scope::Repository,
            path: definition.name.to_owned(),
            table: Some(table),
            at: Some(at),
        };
        section.refuse_unknown();
        section
    }

    fn refuse_unknown(&self) {
        for (key, _) in self.table.into_iter().flat_map(DeTable::iter) {
            if let Some(wrong) = keys::unknown(self.definition, key.get_ref(), self.scope) {
                let path = format!("{}.{}", self.path, bare(key.get_ref()));
                self.report.error(Some(key.span().start), Some(path), wrong);
            }
        }
    }

    /// What the section holds; `None` when it isn't there.
    pub(super) fn table(&self) -> Option<&'a DeTable<'a>> {
        self.table
    }

    pub(super) fn in_repository(&self) -> bool {
        self.scope == Scope::Repository
    }

    /// Where `key` stands; the section when it doesn't.
    fn at_key(&self, key: &str) -> Offset {
        let value = self.table.and_then(|table| table.get(key));
        value.map_or(self.at, |value| Some(value.span().start))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    fn path_of(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        debug_assert!(
            self.definition.key(key).is_some(),
            "{key} is read but not in the table of keys"
        );
        self.table.and_then(|table| table.get(key))
    }

    /// The value of `key`; `None` when it isn't there or is wrong, which the report then knows.
    pub(super) fn read<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&'a DeValue<'a>) -> Parsed<T>,
    ) -> Option<T> {
        match parse(self.value(key)?.get_ref()) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.wrong(key, wrong);
                None
            }
        }
    }

    /// The elements of the list `key`; each wrong one is reported on its own.
    pub(super) fn read_each<T>(
        &self,
        key: &str,
        mut parse: impl FnMut(&'a DeValue<'a>) -> Parsed<T>,
    ) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let DeValue::Array(array) = value.get_ref() else {
            let found = kind(value.get_ref());
            let wrong = Wrong::new(
                format!("a list is expected, not {found}"),
                "put square brackets around it",
            );
            self.wrong(key, wrong);
            return None;
        };
        let mut out = Vec::with_capacity(array.len());
        for element in array.iter() {
            match parse(element.get_ref()) {
                Ok(value) => out.push(value),
                Err(wrong) => {
                    let at = Some(element.span().start);
                    self.report.error(at, Some(self.path_of(key)), wrong);
                }
            }
        }
        Some(out)
    }

    /// Refuses the value of `key`, or that it isn't there.
    pub(super) fn wrong(&self, key: &str, wrong: Wrong) {
        self.report
            .error(self.at_key(key), Some(self.path_of(key)), wrong);
    }

    pub(super) fn warn(&self, key: &str, message: impl Into<String>) {
        self.report
            .warn(self.at_key(key), Some(self.path_of(key)), message);
    }
}

/// Refuses what stands at the top of the file and is no section.
pub(super) fn refuse_unknown_sections(report: &Report<'_>, root: &DeTable<'_>) {
    for (name, _) in root.iter() {
        if let Some(wrong) = keys::unknown_section(name.get_ref()) {
            report.error(Some(name.span().start), Some(bare(name.get_ref())), wrong);
        }
    }
}

/// The tables of `[[name]]`.
pub(super) fn elements<'a>(
    report: &'a Report<'a>,
    root: &'a DeTable<'a>,
    definition: &'static keys::Section,
) -> Vec<Section<'a>> {
    let name = definition.name;
    let Some(value) = root.get(name) else {
        return Vec::new();
    };
    let refuse = |at, found: &str| {
        let wrong = Wrong::new(
            format!("a list of sections is expected, not {found}"),
            format!("begin each with [[{name}]], in double brackets"),
        );
        report.error(Some(at), Some(name.to_owned()), wrong);
    };
    let DeValue::Array(array) = value.get_ref() else {
        refuse(value.span().start, kind(value.get_ref()));
        return Vec::new();
    };
    let mut sections = Vec::with_capacity(array.len());
    for element in array.iter() {
        match element.get_ref() {
            DeValue::Table(table) => {
                let at = element.span().start;
                sections.push(Section::element(report, definition, table, at));
            }
            other => refuse(element.span().start, kind(other)),
        }
    }
    sections
}

/// Where the value at `path` stands; `None` when there is none.
pub(super) fn find(root: &DeTable<'_>, path: [&str; 2]) -> Offset {
    let section = root.get(path[0])?.get_ref().as_table()?;
    Some(section.get(path[1])?.span().start)
}

/// What kind of value it is, for a message.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A key as it stands in the file, quoted when it isn't a plain word.
fn bare(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.len() <= 60 && !key.is_empty() && key.chars().all(plain) {
        key.to_owned()
    } else {
        quoted(key)
    }
}
