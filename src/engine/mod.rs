//! The review engines: command-line tools run as subprocesses over a checkout, and the built-in
//! checks.

pub mod answer;
