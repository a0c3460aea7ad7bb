//! The `prwarden` program: parses arguments, runs the command, ends with its exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    prwarden::cli::main(std::env::args_os())
}
