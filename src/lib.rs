//! prwarden reviews pull requests from a host that nothing can reach.
//!
//! One event travels in one direction; each step is a room (module) of this crate:
//!
//! 1. [`intake`] polls GitHub with conditional requests and reads what is new;
//! 2. [`trigger`] decides, purely, whether an item asks for a review and who asked;
//! 3. [`store`] keeps the accepted trigger: ETag, watermark, decisions and rows in one transaction;
//! 4. [`budget`] claims a row and reserves its tokens in one transaction;
//! 5. [`workspace`] fetches the pull request and computes the diff over an untrusted tree;
//! 6. [`engine`] runs the review engine as a subprocess, which needs the [`budget::Reservation`];
//! 7. [`worker`] settles the reservation and records the run;
//! 8. [`report`] turns the run into safe Markdown, and [`publish`] makes it visible exactly once.
//!
//! [`daemon`] owns the threads, [`github`] the wire, [`process`] every child process, [`config`] the
//! operator's file and [`cli`] the commands. A room uses rooms below it, never above; `clock` and
//! `ids` are at the bottom. [`double`] is a GitHub that lives on the loopback interface: the demo
//! and the tests talk to it.

#![forbid(unsafe_code)]

pub mod budget;
pub mod cli;
pub mod clock;
pub mod config;
pub mod context;
pub mod daemon;
pub mod double;
pub mod engine;
pub mod findings;
pub mod github;
pub mod ids;
pub mod intake;
pub mod output;
pub mod process;
pub mod publish;
pub mod report;
pub mod secret;
pub mod store;
pub mod trigger;
pub mod worker;
pub mod workspace;
