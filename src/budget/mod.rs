//! The budget: windows over the ledger, the ladder, and the governor that alone admits a run.

mod reservation;

pub use reservation::{Mode, Reservation};
