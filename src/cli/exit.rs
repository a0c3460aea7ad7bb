//! How the program ends: exit codes after sysexits(3), decided here and nowhere else.

use std::process::ExitCode;

/// What a command comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or nothing to do.
    Success,
    /// Findings at or above `--fail-on`, a failed check, or a fault without a code of its own.
    Failure,
    /// The command line is wrong.
    Usage,
    /// The process complies with limits that nobody has published yet; a service manager starts it
    /// again until somebody has.
    NoPolicy,
    /// GitHub or the engine can't be reached (`EX_UNAVAILABLE`).
    Unavailable,
    /// Another instance works on the store (`EX_TEMPFAIL`).
    Busy,
    /// The configuration is wrong (`EX_CONFIG`).
    Config,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::NoPolicy => 3,
            Exit::Unavailable => 69,
            Exit::Busy => 75,
            Exit::Config => 78,
        })
    }
}

/// A command that did not come to an end of its own: one line for the operator, and the code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// What is wrong, where, and what to do.
    pub message: String,
    /// How the program ends.
    pub exit: Exit,
}

impl Failed {
    /// A failure that ends the program with `exit`.
    pub fn new(exit: Exit, message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            exit,
        }
    }
}
