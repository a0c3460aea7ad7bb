//! Computes a [`Change`] from two commits: what was changed, what of it is reviewed, and whether
//! that is small enough, before a line of it is read.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{Change, FileChange, RepoPath};
use super::error::{GitError, WorkspaceError};
use super::exclusions::Exclusions;
use super::git::Call;
use super::patch::{self, Section};
use super::raw::{self, Entry, SYMLINK, TYPE_BITS};
use super::repository::{NAMES_LIMIT, Repository};
use crate::clock::Stop;
use crate::config::SizeCaps;
use crate::findings::{OmitReason, Omitted};
use crate::ids::CommitSha;

/// Bound on the patch: lines of ordinary length stay far below it within the largest line gate.
const PATCH_LIMIT: usize = 16 << 20;

/// The longest target of a symlink that a system follows.
const LONGEST_TARGET: u64 = 4096;

/// Options of every diff: one form, whatever a repository's configuration says, and no program of
/// its choice. Renames are found by content among at most 400 files on each side, which bounds the
/// quadratic search.
const DIFF_OPTIONS: &[&str] = &[
    "-r",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--find-renames=50%",
    "-l400",
    "--full-index",
    "--submodule=short",
    "--ignore-submodules=none",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--diff-algorithm=myers",
    "-O/dev/null",
];

impl Repository {
    /// The change from the merge base of `base` and `head` to `head`.
    ///
    /// # Errors
    /// [`WorkspaceError::NoMergeBase`]; [`WorkspaceError::TooLarge`] when what survives the
    /// exclusions is over the caps.
    pub(super) fn change(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        caps: &SizeCaps,
        stop: &Stop,
    ) -> Result<Change, WorkspaceError> {
        let base = self.merge_base(base, head, stop)?;
        let exclusions = Exclusions::new(caps);
        let diff = Diff {
            repository: self,
            range: [base.as_str(), head.as_str()],
            stop,
        };
        let reviewed = exclusions.reviewed();
        let entries = diff.entries(&reviewed)?;
        let omitted = diff.omitted(&exclusions, &entries)?;
        let lines = gate(&entries, caps)?;
        let patch = diff.patch(&entries, &reviewed)?;
        let files = diff.files(entries, &patch)?;
        Ok(Change {
            commits: self.count_commits(&base, head, stop)?,
            base,
            head: head.clone(),
            files,
            patch,
            lines,
            omitted,
        })
    }
}

/// Refuses what is over the caps; returns the number of lines.
fn gate(entries: &[Entry], caps: &SizeCaps) -> Result<u32, WorkspaceError> {
    let files = entries.len() as u64;
    let lines = entries.iter().filter_map(|entry| entry.lines);
    let lines = lines.fold(0, u64::saturating_add);
    let (max_files, max_lines) = (caps.max_changed_files, caps.max_changed_lines);
    match u32::try_from(lines) {
        Ok(count) if count <= max_lines && files <= u64::from(max_files) => Ok(count),
        _ => Err(WorkspaceError::TooLarge {
            files,
            lines,
            max_files,
            max_lines,
        }),
    }
}

/// The calls that look at one pair of commits.
struct Diff<'a> {
    repository: &'a Repository,
    range: [&'a str; 2],
    stop: &'a Stop,
}

impl Diff<'_> {
    /// Runs `diff-tree` with one more set of options over some paths.
    fn run(
        &self,
        options: &[&str],
        pathspecs: &[String],
        limit: usize,
        what: &'static str,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let call = Call::new("diff-tree")
            .args(DIFF_OPTIONS)
            .args(options)
            .args(self.range)
            .args(["--"])
            .args(pathspecs)
            .limit(limit);
        match self.repository.run(call, self.stop) {
            Err(GitError::TooMuchOutput { limit, .. }) => {
                Err(WorkspaceError::TooManyBytes { what, limit })
            }
            result => Ok(result?.success()?),
        }
    }

    /// What survives the exclusions.
    fn entries(&self, reviewed: &[String]) -> Result<Vec<Entry>, WorkspaceError> {
        let options = ["--raw", "--numstat", "-z"];
        let printed = self.run(&options, reviewed, NAMES_LIMIT, "list of files")?;
        Ok(raw::parse(&printed).ok_or(GitError::Unexpected {
            command: "diff-tree",
            what: "raw records and line counts",
        })?)
    }

    /// The names of all changed files that some pathspecs match.
    fn names(&self, pathspecs: &[String]) -> Result<BTreeSet<RepoPath>, WorkspaceError> {
        let options = ["--name-only", "--no-renames", "-z"];
        let printed = self.run(&options, pathspecs, NAMES_LIMIT, "list of files")?;
        let names = printed.split(|b| *b == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| RepoPath(name.to_owned())).collect())
    }

    /// Everything changed that is not among `entries`, so that no file is in neither list.
    fn omitted(
        &self,
        exclusions: &Exclusions,
        entries: &[Entry],
    ) -> Result<Vec<Omitted>, WorkspaceError> {
        if exclusions.is_empty() {
            return Ok(Vec::new());
        }
        let mut withheld = self.names(&[])?;
        for entry in entries {
            withheld.remove(&entry.path);
            if let Some(old) = &entry.old_path {
                withheld.remove(old);
            }
        }
        let by_operator = exclusions.by_operator();
        let by_operator = if by_operator.is_empty() || withheld.is_empty() {
            BTreeSet::new()
        } else {
            self.names(&by_operator)?
        };
        let omitted = withheld.into_iter().map(|path| Omitted {
            reason: if by_operator.contains(&path) {
                OmitReason::ExcludedPath
            } else {
                OmitReason::DefaultExclusion
            },
            path: path.to_text(),
        });
        Ok(omitted.collect())
    }

    /// The unified diff of `entries`.
    fn patch(&self, entries: &[Entry], reviewed: &[String]) -> Result<Vec<u8>, WorkspaceError> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        self.run(
            &["-p", "-U3", "--inter-hunk-context=0"],
            reviewed,
            PATCH_LIMIT,
            "diff",
        )
    }

    /// Joins what is known about each file.
    fn files(&self, entries: Vec<Entry>, patch: &[u8]) -> Result<Vec<FileChange>, WorkspaceError> {
        let unexpected = |what| GitError::Unexpected {
            command: "diff-tree",
            what,
        };
        let sections = patch::parse(patch).ok_or_else(|| unexpected("a unified diff"))?;
        let paired = pair(&entries, sections);
        let paired = paired.ok_or_else(|| unexpected("one diff for each raw record"))?;
        let mut sizes = self.sizes(&entries)?;
        let mut targets = self.symlink_targets(&entries, &sizes)?;
        let files = entries
            .into_iter()
            .zip(paired)
            .map(|(entry, section)| FileChange {
                size: sizes.remove(&entry.path),
                symlink_target: targets.remove(&entry.path),
                path: entry.path,
                old_path: entry.old_path,
                status: entry.status,
                old_mode: entry.old_mode,
                new_mode: entry.new_mode,
                binary: section.binary,
                added: section.added,
                deleted: section.deleted,
            });
        Ok(files.collect())
    }

    /// The size of each file in the head.
    fn sizes(&self, entries: &[Entry]) -> Result<BTreeMap<RepoPath, u64>, WorkspaceError> {
        let blobs: Vec<_> = entries.iter().filter(|entry| entry.has_blob()).collect();
        let ids = blobs.iter().map(|entry| format!("{}\n", entry.new_id));
        let call = Call::new("cat-file")
            .args(["--batch-check=%(objectsize)"])
            .stdin(ids.collect::<String>().into_bytes())
            .limit(NAMES_LIMIT);
        let printed = self.repository.run(call, self.stop)?.success()?;
        let printed = String::from_utf8_lossy(&printed);
        let sizes: Vec<u64> = printed
            .lines()
            .map_while(|line| line.parse().ok())
            .collect();
        if sizes.len() != blobs.len() {
            return Err(unexpected_object().into());
        }
        let paths = blobs.into_iter().map(|entry| entry.path.clone());
        Ok(paths.zip(sizes).collect())
    }

    /// Where the head's symlinks point.
    fn symlink_targets(
        &self,
        entries: &[Entry],
        sizes: &BTreeMap<RepoPath, u64>,
    ) -> Result<BTreeMap<RepoPath, Vec<u8>>, WorkspaceError> {
        let mut targets = BTreeMap::new();
        for entry in entries {
            let short = sizes
                .get(&entry.path)
                .is_some_and(|size| *size <= LONGEST_TARGET);
            if entry.new_mode & TYPE_BITS == SYMLINK && short {
                let call = Call::new("cat-file").args(["blob", &entry.new_id]);
                let target = self.repository.run(call, self.stop)?.success()?;
                targets.insert(entry.path.clone(), target);
            }
        }
        Ok(targets)
    }
}

fn unexpected_object() -> GitError {
    GitError::Unexpected {
        command: "cat-file",
        what: "one size for each object",
    }
}

/// Gives each entry its part of the patch. Both are in the same order; the object ids prove it.
/// `None` when they disagree.
fn pair(entries: &[Entry], sections: Vec<Section>) -> Option<Vec<Section>> {
    let mut sections = sections.into_iter();
    let mut paired = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut section = sections.next()?;
        if entry.changes_type() {
            let new = sections.next()?;
            let old_id = section.ids.as_ref().map(|(old, _)| old);
            let new_id = new.ids.as_ref().map(|(_, new)| new);
            if old_id != Some(&entry.old_id) || new_id != Some(&entry.new_id) {
                return None;
            }
            section.binary |= new.binary;
            section.added = new.added;
        } else {
            match &section.ids {
                Some((old, new)) if *old == entry.old_id && *new == entry.new_id => {}
                None if entry.old_id == entry.new_id => {}
                _ => return None,
            }
        }
        paired.push(section);
    }
    sections.next().is_none().then_some(paired)
}
