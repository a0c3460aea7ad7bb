//! What can be said about a change without a model: the numbers that git gives.

use super::super::answer::MAX_FILES;
use crate::findings::{ChangeKind, DescribedFile, Description};
use crate::output::count;
use crate::workspace::{Change, FileChange, FileStatus};

/// Endings of files that people read.
const PROSE: [&str; 6] = [".md", ".rst", ".adoc", ".txt", ".1", ".5"];

/// Names of folders that hold documentation.
const DOCUMENTATION: [&str; 3] = ["doc", "docs", "man"];

/// Names of folders that hold tests.
const TESTS: [&str; 5] = ["test", "tests", "spec", "testdata", "__tests__"];

/// Describes a change by its files and their lines; at most 100 files are named.
pub fn describe(change: &Change) -> Description {
    let added: usize = change.files.iter().map(|file| file.added.len()).sum();
    let deleted: usize = change.files.iter().map(|file| file.deleted as usize).sum();
    let summary = format!(
        "{} in {}: {} added and {deleted} removed. No model was asked; this is what git tells.",
        count(change.files.len(), "file"),
        count(change.commits as usize, "commit"),
        count(added, "line"),
    );
    let files = change.files.iter().take(MAX_FILES);
    Description {
        kind: kind(change),
        summary,
        files: files.map(described).collect(),
        testing: String::new(),
    }
}

fn kind(change: &Change) -> ChangeKind {
    let all = |holds: fn(&str) -> bool| {
        let mut files = change.files.iter();
        files.all(|file| holds(&file.path.to_text()))
    };
    if all(is_documentation) {
        ChangeKind::Documentation
    } else if all(is_test) {
        ChangeKind::Tests
    } else {
        ChangeKind::Mixed
    }
}

fn is_documentation(path: &str) -> bool {
    PROSE.iter().any(|ending| path.ends_with(ending)) || is_in(path, &DOCUMENTATION)
}

fn is_test(path: &str) -> bool {
    is_in(path, &TESTS)
}

fn is_in(path: &str, folders: &[&str]) -> bool {
    let mut parts = path.split('/');
    parts.next_back();
    parts.any(|part| folders.contains(&part))
}

fn described(file: &FileChange) -> DescribedFile {
    let what = match file.status {
        FileStatus::Added => "added",
        FileStatus::Modified => "changed",
        FileStatus::Deleted => "deleted",
        FileStatus::Renamed => "renamed",
        FileStatus::Copied => "copied",
        FileStatus::TypeChanged => "changed in type",
    };
    let from = file.old_path.as_ref();
    let from = from.map(|path| format!(" from `{}`", path.to_text()));
    let lines = match file.binary {
        true => "binary".to_owned(),
        false => format!("+{} −{}", file.added.len(), file.deleted),
    };
    DescribedFile {
        path: file.path.to_text(),
        summary: format!("{what}{}, {lines}", from.unwrap_or_default()),
    }
}
