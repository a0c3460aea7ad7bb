//! The cache directory with its mirrors, and the checkouts that are made from them.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use nix::unistd::Uid;
use url::Url;

use super::change::Change;
use super::error::WorkspaceError;
use super::git::Git;
use super::mirror::{Mirror, Remote};
use super::repository::{Repository, Standard};
use super::rundir::{RunDir, private_dir};
use crate::clock::Stop;
use crate::config::{SizeCaps, WorkspaceConfig};
use crate::ids::{CommitSha, PrNumber, RepoId, RepoName};
use crate::secret::Secret;

/// Bytes in a megabyte as `workspace.min_free_mb` counts.
const MEGABYTE: u64 = 1 << 20;

/// Mirrors and checkouts below one directory. Threads and processes may share it.
///
/// ```text
/// CACHE/mirrors/ID.git       bare, named by the repository's numeric id
/// CACHE/mirrors/ID.lock      held while somebody changes the mirror
/// CACHE/runs/ID/RUN/tree     what the engine sees: plain files, no .git
/// CACHE/runs/ID/RUN/scratch  the engine's temporary directory
/// CACHE/runs/ID/RUN.lock     held while the run lives
/// ```
#[derive(Debug)]
pub struct Workspace {
    git: Git,
    cache_dir: PathBuf,
    min_free: u64,
    ca_file: Option<PathBuf>,
    file_remotes: bool,
}

/// What to check out.
#[derive(Debug, Clone, Copy)]
pub struct CheckoutRequest<'a> {
    /// The repository, for messages.
    pub repo: &'a RepoName,
    /// Names the mirror, so that a renamed repository keeps its own and never gets another's.
    pub repo_id: RepoId,
    /// The pull request.
    pub pr: PrNumber,
    /// The commit to review; it need not be the pull request's newest.
    pub head: &'a CommitSha,
    /// The base branch's short name.
    pub base_ref: &'a str,
    /// Where to fetch from: `https://host/owner/name.git`.
    pub remote: &'a Url,
    /// Access to a private repository.
    pub token: Option<&'a Secret>,
    /// A name that no other run has: letters, digits and hyphens, at most 64.
    pub run: &'a str,
    /// The size gate and the exclusions.
    pub caps: &'a SizeCaps,
}

/// A pull request on disk. Its directory and references go when it is closed or dropped.
#[derive(Debug)]
pub struct Checkout {
    /// What the engine sees: the head's files, without any `.git`; symlinks are plain files that
    /// hold their target, submodules empty directories.
    pub tree: PathBuf,
    /// An empty directory for the engine's temporary files and state.
    pub scratch: PathBuf,
    /// What is reviewed.
    pub change: Change,
    repository: Repository,
    // Declared in the order of removal: the references are stale once the run's lock is free.
    run: RunDir,
    _refs: RefsOfStaleRuns,
}

/// Removes the references of finished runs when dropped, unless somebody is at the mirror, who then
/// does it.
#[derive(Debug)]
struct RefsOfStaleRuns(Mirror);

impl Drop for RefsOfStaleRuns {
    fn drop(&mut self) {
        let cleaned = match self.0.try_lock() {
            Ok(Some(mirror)) => mirror.clean(&Stop::new()).map(drop),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = cleaned {
            log::warn!(
                "cannot remove references of a finished run; the next fetch tries again: {error}"
            );
        }
    }
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Checkouts of processes that are gone.
    pub trees: u32,
    /// References of runs that are over.
    pub refs: u32,
    /// Lock and temporary files of a git that was killed.
    pub files: u32,
}

impl Swept {
    /// Whether there was nothing to remove.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trees, refs, files } = self;
        write!(
            f,
            "{trees} stale checkouts, {refs} references, {files} lock and temporary files"
        )
    }
}

impl Workspace {
    /// Finds git and makes the cache directory, with access for its owner only. `supervisor` is our
    /// own binary, which ends a fetch when the daemon is killed.
    ///
    /// # Errors
    /// When git is missing or too old, or the directory can't be made, belongs to somebody else or may be
    /// written by others.
    pub fn open(
        config: &WorkspaceConfig,
        supervisor: Option<PathBuf>,
    ) -> Result<Self, WorkspaceError> {
        let git = Git::find(&config.git)?;
        let git = match supervisor {
            Some(supervisor) => git.supervised_by(supervisor),
            None => git,
        };
        private_dir(&config.cache_dir)?;
        let failed = || WorkspaceError::io(&config.cache_dir);
        let cache_dir = fs::canonicalize(&config.cache_dir).map_err(failed())?;
        let metadata = fs::metadata(&cache_dir).map_err(failed())?;
        if metadata.uid() != Uid::effective().as_raw() {
            return Err(WorkspaceError::ForeignDirectory {
                directory: cache_dir,
            });
        }
        // Never tightened: it may be a directory that everybody needs, like /tmp.
        if metadata.mode() & 0o022 != 0 {
            return Err(WorkspaceError::SharedDirectory {
                directory: cache_dir,
                mode: metadata.mode() & 0o7777,
            });
        }
        if metadata.mode() & 0o077 != 0 {
            fs::set_permissions(&cache_dir, Permissions::from_mode(0o700)).map_err(failed())?;
        }
        Ok(Self {
            git,
            cache_dir,
            min_free: config.min_free_mb.saturating_mul(MEGABYTE),
            ca_file: None,
            file_remotes: false,
        })
    }

    /// Trusts the certificates of a PEM file (instead of the system's) for https.
    #[must_use]
    pub fn trusting(mut self, ca_file: Option<PathBuf>) -> Self {
        self.ca_file = ca_file;
        self
    }

    /// Also fetches from `file:` URLs, for the demo and for tests.
    #[must_use]
    pub fn with_file_remotes(mut self) -> Self {
        self.file_remotes = true;
        self
    }

    /// The git program in use.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Removes what processes that are gone left behind. Runs of live processes stay.
    ///
    /// # Errors
    /// When the cache directory can't be read or changed.
    pub fn sweep(&self) -> Result<Swept, WorkspaceError> {
        let mut swept = Swept::default();
        for mirror in Mirror::all(&self.git, &self.cache_dir)? {
            for run in RunDir::stale(mirror.runs())? {
                run.clear()?;
                swept.trees += 1;
            }
            if let Some(mirror) = mirror.try_lock()? {
                let cleaned = mirror.clean(&Stop::new())?;
                swept.refs += cleaned.refs;
                swept.files += cleaned.files;
            }
        }
        Ok(swept)
    }

    /// Fetches a pull request, checks its size, and writes its files.
    ///
    /// # Errors
    /// See [`WorkspaceError`]; nothing of the run is left behind.
    pub fn checkout(
        &self,
        request: &CheckoutRequest<'_>,
        stop: &Stop,
    ) -> Result<Checkout, WorkspaceError> {
        let ca_file = self.ca_file.as_deref();
        let remote = Remote::new(request.remote, request.token, ca_file, self.file_remotes)?;
        self.need_space(0)?;
        let mirror = Mirror::of(&self.git, &self.cache_dir, request.repo_id);
        match self.checkout_from(&mirror, &remote, request, stop) {
            Err(error) if error.tells_damage() => {
                let aside = mirror.lock(stop)?.set_aside()?;
                log::warn!(repo = request.repo.as_str();
                    "the mirror is damaged and is made anew; the old one is kept as {}: {error}",
                    aside.display());
                self.checkout_from(&mirror, &remote, request, stop)
            }
            done => done,
        }
    }

    fn checkout_from(
        &self,
        mirror: &Mirror,
        remote: &Remote<'_>,
        request: &CheckoutRequest<'_>,
        stop: &Stop,
    ) -> Result<Checkout, WorkspaceError> {
        // Dropped after the run, whose references it removes.
        let refs = RefsOfStaleRuns(mirror.clone());
        let run = RunDir::create(mirror.runs(), request.run, stop)?;
        let head = request.head;
        let base = {
            let locked = mirror.lock(stop)?;
            locked.clean(stop)?;
            locked.fetch(remote, request.pr, request.base_ref, head, &run, stop)?
        };
        let repository = mirror.repository();
        self.need_space(repository.size_on_disk(head, stop)?)?;
        let change = repository.change(&base, head, request.caps, stop)?;
        let (tree, scratch) = (run.dir().join("tree"), run.dir().join("scratch"));
        private_dir(&tree)?;
        private_dir(&scratch)?;
        repository.export(head, &tree, &run.dir().join("index"), stop)?;
        log::debug!(repo = request.repo.as_str(), pr = request.pr.get();
            "checked out {}: {} files, {} lines", head.short(), change.files.len(), change.lines);
        Ok(Checkout {
            tree,
            scratch,
            change,
            repository,
            run,
            _refs: refs,
        })
    }

    /// Refuses when less than the floor would be free after writing `bytes`.
    ///
    /// # Errors
    /// [`WorkspaceError::Disk`] with the numbers.
    pub fn need_space(&self, bytes: u64) -> Result<(), WorkspaceError> {
        let needed = self.min_free.saturating_add(bytes);
        let free = free_space(&self.cache_dir)?;
        if free >= needed {
            return Ok(());
        }
        Err(WorkspaceError::Disk {
            directory: self.cache_dir.clone(),
            free_mb: free / MEGABYTE,
            needed_mb: needed.div_ceil(MEGABYTE),
        })
    }
}

/// Bytes that a user without privileges may still write below `path`.
fn free_space(path: &Path) -> Result<u64, WorkspaceError> {
    let stat = statvfs(path).map_err(|errno| WorkspaceError::io(path)(errno.into()))?;
    Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

impl Checkout {
    /// Reads the project's standards at the merge base, at most 64 KiB in all; the file that goes
    /// over is cut. Missing files are passed over, and so are symlinks.
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

    /// Removes the files and references now, where dropping would only log a failure.
    ///
    /// # Errors
    /// When the files can't be removed.
    pub fn close(self) -> Result<(), WorkspaceError> {
        self.run.clear()
    }
}
