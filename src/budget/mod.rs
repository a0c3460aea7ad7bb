//! The budget: windows over the ledger, the ladder, and the governor that alone admits a run.
//!
//! Everything here but the governor is pure, and nothing outside of it may make a [`Reservation`].

mod breaker;
mod charges;
mod estimate;
mod governor;
pub mod model;
mod outlook;
pub mod pool;
mod refusal;
mod reservation;
mod windows;

#[cfg(test)]
mod tests;

pub use crate::store::ledger::Mode;
pub use breaker::Breaker;
pub use charges::Charges;
pub use estimate::TooLarge;
pub use governor::{
    Claim, ClaimOutcome, ClaimRequest, Work, breaker, claim, preflight, settle, trip,
};
pub use outlook::{Outlook, outlook};
pub use refusal::{Reason, Refusal, Scope};
pub use reservation::Reservation;
pub use windows::{Measured, Window, WindowKind};
