//! Repositories to check out, and the questions that tests ask of a change.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use prwarden::clock::Stop;
use prwarden::config::{SizeCaps, WorkspaceConfig};
use prwarden::ids::{CommitSha, nonce};
use prwarden::secret::Secret;
use prwarden::workspace::{
    Change, Checkout, CheckoutRequest, FileChange, Git, LocalChange, Workspace, WorkspaceError,
    local_change,
};
use tempfile::TempDir;
use url::Url;

/// An author's clone, and the directory that everything of a test is in.
pub(crate) struct Repo {
    pub(crate) dir: TempDir,
}

impl Repo {
    pub(crate) fn new() -> Self {
        let repo = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(repo.path()).unwrap();
        repo.git(&["init", "-q", "-b", "main", "."]);
        repo
    }

    /// One commit on `main`, then a branch `topic`.
    pub(crate) fn with_base(files: &[(&str, &str)]) -> Self {
        let repo = Self::new();
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit("base");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("author")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args([
                "-c",
                "core.protectNTFS=false",
                "-c",
                "core.protectHFS=false",
            ])
            .args(["-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_with(args, b"")
    }

    pub(crate) fn git_with(&self, args: &[&str], stdin: &[u8]) -> String {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn write(&self, path: impl AsRef<OsStr>, text: impl AsRef<[u8]>) {
        let path = self.path().join(Path::new(path.as_ref()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> CommitSha {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Puts bytes into the index as they are, whatever the attributes say.
    pub(crate) fn stage(&self, path: &str, text: &str) {
        let blob = self.git_with(&["hash-object", "-w", "--stdin"], text.as_bytes());
        let entry = format!("100644,{blob},{path}");
        self.git(&["update-index", "--add", "--cacheinfo", &entry]);
    }

    /// Commits a tree with one more entry that no working tree could hold.
    pub(crate) fn commit_entry(&self, mode: &str, path: &[u8], content: &[u8]) -> CommitSha {
        let blob = self.git_with(&["hash-object", "-w", "--stdin"], content);
        let (folder, name) = match path.iter().position(|b| *b == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        let entry = |mode: &str, kind: &str, id: &str, name: &[u8]| {
            [format!("{mode} {kind} {id}\t").as_bytes(), name, b"\0"].concat()
        };
        let inner = self.git_with(&["mktree", "-z"], &entry(mode, "blob", &blob, name));
        let mut tree = self.git(&["ls-tree", "-z", "HEAD"]).into_bytes();
        if folder.is_empty() {
            tree.extend(entry(mode, "blob", &blob, name));
        } else {
            tree.extend(entry("040000", "tree", &inner, folder));
        }
        let tree = self.git_with(&["mktree", "-z"], &tree);
        let commit = self.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "odd"]);
        self.git(&["update-ref", "HEAD", &commit]);
        commit.parse().unwrap()
    }

    pub(crate) fn head(&self) -> CommitSha {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Publishes `main`, and `HEAD` as pull request 7.
    pub(crate) fn publish(&self) -> CommitSha {
        let remote = self.dir.path().join("remote.git");
        let remote = remote.to_str().unwrap();
        self.git(&["init", "-q", "--bare", remote]);
        self.git(&["push", "-q", "-f", remote, "main", "HEAD:refs/pull/7/head"]);
        self.head()
    }

    pub(crate) fn remote(&self) -> Url {
        Url::from_file_path(self.dir.path().join("remote.git")).unwrap()
    }

    pub(crate) fn config(&self) -> WorkspaceConfig {
        WorkspaceConfig {
            cache_dir: self.dir.path().join("cache"),
            git: "git".into(),
            min_free_mb: 1,
        }
    }

    pub(crate) fn workspace(&self) -> Workspace {
        let workspace = Workspace::open(&self.config(), None).unwrap();
        workspace.with_file_remotes()
    }

    /// The request for `head` of pull request 7, to be varied.
    pub(crate) fn ask<'a>(&self, head: &'a CommitSha) -> Ask<'a> {
        Ask {
            head,
            pr: 7,
            base: "main",
            remote: self.remote(),
            token: None,
            caps: caps(),
            stop: Stop::new(),
        }
    }

    pub(crate) fn checkout_of(
        &self,
        head: &CommitSha,
        caps: &SizeCaps,
    ) -> Result<Checkout, WorkspaceError> {
        let caps = caps.clone();
        Ask {
            caps,
            ..self.ask(head)
        }
        .checkout(&self.workspace())
    }

    /// Publishes and checks out `HEAD`.
    pub(crate) fn checkout(&self) -> Checkout {
        let head = self.publish();
        self.checkout_of(&head, &caps()).unwrap()
    }

    pub(crate) fn refused(&self, caps: &SizeCaps) -> WorkspaceError {
        let head = self.publish();
        self.checkout_of(&head, caps).unwrap_err()
    }

    pub(crate) fn runs_left(&self) -> usize {
        fs::read_dir(self.config().cache_dir.join("runs/42")).map_or(0, Iterator::count)
    }

    pub(crate) fn mirror_refs(&self) -> String {
        let mirror = self.config().cache_dir.join("mirrors/42.git");
        self.git(&["--git-dir", mirror.to_str().unwrap(), "for-each-ref"])
    }

    pub(crate) fn local(
        &self,
        base: &str,
        head: Option<&str>,
    ) -> Result<LocalChange, WorkspaceError> {
        local_change(&git(), &self.path(), base, head, &caps(), &Stop::new())
    }
}

pub(crate) fn git() -> Git {
    Git::find(Path::new("git")).unwrap()
}

pub(crate) fn caps() -> SizeCaps {
    SizeCaps {
        max_changed_files: 100,
        max_changed_lines: 5000,
        default_exclusions: true,
        excluded_paths: Vec::new(),
    }
}

pub(crate) fn file<'a>(change: &'a Change, path: &[u8]) -> &'a FileChange {
    let found = change.files.iter().find(|file| file.path.0 == path);
    found.unwrap_or_else(|| panic!("{path:?} is not among {:?}", change.files))
}

pub(crate) fn added(file: &FileChange) -> Vec<(u32, String)> {
    let lines = file.added.iter();
    lines
        .map(|line| {
            (
                line.number,
                String::from_utf8_lossy(&line.text).into_owned(),
            )
        })
        .collect()
}

/// A request in owned pieces.
pub(crate) struct Ask<'a> {
    pub(crate) head: &'a CommitSha,
    pub(crate) pr: i64,
    pub(crate) base: &'a str,
    pub(crate) remote: Url,
    pub(crate) token: Option<Secret>,
    pub(crate) caps: SizeCaps,
    pub(crate) stop: Stop,
}

impl Ask<'_> {
    pub(crate) fn checkout(&self, workspace: &Workspace) -> Result<Checkout, WorkspaceError> {
        let request = CheckoutRequest {
            repo: &"acme/widgets".parse().unwrap(),
            repo_id: 42.try_into().unwrap(),
            pr: self.pr.try_into().unwrap(),
            head: self.head,
            base_ref: self.base,
            remote: &self.remote,
            token: self.token.as_ref(),
            run: &nonce().unwrap(),
            caps: &self.caps,
        };
        workspace.checkout(&request, &self.stop)
    }
}
