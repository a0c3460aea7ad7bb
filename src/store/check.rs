//! `prwarden db check`: the file's integrity, and what must hold between its rows.

use std::fmt;

use super::{StoreError, Txn};

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// Where: a row's key or SQLite's description.
    pub place: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.place)
    }
}

/// Each query returns the keys of the rows that break the rule.
const RULES: &[(&str, &str)] = &[
    (
        "a trigger has two open reservations",
        include_str!("../../sql/store/open_twice.sql"),
    ),
    (
        "a claimed row has no lease",
        include_str!("../../sql/store/claimed_without_lease.sql"),
    ),
    (
        "a settled ledger row has no usage",
        include_str!("../../sql/store/settled_without_usage.sql"),
    ),
    (
        "a published run has no outcome",
        include_str!("../../sql/store/published_without_outcome.sql"),
    ),
    (
        "a queue row has an unknown status",
        include_str!("../../sql/store/unknown_status.sql"),
    ),
    (
        "a value can't be read",
        include_str!("../../sql/store/unreadable.sql"),
    ),
    (
        "a row that nobody works on has an owner",
        include_str!("../../sql/store/held_after_the_end.sql"),
    ),
    (
        "an amount of the ledger is no amount",
        include_str!("../../sql/store/no_amount.sql"),
    ),
    (
        "a moment does not sort, because it is not in UTC",
        include_str!("../../sql/store/time_out_of_order.sql"),
    ),
    (
        "a watermark belongs to no repository though others do",
        include_str!("../../sql/store/watermark_not_adopted.sql"),
    ),
    (
        "a watermark belongs to no known stream",
        include_str!("../../sql/store/watermark_of_nothing.sql"),
    ),
    (
        "a publication has no run",
        include_str!("../../sql/store/publish_without_run.sql"),
    ),
];

pub(super) fn check(txn: &Txn<'_>) -> Result<Vec<Problem>, StoreError> {
    let mut problems = Vec::new();
    for place in texts(txn, "PRAGMA integrity_check")? {
        if place != "ok" {
            problems.push(Problem {
                what: "the file is damaged".to_owned(),
                place,
            });
        }
    }
    for place in texts(txn, "PRAGMA foreign_key_check")? {
        problems.push(Problem {
            what: "a reference leads nowhere".to_owned(),
            place,
        });
    }
    for (what, sql) in RULES {
        for place in texts(txn, sql)? {
            problems.push(Problem {
                what: (*what).to_owned(),
                place,
            });
        }
    }
    Ok(problems)
}

fn texts(txn: &Txn<'_>, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = txn.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
