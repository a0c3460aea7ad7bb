//! A pull request's change as data: which files, which lines, what was left out.

use std::fmt;

use crate::findings::Omitted;
use crate::ids::CommitSha;

/// A path inside a repository: bytes, because git paths need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoPath(pub Vec<u8>);

impl RepoPath {
    /// The text for display and for findings; bytes that are not UTF-8 become U+FFFD.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::output::clip(&self.to_text()))
    }
}

/// What happened to a file between base and head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// New in the head.
    Added,
    /// Content or mode differ.
    Modified,
    /// Gone in the head.
    Deleted,
    /// Moved, perhaps with edits.
    Renamed,
    /// Copied from another file.
    Copied,
    /// File, symlink and submodule are different types.
    TypeChanged,
}

/// A line that the head has and the base has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedLine {
    /// Its number in the head, counted from 1.
    pub number: u32,
    /// Its bytes without the newline.
    pub text: Vec<u8>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path in the head (in the base for a deleted file).
    pub path: RepoPath,
    /// The path in the base of a renamed or copied file.
    pub old_path: Option<RepoPath>,
    /// What happened.
    pub status: FileStatus,
    /// git's mode in the base, `0o100644` and the like; 0 when absent.
    pub old_mode: u32,
    /// git's mode in the head; 0 when absent.
    pub new_mode: u32,
    /// git takes it for binary: it has no lines.
    pub binary: bool,
    /// Size of the head's blob in bytes; `None` for deleted files and submodules.
    pub size: Option<u64>,
    /// Lines added, in order.
    pub added: Vec<AddedLine>,
    /// How many lines were removed.
    pub deleted: u32,
    /// Where a symlink points, when the head's entry is one.
    pub symlink_target: Option<Vec<u8>>,
}

/// Everything that a review looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The merge base, from which the diff is taken.
    pub base: CommitSha,
    /// The commit under review.
    pub head: CommitSha,
    /// Commits from the merge base to the head.
    pub commits: u32,
    /// The files that are reviewed.
    pub files: Vec<FileChange>,
    /// The unified diff of those files, in git's format.
    pub patch: Vec<u8>,
    /// Lines added and removed in those files.
    pub lines: u32,
    /// What was withheld from the review, and why.
    pub omitted: Vec<Omitted>,
}
