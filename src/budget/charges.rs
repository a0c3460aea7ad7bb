//! The charges of the last week, which every claim adds up anew.

use super::windows::WEEK;
use crate::clock::Timestamp;
use crate::ids::{MicroUsd, Tokens};
use crate::store::ledger::{self, Charge, Cost};
use crate::store::{StoreError, Txn};

/// The charges as one worker has read them.
///
/// The ledger is append-only and a row changes once, when it is settled. So after the first look it is
/// enough to read the rows that are new and those that were open, and a claim costs nearly the same
/// whatever the week holds.
#[derive(Debug, Default)]
pub struct Charges {
    /// Oldest first; those before `since` are over.
    rows: Vec<Charge>,
    /// Tokens and money of all rows before the one at the same place, and at the end of all.
    sums: Vec<(u128, u128)>,
    /// The ids of those that are not settled.
    open: Vec<i64>,
    /// What was read; `None` before the first time.
    read: Option<Read>,
}

#[derive(Debug, Clone, Copy)]
struct Read {
    /// The rows are complete since then.
    complete_since: Timestamp,
    /// The window's start at the last time.
    since: Timestamp,
    /// The newest row of the whole ledger.
    last_id: i64,
}

/// So many rows that are over are kept before they are dropped together.
const OVER: usize = 4096;

impl Charges {
    /// The charges of the 7 days before the last [`Charges::read`], oldest first.
    pub fn rows(&self) -> &[Charge] {
        match self.read {
            Some(read) => &self.rows[self.rows.partition_point(|row| row.at <= read.since)..],
            None => &[],
        }
    }

    /// What was charged to everybody since `since` (exclusive).
    pub fn since(&self, since: Timestamp) -> Cost {
        let start = self.rows.partition_point(|row| row.at <= since);
        let (Some(before), Some(all)) = (self.sums.get(start), self.sums.last()) else {
            return Cost::ZERO;
        };
        let held = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        Cost {
            tokens: Tokens(held(all.0 - before.0)),
            money: MicroUsd(held(all.1 - before.1)),
        }
    }

    /// Reads what is new since the last time.
    ///
    /// # Errors
    /// When the store or a row can't be read.
    pub fn read(&mut self, txn: &Txn<'_>, now: Timestamp) -> Result<(), StoreError> {
        let since = now.minus(WEEK);
        let last_id = ledger::last_id(txn)?;
        let complete_since = match self.read.take() {
            Some(read) if read.complete_since <= since => {
                self.catch_up(txn, read.last_id)?;
                self.drop_old(since, read.complete_since)
            }
            // The first look, or the clock was set back to before what was kept.
            _ => {
                self.rows = ledger::charges(txn, since)?;
                let open = self.rows.iter().filter(|row| row.open);
                self.open = open.map(|row| row.id).collect();
                self.add_up(0);
                since
            }
        };
        self.read = Some(Read {
            complete_since,
            since,
            last_id,
        });
        Ok(())
    }

    fn catch_up(&mut self, txn: &Txn<'_>, last_id: i64) -> Result<(), StoreError> {
        let mut fresh = ledger::charges_after(txn, last_id)?;
        let mut unchanged = self.rows.len();
        for id in std::mem::take(&mut self.open) {
            // What is open is mostly new.
            if let Some(at) = self.rows.iter().rposition(|row| row.id == id) {
                self.rows.remove(at);
                unchanged = unchanged.min(at);
                fresh.extend(ledger::charge(txn, id)?);
            }
        }
        for charge in fresh {
            if charge.open {
                self.open.push(charge.id);
            }
            let place = (charge.at, charge.id);
            let rows = self.rows.iter().rev();
            let later = rows.take_while(|row| (row.at, row.id) > place);
            let at = self.rows.len() - later.count();
            self.rows.insert(at, charge);
            unchanged = unchanged.min(at);
        }
        self.add_up(unchanged);
        Ok(())
    }

    /// Adds up anew from the row at `unchanged` on.
    fn add_up(&mut self, unchanged: usize) {
        self.sums.truncate(unchanged + 1);
        let mut sum = self.sums.last().copied().unwrap_or_default();
        if self.sums.is_empty() {
            self.sums.push(sum);
        }
        for row in self.rows.iter().skip(self.sums.len() - 1) {
            sum.0 += u128::from(row.cost.tokens.0);
            sum.1 += u128::from(row.cost.money.0);
            self.sums.push(sum);
        }
    }

    /// Drops what was over before `since`, when it is much; tells since when the rest is complete.
    fn drop_old(&mut self, since: Timestamp, complete_since: Timestamp) -> Timestamp {
        let over = self.rows.partition_point(|row| row.at <= since);
        if over < OVER {
            return complete_since;
        }
        self.rows.drain(..over);
        self.add_up(0);
        since
    }
}
