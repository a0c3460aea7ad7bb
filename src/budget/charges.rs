//! The charges of the last week, which every claim adds up anew.

use super::windows::WEEK;
use crate::clock::Timestamp;
use crate::store::ledger::{self, Charge};
use crate::store::{StoreError, Txn};

/// The charges as one worker has read them.
///
/// The ledger is append-only and a row changes once, when it is settled. So after the first look it is
/// enough to read the rows that are new and those that were open, and a claim costs the same
/// whatever the week holds.
#[derive(Debug, Default)]
pub struct Charges {
    /// Oldest first.
    rows: Vec<Charge>,
    /// Since when they are complete, and the last one that was looked at; `None` before the first look.
    read: Option<(Timestamp, i64)>,
}

impl Charges {
    /// The charges of the 7 days before the last [`Charges::read`], oldest first.
    pub fn rows(&self) -> &[Charge] {
        &self.rows
    }

    /// Reads what is new since the last time.
    ///
    /// # Errors
    /// When the store or a row can't be read.
    pub fn read(&mut self, txn: &Txn<'_>, now: Timestamp) -> Result<(), StoreError> {
        let since = now.minus(WEEK);
        match self.read {
            Some((complete_since, last)) if complete_since <= since => {
                self.catch_up(txn, last)?;
            }
            // The first look, or the clock was set back to before what was kept.
            _ => self.rows = ledger::charges(txn, since)?,
        }
        self.rows.retain(|charge| charge.at > since);
        self.read = Some((since, ledger::last_id(txn)?));
        Ok(())
    }

    fn catch_up(&mut self, txn: &Txn<'_>, last: i64) -> Result<(), StoreError> {
        for charge in self.rows.iter_mut().filter(|charge| charge.open) {
            if let Some(current) = ledger::charge(txn, charge.id)? {
                *charge = current;
            }
        }
        let new = ledger::charges_after(txn, last)?;
        if !new.is_empty() {
            self.rows.extend(new);
            self.rows.sort_by_key(|charge| charge.at);
        }
        Ok(())
    }
}
