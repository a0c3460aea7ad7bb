//! The bare mirror of one GitHub repository, which all its checkouts share. Everything that changes
//! a mirror happens under its lock, so that threads and processes don't meet in it; reading needs
//! no lock, because nothing is ever removed but references of finished runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::{Host, Url};

use super::error::{FetchFailure, GitError, WorkspaceError};
use super::git::{Call, Git, Output};
use super::repository::Repository;
use super::rundir::{self, RunDir, list, private_dir, remove_dir};
use crate::clock::Stop;
use crate::ids::{CommitSha, PrNumber, RepoId};
use crate::output::clip;
use crate::secret::Secret;

/// Time for one fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(900);

/// References of runs: `refs/prwarden/RUN/head` and `refs/prwarden/RUN/base`.
const RUN_REFS: &str = "refs/prwarden/";

/// A repository to fetch from, checked.
#[derive(Debug)]
pub(super) struct Remote<'a> {
    url: &'a Url,
    protocol: &'static str,
    token: Option<&'a Secret>,
    ca_file: Option<&'a Path>,
}

impl<'a> Remote<'a> {
    /// `https`; `http` on the loopback interface; `file` if `files` says so.
    pub(super) fn new(
        url: &'a Url,
        token: Option<&'a Secret>,
        ca_file: Option<&'a Path>,
        files: bool,
    ) -> Result<Self, WorkspaceError> {
        let refused = |what| WorkspaceError::Remote {
            remote: shown(url),
            what,
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("credentials don't belong into a URL"));
        }
        let protocol = match url.scheme() {
            "https" => "https",
            "http" if is_loopback(url) => "http",
            "http" => return Err(refused("plain http is for this host only, use https")),
            "file" if files => "file",
            _ => return Err(refused("only https is fetched from")),
        };
        Ok(Self {
            url,
            protocol,
            token,
            ca_file,
        })
    }

    /// Adds what the transport needs to `call`. The token is bound to this URL.
    fn prepare(&self, call: Call) -> Call {
        let call = call.network(self.protocol, FETCH_TIMEOUT);
        let call = match self.ca_file {
            Some(file) => call.config("http.sslCAInfo", file),
            None => call,
        };
        match self.token {
            Some(token) if self.protocol != "file" => {
                let pair = STANDARD.encode(format!("x-access-token:{}", token.expose()));
                let key = format!("http.{}.extraHeader", self.url);
                call.config(&key, format!("Authorization: Basic {pair}"))
            }
            _ => call,
        }
    }

    fn failed(&self, reason: FetchFailure, detail: String) -> WorkspaceError {
        WorkspaceError::Fetch {
            remote: shown(self.url),
            reason,
            detail,
        }
    }
}

/// A URL without credentials, for people.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    clip(url.as_str())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The full name of a branch. Characters that git gives a meaning in a refspec are refused; git
/// itself refuses the other impossible names.
fn branch_ref(name: &str) -> Result<String, WorkspaceError> {
    let special = |c: char| c.is_control() || c.is_whitespace() || ":*?[\\^~".contains(c);
    if name.is_empty() || name.contains("..") || name.contains("@{") || name.contains(special) {
        return Err(WorkspaceError::Branch { name: clip(name) });
    }
    Ok(format!("refs/heads/{name}"))
}

/// Where the mirror, the lock and the runs of one repository are.
#[derive(Debug, Clone)]
pub(super) struct Mirror {
    git: Git,
    dir: PathBuf,
    lock: PathBuf,
    runs: PathBuf,
}

/// The proof that nobody else changes the mirror.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    mirror: &'a Mirror,
    repository: Repository,
    _lock: File,
}

/// How many of each were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cleaned {
    pub(super) refs: u32,
    pub(super) files: u32,
}

impl Mirror {
    /// The mirror of `repo` in a cache directory, whether or not it exists yet.
    pub(super) fn of(git: &Git, cache_dir: &Path, repo: RepoId) -> Self {
        Self {
            git: git.clone(),
            dir: cache_dir.join("mirrors").join(format!("{repo}.git")),
            lock: cache_dir.join("mirrors").join(format!("{repo}.lock")),
            runs: cache_dir.join("runs").join(repo.to_string()),
        }
    }

    /// All repositories that have a mirror or runs.
    pub(super) fn all(git: &Git, cache_dir: &Path) -> Result<Vec<Self>, WorkspaceError> {
        let mut ids = BTreeSet::new();
        for (folder, suffix) in [("mirrors", ".git"), ("runs", "")] {
            for entry in list(&cache_dir.join(folder))? {
                let name = entry.file_name();
                let id = name.to_str().and_then(|name| name.strip_suffix(suffix));
                ids.extend(id.and_then(|id| id.parse::<RepoId>().ok()));
            }
        }
        Ok(ids
            .into_iter()
            .map(|id| Self::of(git, cache_dir, id))
            .collect())
    }

    /// Where its runs are.
    pub(super) fn runs(&self) -> &Path {
        &self.runs
    }

    /// The repository for reading; it must exist.
    pub(super) fn repository(&self) -> Repository {
        Repository::at(&self.git, self.dir.clone())
    }

    /// Waits until nobody else changes the mirror, and makes it if it does not exist.
    pub(super) fn lock(&self, stop: &Stop) -> Result<Locked<'_>, WorkspaceError> {
        if let Some(folder) = self.lock.parent() {
            private_dir(folder)?;
        }
        let lock = rundir::lock(&self.lock, stop)?;
        if !self.dir.exists() {
            // Under its name only once it is complete.
            let unfinished = self.dir.with_extension("new");
            remove_dir(&unfinished)?;
            Repository::init(&self.git, unfinished.clone(), "sha1", stop)?;
            fs::rename(&unfinished, &self.dir).map_err(WorkspaceError::io(&self.dir))?;
        }
        Ok(self.locked(lock))
    }

    /// The same if the mirror exists and nobody is at it.
    pub(super) fn try_lock(&self) -> Result<Option<Locked<'_>>, WorkspaceError> {
        if !self.dir.exists() {
            return Ok(None);
        }
        Ok(rundir::try_lock(&self.lock)?.map(|lock| self.locked(lock)))
    }

    fn locked(&self, lock: File) -> Locked<'_> {
        Locked {
            mirror: self,
            repository: self.repository(),
            _lock: lock,
        }
    }
}

impl Locked<'_> {
    /// Fetches a pull request and its base branch into references of `run`, and returns the tip of
    /// the base. Afterwards `head` is in the mirror: also when the pull request has moved on.
    pub(super) fn fetch(
        &self,
        remote: &Remote<'_>,
        pr: PrNumber,
        base: &str,
        head: &CommitSha,
        run: &RunDir,
        stop: &Stop,
    ) -> Result<CommitSha, WorkspaceError> {
        let base_ref = branch_ref(base)?;
        let name = run.name();
        let refspecs = [
            format!("+refs/pull/{pr}/head:{RUN_REFS}{name}/head"),
            format!("+{base_ref}:{RUN_REFS}{name}/base"),
        ];
        let output = self.fetch_refs(remote, &refspecs, stop)?;
        if output.code != 0 {
            return Err(remote.failed(reason(&output.stderr), output.detail()));
        }
        if !self.repository.has_commit(head, stop)? {
            // The branch was rewritten; GitHub still hands out what a pull request once had.
            let refspec = [format!("+{head}:{RUN_REFS}{name}/head")];
            let output = self.fetch_refs(remote, &refspec, stop)?;
            if output.code != 0 || !self.repository.has_commit(head, stop)? {
                return Err(WorkspaceError::HeadMissing { head: head.clone() });
            }
        }
        let reference = format!("{RUN_REFS}{name}/head");
        let pin = Call::new("update-ref").args([&reference, head.as_str()]);
        self.repository.run(pin, stop)?.success()?;
        let base = format!("{RUN_REFS}{name}/base");
        Ok(self.repository.commit_of(&base, stop)?)
    }

    fn fetch_refs(
        &self,
        remote: &Remote<'_>,
        refspecs: &[String],
        stop: &Stop,
    ) -> Result<Output, GitError> {
        let call = Call::new("fetch")
            .args(["--quiet", "--no-tags", "--no-recurse-submodules", "--force"])
            .args([
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--refmap=",
            ])
            .args(["--end-of-options", remote.url.as_str()])
            .args(refspecs);
        self.repository.run(remote.prepare(call), stop)
    }

    /// Moves a damaged mirror out of the way, in place of one that was before; the next lock makes a
    /// new one. Runs that read it meanwhile fail and are tried again.
    pub(super) fn set_aside(self) -> Result<PathBuf, WorkspaceError> {
        let aside = self.mirror.dir.with_extension("damaged");
        remove_dir(&aside)?;
        fs::rename(&self.mirror.dir, &aside).map_err(WorkspaceError::io(&self.mirror.dir))?;
        Ok(aside)
    }

    /// Removes what finished and crashed runs left: their references, and lock and temporary files
    /// of a git that was killed, which nobody can hold while we hold the mirror.
    pub(super) fn clean(&self, stop: &Stop) -> Result<Cleaned, WorkspaceError> {
        let mut files = remove_locks(&self.mirror.dir)?;
        files += remove_temporary(&self.mirror.dir.join("objects"), "tmp_objdir-")?;
        files += remove_temporary(&self.mirror.dir.join("objects/pack"), "tmp_")?;
        let call = Call::new("for-each-ref").args(["--format=%(refname)", RUN_REFS]);
        let listed = self.repository.run(call.limit(16 << 20), stop)?.success()?;
        let listed = String::from_utf8_lossy(&listed);
        let mut orders = String::new();
        let mut refs = 0;
        for reference in listed.lines() {
            let run = reference
                .strip_prefix(RUN_REFS)
                .and_then(|rest| rest.split('/').next());
            if !RunDir::is_live(&self.mirror.runs, run.unwrap_or_default())? {
                orders.push_str(&format!("delete {reference}\n"));
                refs += 1;
            }
        }
        if refs > 0 {
            let call = Call::new("update-ref")
                .args(["--stdin"])
                .stdin(orders.into_bytes());
            self.repository.run(call, stop)?.success()?;
        }
        Ok(Cleaned { refs, files })
    }
}

/// Why a fetch failed, from git's own messages (in the C locale). What the remote says is prefixed
/// with `remote:` and does not count.
fn reason(stderr: &str) -> FetchFailure {
    let mut own = stderr.lines().filter(|line| !line.starts_with("remote:"));
    let kinds: [(FetchFailure, &[&str]); 4] = [
        (FetchFailure::NoSuchRef, &["couldn't find remote ref"]),
        (
            FetchFailure::Moved,
            &[
                "returned error: 301",
                "returned error: 302",
                "returned error: 307",
                "returned error: 308",
            ],
        ),
        (
            FetchFailure::Denied,
            &[
                "Authentication failed",
                "could not read Username",
                "could not read Password",
                "returned error: 401",
                "returned error: 403",
                "returned error: 404",
                "' not found",
            ],
        ),
        (FetchFailure::Unsound, &["fsck error"]),
    ];
    own.find_map(|line| {
        let of = |(_, texts): &&(_, &[&str])| texts.iter().any(|text| line.contains(text));
        kinds.iter().find(of).map(|(reason, _)| *reason)
    })
    .unwrap_or(FetchFailure::Unreachable)
}

/// Removes `*.lock` in a git directory, but not among its objects.
fn remove_locks(dir: &Path) -> Result<u32, WorkspaceError> {
    let mut removed = 0;
    for entry in list(dir)? {
        let path = entry.path();
        let kind = entry.file_type().map_err(WorkspaceError::io(&path))?;
        if kind.is_dir() && entry.file_name() != "objects" {
            removed += remove_locks(&path)?;
        } else if kind.is_file() && path.extension() == Some(OsStr::new("lock")) {
            fs::remove_file(&path).map_err(WorkspaceError::io(&path))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes the files and directories in `dir` whose names start with `prefix`.
fn remove_temporary(dir: &Path, prefix: &str) -> Result<u32, WorkspaceError> {
    let mut removed = 0;
    for entry in list(dir)? {
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let path = entry.path();
        if entry
            .file_type()
            .map_err(WorkspaceError::io(&path))?
            .is_dir()
        {
            remove_dir(&path)?;
        } else {
            fs::remove_file(&path).map_err(WorkspaceError::io(&path))?;
        }
        removed += 1;
    }
    Ok(removed)
}
