//! The change between two commits of a clone on this machine, for a review by hand. The clone may
//! belong to anybody and hold any configuration: git only looks up names in it. The work happens in
//! a scratch repository of our own that borrows its objects, so nothing is written to the clone.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::change::Change;
use super::error::WorkspaceError;
use super::git::{Call, Git};
use super::repository::{Repository, Standard, quote_alternate};
use super::rundir::{private_dir, remove_dir};
use crate::clock::Stop;
use crate::config::SizeCaps;
use crate::ids::{CommitSha, nonce};
use crate::output::clip;

/// A change in a local clone. Its scratch directory goes when it is dropped.
#[derive(Debug)]
pub struct LocalChange {
    /// What is reviewed.
    pub change: Change,
    repository: Repository,
    scratch: Scratch,
}

/// A private directory among the system's temporary files.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, WorkspaceError> {
        let parent = std::env::temp_dir();
        let nonce = nonce().map_err(WorkspaceError::io(Path::new("the random source")))?;
        let parent = std::path::absolute(&parent).map_err(WorkspaceError::io(&parent))?;
        let dir = parent.join(format!("prwarden-{nonce}"));
        private_dir(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_dir(&self.0) {
            log::warn!("cannot remove a temporary directory: {error}");
        }
    }
}

/// Computes the change from the merge base of `base` and `head` (`HEAD` when not given) in the
/// repository around `directory`: commits only, not what is uncommitted.
///
/// # Errors
/// When there is no repository, a revision names no commit, or the change is over the caps.
pub fn local_change(
    git: &Git,
    directory: &Path,
    base: &str,
    head: Option<&str>,
    caps: &SizeCaps,
    stop: &Stop,
) -> Result<LocalChange, WorkspaceError> {
    let directory = fs::canonicalize(directory).map_err(WorkspaceError::io(directory))?;
    let clone = LocalClone {
        git,
        directory: &directory,
        stop,
    };
    let objects = clone.path_of("objects")?;
    let base = clone.commit(base)?;
    let head = clone.commit(head.unwrap_or("HEAD"))?;
    let scratch = Scratch::new()?;
    let format = clone.object_format()?;
    let mut repository = Repository::init(git, scratch.0.join("repository"), &format, stop)?;
    let alternates = repository.dir().join("objects/info/alternates");
    if let Some(info) = alternates.parent() {
        private_dir(info)?;
    }
    fs::write(&alternates, quote_alternate(&objects)).map_err(WorkspaceError::io(&alternates))?;
    let shallow = clone.path_of("shallow")?;
    if shallow.is_file() {
        repository = repository.with_shallow_file(shallow);
    }
    repository.size_on_disk(&head, stop)?;
    Ok(LocalChange {
        change: repository.change(&base, &head, caps, stop)?,
        repository,
        scratch,
    })
}

impl LocalChange {
    /// Writes the head's files into the scratch directory, for an engine that reads them: plain
    /// files without any `.git`, whatever is checked out in the clone.
    ///
    /// # Errors
    /// When a path is dangerous, or the files can't be written.
    pub fn tree(&self, stop: &Stop) -> Result<PathBuf, WorkspaceError> {
        let tree = self.scratch.0.join("tree");
        private_dir(&tree)?;
        let index = self.scratch.0.join("index");
        self.repository
            .export(&self.change.head, &tree, &index, stop)?;
        Ok(tree)
    }

    /// An empty directory for the engine's temporary files.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn scratch(&self) -> Result<PathBuf, WorkspaceError> {
        let scratch = self.scratch.0.join("scratch");
        private_dir(&scratch)?;
        Ok(scratch)
    }

    /// Reads the project's standards at the merge base; see
    /// [`Checkout::standards`](super::Checkout::standards).
    ///
    /// # Errors
    /// When git fails.
    pub fn standards(
        &self,
        paths: &[String],
        stop: &Stop,
    ) -> Result<Vec<Standard>, WorkspaceError> {
        self.repository.standards(&self.change.base, paths, stop)
    }
}

/// Somebody's clone, of which only names are asked.
struct LocalClone<'a> {
    git: &'a Git,
    directory: &'a Path,
    stop: &'a Stop,
}

impl LocalClone<'_> {
    /// What `git rev-parse` prints, without the line's end; `None` when it fails.
    fn rev_parse(&self, args: &[&str]) -> Result<Option<Vec<u8>>, WorkspaceError> {
        // Another owner is fine: nothing that its configuration names is run by rev-parse.
        let call = Call::new("rev-parse")
            .args(args)
            .directory(self.directory)
            .config("safe.directory", "*");
        let output = self.git.run(call, self.stop)?;
        if output.code != 0 {
            return Ok(None);
        }
        let mut printed = output.stdout;
        if printed.last() == Some(&b'\n') {
            printed.pop();
        }
        Ok(Some(printed))
    }

    /// The absolute path of something in its git directory, which linked worktrees share.
    fn path_of(&self, name: &str) -> Result<PathBuf, WorkspaceError> {
        let printed = self.rev_parse(&["--path-format=absolute", "--git-path", name])?;
        let path = printed.ok_or_else(|| WorkspaceError::NotARepository {
            directory: self.directory.to_owned(),
        })?;
        Ok(PathBuf::from(OsString::from_vec(path)))
    }

    /// The commit that a revision names.
    fn commit(&self, revision: &str) -> Result<CommitSha, WorkspaceError> {
        let commit = format!("{revision}^{{commit}}");
        let printed = self.rev_parse(&["--verify", "--quiet", "--end-of-options", &commit])?;
        let id = printed.and_then(|id| String::from_utf8_lossy(&id).parse().ok());
        id.ok_or_else(|| WorkspaceError::UnknownRevision {
            revision: clip(revision),
            directory: self.directory.to_owned(),
        })
    }

    /// `sha1` or `sha256`.
    fn object_format(&self) -> Result<String, WorkspaceError> {
        let printed = self.rev_parse(&["--show-object-format"])?;
        Ok(String::from_utf8_lossy(&printed.unwrap_or_else(|| b"sha1".to_vec())).into_owned())
    }
}
