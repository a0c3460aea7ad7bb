//! A small world for the stories: a GitHub double, a repository, a configuration, and the real
//! `prwarden` program.

#![allow(dead_code)] // Each test binary uses its own part of this.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use prwarden::double::sample::RepoBuilder;
use prwarden::double::{Double, NewPull, UserKind};
use tempfile::TempDir;

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const TOKEN: &str = "loopback-token-of-the-test";
pub(crate) const BOT: (i64, &str) = (900, "prwarden-bot");
/// On the allow-list.
pub(crate) const MONA: (i64, &str) = (101, "mona");
/// Not on the allow-list.
pub(crate) const STRANGER: (i64, &str) = (666, "stranger");
/// A GitHub app's account.
pub(crate) const ROBOT: (i64, &str) = (777, "robot[bot]");

/// How long a test waits for something that must happen; only a hang reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that a story needs.
pub(crate) struct World {
    pub(crate) double: Double,
    pub(crate) git: RepoBuilder,
    pub(crate) dir: TempDir,
}

impl World {
    /// A repository with one commit on `main`, four accounts, and a configuration that allows Mona.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let git = RepoBuilder::create(&dir.path().join("origin.git")).unwrap();
        git.commit(
            "main",
            &[("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")],
            "Start",
        )
        .unwrap();
        let double = Double::start().unwrap();
        for (id, login) in [MONA, STRANGER, BOT] {
            double.add_user(id, login, UserKind::User);
        }
        double.add_user(ROBOT.0, ROBOT.1, UserKind::Bot);
        double.set_token(TOKEN, BOT.1);
        double.add_repo(REPO, git.path());
        let world = Self { double, git, dir };
        world.configure("");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("state.db")
    }

    /// Writes the configuration: the usual one with `extra` sections behind it.
    pub(crate) fn configure(&self, extra: &str) {
        let (url, dir) = (self.double.url(), self.dir.path().display());
        let text = format!(
            "[github]\napi_url = \"{url}\"\nweb_url = \"{url}\"\n\
             [[repo]]\nname = \"{REPO}\"\n\
             [triggers]\nallowlist = [{}]\n\
             [store]\npath = \"{dir}/state.db\"\n\
             [workspace]\ncache_dir = \"{dir}/cache\"\nmin_free_mb = 1\n{extra}",
            MONA.0
        );
        fs::write(self.path("prwarden.toml"), text).unwrap();
    }

    /// The program with the bare environment that cron gives, and the token.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prwarden"));
        command
            .args(args)
            .arg("--config")
            .arg(self.path("prwarden.toml"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GITHUB_TOKEN", TOKEN)
            .current_dir(self.dir.path());
        command
    }

    /// Runs one cycle, which must end well, and returns its log.
    pub(crate) fn once(&self) -> String {
        let output = self.command(&["once", "--log", "debug"]).output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "once ended with {}:\n{log}",
            output.status
        );
        assert!(!log.contains(TOKEN), "the token is in the log:\n{log}");
        assert!(output.stdout.is_empty(), "once is silent on stdout");
        log
    }

    /// Runs one cycle however it ends.
    pub(crate) fn once_output(&self) -> Output {
        self.command(&["once", "--log", "debug"]).output().unwrap()
    }

    /// Starts a cycle or daemon that goes on in the background.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.path("background.log")).unwrap());
        Running(command.spawn().unwrap())
    }

    /// Commits `files` on a new branch off `main` and opens a pull request by `author`.
    pub(crate) fn open(&self, author: &str, branch: &str, files: &[(&str, &str)]) -> i64 {
        self.branch(branch, files);
        self.double.open_pull(REPO, pull(author, branch))
    }

    pub(crate) fn branch(&self, branch: &str, files: &[(&str, &str)]) {
        self.git.branch(branch, "main").unwrap();
        self.git.commit(branch, files, "Change").unwrap();
    }

    /// Opens a pull request whose change is harmless.
    pub(crate) fn open_plain(&self, author: &str, branch: &str) -> i64 {
        self.open(
            author,
            branch,
            &[("src/two.rs", "pub fn two() -> u32 {\n    2\n}\n")],
        )
    }

    /// The bodies of the comments that our own account made.
    pub(crate) fn reviews(&self, number: i64) -> Vec<String> {
        let ours = |comment: &prwarden::double::Comment| comment.author == BOT.1;
        self.double
            .comments(REPO, number)
            .into_iter()
            .filter(ours)
            .map(|c| c.body)
            .collect()
    }

    /// Which round the one comment of ours shows.
    pub(crate) fn round(&self, number: i64) -> u32 {
        let reviews = self.reviews(number);
        assert_eq!(reviews.len(), 1, "{reviews:#?}");
        let state = prwarden::report::sticky::State::read(&reviews[0]);
        state
            .unwrap_or_else(|| panic!("no state: {reviews:#?}"))
            .round
    }

    /// Asks the store one question that has one number for an answer.
    pub(crate) fn count(&self, sql: &str) -> i64 {
        let store = rusqlite::Connection::open(self.store()).unwrap();
        store.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Writes an executable script into the world's directory.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Processes that were started for this world and still live: those that name its directory in
    /// their command line, environment or working directory.
    pub(crate) fn processes(&self) -> Vec<String> {
        let needle = self.dir.path().to_string_lossy().into_owned();
        let own = std::process::id().to_string();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let pid = entry.file_name().to_string_lossy().into_owned();
            if !pid.bytes().all(|b| b.is_ascii_digit()) || pid == own {
                continue;
            }
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let text = [read("cmdline"), read("environ")].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            let in_double = text.contains("http-backend") || text.contains("upload-pack");
            if (text.contains(&needle) || cwd.starts_with(&needle)) && !in_double {
                let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                if !line.is_empty() {
                    found.push(format!("{pid} {line}"));
                }
            }
        }
        found
    }

    /// Whatever a run left in the cache besides the mirror itself: its directories, its references.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let list = |dir: PathBuf| {
            fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
        };
        let cache = self.path("cache");
        let runs = list(cache.join("runs")).flat_map(list);
        let mut left: Vec<String> = runs.map(|run| run.display().to_string()).collect();
        for mirror in list(cache.join("mirrors")) {
            let refs = Command::new("git")
                .arg("--git-dir")
                .arg(mirror)
                .arg("for-each-ref")
                .output();
            left.extend(
                String::from_utf8_lossy(&refs.unwrap().stdout)
                    .lines()
                    .map(str::to_owned),
            );
        }
        left
    }
}

/// A pull request from `branch` into `main`.
pub(crate) fn pull(author: &str, branch: &str) -> NewPull {
    NewPull {
        author: author.to_owned(),
        title: format!("Change {branch}"),
        body: String::new(),
        head_ref: branch.to_owned(),
        base_ref: "main".to_owned(),
        draft: false,
    }
}

/// A background process that does not outlive the test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until `true_now` holds; panics with `what` when it never does.
pub(crate) fn eventually(what: &str, mut true_now: impl FnMut() -> bool) {
    let start = Instant::now();
    while !true_now() {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The folder of shared inputs, when this checkout has it; a test that needs it says that it skips.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PRWARDEN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let path = root.join(name);
    if !path.exists() {
        println!("skipped: {} is not here", path.display());
        return None;
    }
    Some(path)
}
