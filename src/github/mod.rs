//! GitHub's REST API, as much of it as prwarden uses.
//!
//! Sources: GitHub REST API documentation (<https://docs.github.com/rest>), its best practices for
//! conditional requests and rate limits, and RFC 9110 for headers. The token leaves this room only in
//! the `Authorization` header of requests to the configured host.

mod client;
mod endpoints;
mod error;
mod headers;
mod limits;
mod proxy;
mod transport;
mod wire;

#[cfg(test)]
mod tests;

pub use client::{Client, Role};
pub use endpoints::{Conditional, Page, Target};
pub use error::ApiError;
pub use limits::RateState;
pub use wire::{Account, Branch, IssueComment, Label, Pull, Repository, ReviewComment};
