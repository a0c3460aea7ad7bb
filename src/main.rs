//! The `prwarden` program: parses arguments, runs the command, ends with its exit code.

fn main() {}
