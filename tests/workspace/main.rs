//! Checkouts of real repositories, made with the real git, as an operator would meet them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod checkout;
mod diff;
mod local;
mod refusals;
mod support;
