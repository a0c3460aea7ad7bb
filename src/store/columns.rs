//! Reading columns into types: a value that is not what it must be is an error with its place.

use std::fmt::Display;

use rusqlite::Row;
use serde::de::DeserializeOwned;

use super::StoreError;
use crate::clock::Timestamp;

/// The row being read: its table and key, for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) table: &'static str,
    pub(super) key: &'a str,
}

impl Place<'_> {
    pub(super) fn wrong(self, column: &'static str, why: impl Display) -> StoreError {
        let (table, key, why) = (self.table, self.key.to_owned(), why.to_string());
        StoreError::Column {
            table,
            key,
            column,
            why,
        }
    }

    /// A column that `parse` turns into its type.
    pub(super) fn parsed<T, E: Display>(
        self,
        row: &Row<'_>,
        column: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let text: String = row.get(column).map_err(|error| self.wrong(column, error))?;
        parse(&text).map_err(|error| self.wrong(column, error))
    }

    /// The same for a column that may be NULL.
    pub(super) fn parsed_or_null<T, E: Display>(
        self,
        row: &Row<'_>,
        column: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        let text: Option<String> = row.get(column).map_err(|error| self.wrong(column, error))?;
        text.map(|text| parse(&text).map_err(|error| self.wrong(column, error)))
            .transpose()
    }

    /// A moment that may be NULL. One without an offset is refused.
    pub(super) fn time_or_null(
        self,
        row: &Row<'_>,
        column: &'static str,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.parsed_or_null(row, column, str::parse)
    }

    /// An integer that `convert` turns into its type.
    pub(super) fn number<T, E: Display>(
        self,
        row: &Row<'_>,
        column: &'static str,
        convert: impl FnOnce(i64) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let number: i64 = row.get(column).map_err(|error| self.wrong(column, error))?;
        convert(number).map_err(|error| self.wrong(column, error))
    }

    /// The same for a column that may be NULL.
    pub(super) fn number_or_null<T, E: Display>(
        self,
        row: &Row<'_>,
        column: &'static str,
        convert: impl FnOnce(i64) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        let number: Option<i64> = row.get(column).map_err(|error| self.wrong(column, error))?;
        number
            .map(|number| convert(number).map_err(|error| self.wrong(column, error)))
            .transpose()
    }

    /// JSON that may be NULL.
    pub(super) fn json_or_null<T: DeserializeOwned>(
        self,
        row: &Row<'_>,
        column: &'static str,
    ) -> Result<Option<T>, StoreError> {
        self.parsed_or_null(row, column, |text| serde_json::from_str(text))
    }

    /// JSON.
    pub(super) fn json<T: DeserializeOwned>(
        self,
        row: &Row<'_>,
        column: &'static str,
    ) -> Result<T, StoreError> {
        self.parsed(row, column, |text| serde_json::from_str(text))
    }
}
