//! Git over untrusted trees: mirror, checkout, diff, exclusions and size gate.
//!
//! [`Workspace::checkout`] fetches a pull request into a bare mirror, computes its [`Change`] there,
//! and writes the head's files into a directory of their own. [`local_change`] does the same for a
//! clone on this machine. Every call of git goes through the `git` module; no other module here (and
//! none elsewhere) may start it, read a repository's configuration, or let git write into a
//! directory that a later run uses.

pub mod change;
mod checkout;
mod diff;
mod error;
mod exclusions;
mod git;
mod local;
mod mirror;
mod patch;
mod raw;
mod repository;
mod rundir;

pub use change::{AddedLine, Change, FileChange, FileStatus, RepoPath};
pub use checkout::{Checkout, CheckoutRequest, Swept, Workspace};
pub use error::{FailureClass, FetchFailure, GitError, WorkspaceError};
pub use git::{Git, GitVersion, MINIMUM};
pub use local::{LocalChange, local_change};
pub use repository::Standard;
