//! The GitHub double by itself: what a client, git or a story sees of it.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod conformance;
mod faults;
mod git;
mod reading;
mod support;
mod writing;
