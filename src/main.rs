//! The `prwarden` program.

#![forbid(unsafe_code)]

fn main() {}
