//! A bare repository of our own: the mirror of a GitHub repository, or a scratch one that borrows
//! the objects of a local clone. Bare, because then git reads no attributes from trees.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::{GitError, WorkspaceError};
use super::git::{Call, Git};
use super::raw::TYPE_BITS;
use crate::clock::Stop;
use crate::ids::CommitSha;
use crate::output::clip;

/// Outranks every `.gitattributes` of a tree: files are written byte by byte as they were
/// committed, no filter runs, and nothing is called binary but by its content.
const ATTRIBUTES: &str = "* -text !eol !crlf !ident !filter !working-tree-encoding !diff\n";

/// Bound on a list of names: half a million files with paths of ordinary length.
pub(super) const NAMES_LIMIT: usize = 64 << 20;

/// Most bytes of all standards together.
pub(super) const STANDARDS_LIMIT: usize = 64 << 10;

/// Most bytes of one standard that are read before it is cut.
const STANDARD_READ_LIMIT: u64 = 1 << 20;

/// A project's own rules for reviewers, as they stand at the merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standard {
    /// The path that the operator configured.
    pub path: String,
    /// Its text; bytes that are not UTF-8 become U+FFFD.
    pub text: String,
}

/// A bare repository and the program that works on it.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    git: Git,
    dir: PathBuf,
    shallow: Option<PathBuf>,
}

/// One file of a tree.
struct TreeEntry<'a> {
    mode: u32,
    id: &'a str,
    size: Option<u64>,
    path: &'a [u8],
}

impl Repository {
    /// The existing repository in `dir`.
    pub(super) fn at(git: &Git, dir: PathBuf) -> Self {
        Self {
            git: git.clone(),
            dir,
            shallow: None,
        }
    }

    /// Makes an empty repository in `dir`, which must not exist.
    pub(super) fn init(
        git: &Git,
        dir: PathBuf,
        object_format: &str,
        stop: &Stop,
    ) -> Result<Self, WorkspaceError> {
        let call = Call::new("init").args(["--bare", "--quiet", "--template="]);
        let call = call.args(["--initial-branch=none"]);
        let call = call.args([format!("--object-format={object_format}")]);
        git.run(call.args([&dir]), stop)?.success()?;
        let info = dir.join("info");
        fs::create_dir_all(&info).map_err(WorkspaceError::io(&info))?;
        let attributes = info.join("attributes");
        fs::write(&attributes, ATTRIBUTES).map_err(WorkspaceError::io(&attributes))?;
        Ok(Self::at(git, dir))
    }

    /// Treats the commits listed in `file` as the oldest, as a shallow clone does.
    pub(super) fn with_shallow_file(mut self, file: PathBuf) -> Self {
        self.shallow = Some(file);
        self
    }

    /// Its directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs a call in this repository.
    pub(super) fn run(&self, call: Call, stop: &Stop) -> Result<super::git::Output, GitError> {
        let call = match &self.shallow {
            Some(file) => call.env("GIT_SHALLOW_FILE", file),
            None => call,
        };
        self.git.run(call.git_dir(&self.dir), stop)
    }

    /// Whether the commit is here.
    pub(super) fn has_commit(&self, commit: &CommitSha, stop: &Stop) -> Result<bool, GitError> {
        let object = format!("{commit}^{{commit}}");
        let call = Call::new("cat-file").args(["-e", &object]);
        Ok(self.run(call, stop)?.code == 0)
    }

    /// The commit behind a full reference name.
    pub(super) fn commit_of(&self, reference: &str, stop: &Stop) -> Result<CommitSha, GitError> {
        let revision = format!("{reference}^{{commit}}");
        let call = Call::new("rev-parse").args(["--verify", "--quiet", "--end-of-options"]);
        one_commit(
            "rev-parse",
            &self.run(call.args([revision]), stop)?.success()?,
        )
    }

    /// The best common ancestor.
    pub(super) fn merge_base(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        stop: &Stop,
    ) -> Result<CommitSha, WorkspaceError> {
        let call = Call::new("merge-base").args([base.as_str(), head.as_str()]);
        let output = self.run(call, stop)?;
        if output.code == 1 && output.stdout.is_empty() {
            return Err(WorkspaceError::NoMergeBase {
                base: base.clone(),
                head: head.clone(),
            });
        }
        Ok(one_commit("merge-base", &output.success()?)?)
    }

    /// How many commits `head` has that `base` has not.
    pub(super) fn count_commits(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        stop: &Stop,
    ) -> Result<u32, GitError> {
        let call = Call::new("rev-list").args(["--count", &format!("{base}..{head}")]);
        let printed = self.run(call, stop)?.success()?;
        let count = String::from_utf8_lossy(&printed).trim().parse().ok();
        count.ok_or(GitError::Unexpected {
            command: "rev-list",
            what: "a number",
        })
    }

    /// The space that the files of a commit take on disk, in bytes. Comes before anything else that
    /// walks the tree: a few small objects can name billions of files, and listing is the one
    /// operation that stops at a bound without holding them all.
    pub(super) fn size_on_disk(
        &self,
        commit: &CommitSha,
        stop: &Stop,
    ) -> Result<u64, WorkspaceError> {
        const BLOCK: u64 = 4096;
        let call = Call::new("ls-tree").args(["-r", "-l", "-z", "--full-tree", commit.as_str()]);
        let listed = match self.run(call.limit(NAMES_LIMIT), stop) {
            Err(GitError::TooMuchOutput { limit, .. }) => {
                return Err(WorkspaceError::TreeTooLarge { limit });
            }
            result => result?.success()?,
        };
        let mut total = 0_u64;
        for entry in tree_entries(&listed) {
            let size = entry?.size.unwrap_or(0).max(1);
            total = total.saturating_add(size.div_ceil(BLOCK).saturating_mul(BLOCK));
        }
        Ok(total)
    }

    /// Writes the files of a commit into `tree`, an empty directory: plain files and directories
    /// only, symlinks as files that hold their target, submodules as empty directories. `index` is
    /// a scratch file beside it.
    pub(super) fn export(
        &self,
        commit: &CommitSha,
        tree: &Path,
        index: &Path,
        stop: &Stop,
    ) -> Result<(), WorkspaceError> {
        let prepare = |call: Call| call.env("GIT_INDEX_FILE", index).env("GIT_WORK_TREE", tree);
        let read = prepare(Call::new("read-tree").args([commit.as_str()]));
        let output = self.run(read, stop)?;
        if let Some(path) = refused_path(&output.stderr) {
            return Err(WorkspaceError::UnsafePath { path });
        }
        output.success()?;
        let write = prepare(Call::new("checkout-index").args(["--all", "--quiet"]));
        self.run(write, stop)?.success()?;
        fs::remove_file(index).map_err(WorkspaceError::io(index))
    }

    /// The requested files at `commit`, in the order asked for, [`STANDARDS_LIMIT`] bytes in all:
    /// the one that goes over is cut, later ones are left out. Missing files, directories, symlinks
    /// and files above a mebibyte are passed over.
    pub(super) fn standards(
        &self,
        commit: &CommitSha,
        paths: &[String],
        stop: &Stop,
    ) -> Result<Vec<Standard>, WorkspaceError> {
        let mut standards = Vec::new();
        if paths.is_empty() {
            return Ok(standards);
        }
        let call = Call::new("ls-tree")
            .args(["-l", "-z", "--full-tree", commit.as_str(), "--"])
            .args(paths)
            .env("GIT_LITERAL_PATHSPECS", "1");
        let listed = self.run(call, stop)?.success()?;
        let entries = tree_entries(&listed)
            .map(|entry| entry.map(|entry| (entry.path.to_owned(), entry)))
            .collect::<Result<BTreeMap<_, _>, _>>()?;
        let mut room = STANDARDS_LIMIT;
        for path in paths {
            let Some(entry) = entries.get(path.as_bytes()) else {
                continue;
            };
            let readable = entry.mode & TYPE_BITS == 0o100_000
                && entry.size.is_some_and(|size| size <= STANDARD_READ_LIMIT);
            if !readable || room == 0 {
                log::debug!("{} is not read as a standard", clip(path));
                continue;
            }
            let call = Call::new("cat-file").args(["blob", entry.id]);
            let bytes = self.run(call.limit(NAMES_LIMIT), stop)?.success()?;
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            let mut end = room.min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            room -= text.len();
            standards.push(Standard {
                path: path.clone(),
                text,
            });
        }
        Ok(standards)
    }
}

/// One commit id on a line of its own.
fn one_commit(command: &'static str, printed: &[u8]) -> Result<CommitSha, GitError> {
    let id = String::from_utf8_lossy(printed).trim().parse().ok();
    id.ok_or(GitError::Unexpected {
        command,
        what: "a commit id",
    })
}

/// Reads `git ls-tree -l -z`: mode, type, id and size, a tab, the path, a NUL byte.
fn tree_entries(listed: &[u8]) -> impl Iterator<Item = Result<TreeEntry<'_>, GitError>> {
    let records = listed
        .split(|b| *b == 0)
        .filter(|record| !record.is_empty());
    records.map(|record| {
        tree_entry(record).ok_or(GitError::Unexpected {
            command: "ls-tree",
            what: "mode, type, id, size and path",
        })
    })
}

fn tree_entry(record: &[u8]) -> Option<TreeEntry<'_>> {
    let tab = record.iter().position(|b| *b == b'\t')?;
    let mut words = std::str::from_utf8(&record[..tab])
        .ok()?
        .split_ascii_whitespace();
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let _kind = words.next()?;
    Some(TreeEntry {
        mode,
        id: words.next()?,
        size: words.next()?.parse().ok(),
        path: &record[tab + 1..],
    })
}

/// The path that git names when it refuses to put it into an index, fit for one line.
fn refused_path(stderr: &str) -> Option<String> {
    let (_, rest) = stderr.split_once("error: invalid path '")?;
    let end = rest.rfind('\'').unwrap_or(rest.len());
    Some(clip(&rest[..end]))
}

/// A path in the quoting of git's `objects/info/alternates`.
pub(super) fn quote_alternate(path: &Path) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            0x20..=0x7e => quoted.push(*byte),
            _ => quoted.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    quoted.extend(b"\"\n");
    quoted
}
