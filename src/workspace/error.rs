//! What can go wrong between a pull request and its checkout, and whether trying again can help.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::git::{GitVersion, MINIMUM};
use crate::ids::CommitSha;
use crate::process::ProcessError;

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// Network, load, a full disk: worth another attempt.
    Transient,
    /// The same request fails the same way until somebody changes something.
    Deterministic,
    /// The program is to stop; the request was not at fault.
    Stopped,
}

/// A git program that can't be used, or a call of it that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No such program.
    #[error(
        "git is not installed or not in PATH (looked for {}); install git {MINIMUM} or newer, or set workspace.git",
        program.display()
    )]
    NotFound {
        /// What was looked for.
        program: PathBuf,
    },
    /// It lacks options that isolate it from untrusted repositories.
    #[error("{} is git {version}; {MINIMUM} or newer is needed", program.display())]
    TooOld {
        /// The executable.
        program: PathBuf,
        /// Its version.
        version: GitVersion,
    },
    /// `git --version` said something else.
    #[error("{} does not behave like git: --version printed {output:?}", program.display())]
    NotGit {
        /// The executable.
        program: PathBuf,
        /// What it printed, clipped.
        output: String,
    },
    /// The system could not start or watch it.
    #[error(transparent)]
    Start(#[from] ProcessError),
    /// It took too long and was killed.
    #[error("git {command} took longer than {} s", after.as_secs())]
    TimedOut {
        /// The subcommand.
        command: &'static str,
        /// The limit.
        after: Duration,
    },
    /// It printed more than is read of it and was killed.
    #[error("git {command} printed more than {limit} bytes")]
    TooMuchOutput {
        /// The subcommand.
        command: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// It failed, and the caller has no better name for why.
    #[error("git {command} failed: {detail}")]
    Failed {
        /// The subcommand.
        command: &'static str,
        /// Its message, clipped, or the signal that ended it.
        detail: String,
    },
    /// It printed something that does not follow git's documented format.
    #[error("git {command} printed something unexpected: {what}")]
    Unexpected {
        /// The subcommand.
        command: &'static str,
        /// What was expected.
        what: &'static str,
    },
    /// The program is to stop.
    #[error("stopped")]
    Stopped,
}

impl GitError {
    /// Whether another attempt may succeed.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Start(_) | Self::TimedOut { .. } | Self::Failed { .. } => FailureClass::Transient,
            Self::Stopped => FailureClass::Stopped,
            Self::NotFound { .. }
            | Self::TooOld { .. }
            | Self::NotGit { .. }
            | Self::TooMuchOutput { .. }
            | Self::Unexpected { .. } => FailureClass::Deterministic,
        }
    }
}

/// Why a fetch did not succeed, as far as git's message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchFailure {
    /// The remote has no such branch or pull request.
    NoSuchRef,
    /// The remote refused the token, or hides the repository from it.
    Denied,
    /// The remote answers with a redirect: the repository was renamed or transferred.
    Moved,
    /// The remote's objects are malformed in a way that git's consistency check refuses.
    Unsound,
    /// Anything else: name resolution, connection, server error, interrupted transfer.
    Unreachable,
}

/// A checkout or a local change that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// git itself.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The pull request could not be fetched.
    #[error("cannot fetch from {remote}: {}{detail}", match reason {
        FetchFailure::NoSuchRef => "no such branch or pull request: ",
        FetchFailure::Denied => "access denied (does the token read this repository?): ",
        FetchFailure::Moved => "the repository has moved: ",
        FetchFailure::Unsound => "its objects fail git's consistency check: ",
        FetchFailure::Unreachable => "",
    })]
    Fetch {
        /// The URL, which holds no credential.
        remote: String,
        /// The kind.
        reason: FetchFailure,
        /// git's message, clipped.
        detail: String,
    },
    /// The remote's URL is not one to fetch from.
    #[error("cannot fetch from {remote}: {what}")]
    Remote {
        /// The URL without credentials.
        remote: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Not a branch name.
    #[error("{name:?} is not a branch name")]
    Branch {
        /// The name, clipped.
        name: String,
    },
    /// The remote no longer (or not yet) has the commit under review.
    #[error(
        "commit {head} is not on the remote: the branch was rewritten, or the remote lags behind its API"
    )]
    HeadMissing {
        /// The commit.
        head: CommitSha,
    },
    /// Base and head share no commit.
    #[error(
        "{} and {} share no history (in a shallow clone: fetch more of it)",
        base.short(),
        head.short()
    )]
    NoMergeBase {
        /// The tip of the base branch.
        base: CommitSha,
        /// The head.
        head: CommitSha,
    },
    /// A revision that the local repository does not know.
    #[error("{revision:?} names no commit in {}", directory.display())]
    UnknownRevision {
        /// What the user typed, clipped.
        revision: String,
        /// Where it was looked up.
        directory: PathBuf,
    },
    /// No repository here.
    #[error("{} is not inside a git repository", directory.display())]
    NotARepository {
        /// Where one was looked for.
        directory: PathBuf,
    },
    /// The change is over the size gate.
    #[error(
        "the change is too large: {files} files and {lines} lines, allowed are {max_files} files and {max_lines} lines"
    )]
    TooLarge {
        /// Files after the exclusions.
        files: u64,
        /// Added and removed lines in them.
        lines: u64,
        /// `budget.max_changed_files`.
        max_files: u32,
        /// `budget.max_changed_lines`.
        max_lines: u32,
    },
    /// Few lines, but very long ones; or more names than are read.
    #[error("the change is too large: its {what} takes more than {limit} bytes")]
    TooManyBytes {
        /// Which part.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The head holds more files than are written to disk.
    #[error("the head's tree is too large: its list of files takes more than {limit} bytes")]
    TreeTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A path in the head that some system would take for `.git` or that leaves the tree.
    #[error("the head holds a dangerous path that is not written to disk: {path}")]
    UnsafePath {
        /// The path, clipped and escaped.
        path: String,
    },
    /// Not enough space.
    #[error(
        "{} has {free_mb} MB free; the checkout needs {needed_mb} MB including workspace.min_free_mb",
        directory.display()
    )]
    Disk {
        /// The cache directory.
        directory: PathBuf,
        /// Free for us.
        free_mb: u64,
        /// The floor plus the size of what is to be written.
        needed_mb: u64,
    },
    /// The cache directory is not ours alone.
    #[error(
        "{} must belong to the user that runs prwarden: choose another workspace.cache_dir",
        directory.display()
    )]
    ForeignDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// Others may write the cache directory, so it is hardly meant for prwarden alone.
    #[error(
        "others may write {} (mode {mode:o}): choose a workspace.cache_dir of prwarden's own, or chmod \
         it to 0700", directory.display()
    )]
    SharedDirectory {
        /// The directory.
        directory: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The run's name can't name a directory and a reference, or another checkout has it.
    #[error("{run:?} is not a run name of its own: letters, digits and hyphens, at most 64")]
    RunName {
        /// The name, clipped.
        run: String,
    },
}

/// What git says (in the C locale) of objects and references of its own that it can't read.
const DAMAGE: [&str; 12] = [
    "index file",
    "packfile",
    "pack has",
    "object file",
    "loose object",
    "bad object",
    "is corrupt",
    "unable to read",
    "unresolved delta",
    "did not send all necessary objects",
    "not a git repository",
    "bad config",
];

impl WorkspaceError {
    /// Whether the mirror itself seems to be damaged, as after a power cut or on a full disk.
    pub(super) fn tells_damage(&self) -> bool {
        let detail = match self {
            Self::Git(GitError::Failed { detail, .. }) => detail,
            Self::Fetch {
                reason: FetchFailure::Unreachable,
                detail,
                ..
            } => detail,
            _ => return false,
        };
        !detail.starts_with("remote:") && DAMAGE.iter().any(|words| detail.contains(words))
    }

    /// Whether another attempt may succeed. A missing head counts as transient, because the remote's
    /// git side can lag behind its API by seconds.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Git(error) => error.class(),
            Self::Fetch { reason, .. } => match reason {
                FetchFailure::Unreachable | FetchFailure::NoSuchRef => FailureClass::Transient,
                FetchFailure::Denied | FetchFailure::Moved | FetchFailure::Unsound => {
                    FailureClass::Deterministic
                }
            },
            Self::HeadMissing { .. } | Self::Disk { .. } | Self::Io { .. } => {
                FailureClass::Transient
            }
            Self::Remote { .. }
            | Self::Branch { .. }
            | Self::NoMergeBase { .. }
            | Self::UnknownRevision { .. }
            | Self::NotARepository { .. }
            | Self::TooLarge { .. }
            | Self::TooManyBytes { .. }
            | Self::TreeTooLarge { .. }
            | Self::UnsafePath { .. }
            | Self::ForeignDirectory { .. }
            | Self::SharedDirectory { .. }
            | Self::RunName { .. } => FailureClass::Deterministic,
        }
    }

    /// An error of the file system at `path`.
    pub(super) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
