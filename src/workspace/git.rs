//! The one door to the git program. Repositories here are written by strangers, so every call has
//! an environment built from nothing, configuration that no repository can override, a list of
//! allowed protocols, a time-out and a bound on its output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::GitError;
use crate::clock::Stop;
use crate::output::clip;
use crate::process::{Ended, Program, run};

/// A version of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// The oldest git that lets its system-wide configuration be switched off by environment.
pub const MINIMUM: GitVersion = GitVersion {
    major: 2,
    minor: 32,
};

impl GitVersion {
    /// Reads the output of `git --version`: `git version 2.47.3`, with whatever a vendor appends.
    fn parse(output: &str) -> Option<Self> {
        let rest = output.trim_start().strip_prefix("git version ")?;
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
        Some(Self {
            major: numbers.next()?.parse().ok()?,
            minor: numbers.next()?.parse().ok()?,
        })
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A git program that was found and is new enough.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    version: GitVersion,
    search_path: OsString,
    proxies: Vec<(OsString, OsString)>,
    supervisor: Option<PathBuf>,
}

/// Variables that say how to leave this network; only calls that use the network get them.
const PROXY_VARIABLES: [&str; 7] = [
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// Configuration of every call. Handed over by environment it has the rank of the command line,
/// above anything that a repository's own configuration says.
const CONFIG: [(&str, &str); 34] = [
    // Nothing of a repository is executed.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    // What is written is what was committed, and can't point or act outside of the tree.
    ("core.symlinks", "false"),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("core.autocrlf", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    // The diff's headers have one form.
    ("core.quotePath", "true"),
    // Larger files are streamed, and are binary to the diff.
    ("core.bigFileThreshold", "16m"),
    // No work behind our back.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.logAllRefUpdates", "false"),
    // What is fetched is checked, but for old slips in names and dates, which real histories hold
    // and which can't hurt, and for `.git` in paths: that is refused by name when files are written.
    ("transfer.fsckObjects", "true"),
    ("fetch.fsck.zeroPaddedFilemode", "ignore"),
    ("fetch.fsck.zeroPaddedDate", "ignore"),
    ("fetch.fsck.badTimezone", "ignore"),
    ("fetch.fsck.badDate", "ignore"),
    ("fetch.fsck.badName", "ignore"),
    ("fetch.fsck.badEmail", "ignore"),
    ("fetch.fsck.nulInCommit", "ignore"),
    ("fetch.fsck.missingEmail", "ignore"),
    ("fetch.fsck.missingSpaceBeforeDate", "ignore"),
    ("fetch.fsck.missingSpaceBeforeEmail", "ignore"),
    ("fetch.fsck.missingNameBeforeEmail", "ignore"),
    ("fetch.fsck.hasDotgit", "ignore"),
    // A stalled transfer ends after a minute; the token goes to no other host.
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "60"),
    ("http.followRedirects", "false"),
];

/// Time for a call that doesn't use the network.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(300);

/// Bound on the output of a call that prints little.
const SMALL_OUTPUT: usize = 1 << 20;

/// One call of git, built step by step.
#[derive(Debug)]
pub(super) struct Call {
    command: &'static str,
    args: Vec<OsString>,
    git_dir: Option<PathBuf>,
    directory: PathBuf,
    env: Vec<(OsString, OsString)>,
    config: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    timeout: Duration,
    limit: usize,
    protocols: &'static str,
}

impl Call {
    /// `git COMMAND`, run in the root directory, without network, until more is said.
    pub(super) fn new(command: &'static str) -> Self {
        Self {
            command,
            args: Vec::new(),
            git_dir: None,
            directory: PathBuf::from("/"),
            env: Vec::new(),
            config: Vec::new(),
            stdin: Vec::new(),
            timeout: LOCAL_TIMEOUT,
            limit: SMALL_OUTPUT,
            protocols: "",
        }
    }

    /// Adds arguments of the subcommand.
    pub(super) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// The repository, instead of one that git looks for. git runs inside it.
    pub(super) fn git_dir(mut self, git_dir: &Path) -> Self {
        self.git_dir = Some(git_dir.to_owned());
        self.directory = git_dir.to_owned();
        self
    }

    /// The working directory.
    pub(super) fn directory(mut self, directory: &Path) -> Self {
        self.directory = directory.to_owned();
        self
    }

    /// One more environment variable.
    pub(super) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// One more configuration entry. It travels by environment: the only place for a secret.
    pub(super) fn config(mut self, key: &str, value: impl Into<OsString>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// What git reads on standard input.
    pub(super) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Most bytes that it may print; one mebibyte when not said.
    pub(super) fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Lets the call use the network: these protocols (`:` between them) and this much time.
    pub(super) fn network(mut self, protocols: &'static str, timeout: Duration) -> Self {
        self.protocols = protocols;
        self.timeout = timeout;
        self
    }
}

/// A call that ran to its end.
#[derive(Debug)]
pub(super) struct Output {
    command: &'static str,
    /// The exit code.
    pub(super) code: i32,
    /// Everything that it printed.
    pub(super) stdout: Vec<u8>,
    /// The end of its messages, untrusted.
    pub(super) stderr: String,
}

impl Output {
    /// What it printed, if it succeeded.
    pub(super) fn success(self) -> Result<Vec<u8>, GitError> {
        if self.code == 0 {
            Ok(self.stdout)
        } else {
            Err(GitError::Failed {
                command: self.command,
                detail: self.detail(),
            })
        }
    }

    /// The telling line of its messages, fit for a log line.
    pub(super) fn detail(&self) -> String {
        let telling = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
        let mut lines = self.stderr.lines().filter(|line| !line.trim().is_empty());
        let line = self
            .stderr
            .lines()
            .find(telling)
            .or_else(|| lines.next_back());
        line.map_or_else(|| format!("exit code {}", self.code), clip)
    }
}

impl Git {
    /// Looks `program` up in `PATH` unless it is a path, and asks for its version.
    ///
    /// # Errors
    /// When there is no such program, when it is not git, or older than [`MINIMUM`].
    pub fn find(program: &Path) -> Result<Self, GitError> {
        let search_path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let found = resolve(program, &search_path).ok_or_else(|| GitError::NotFound {
            program: program.to_owned(),
        })?;
        let proxies = PROXY_VARIABLES
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
            .collect();
        let mut git = Self {
            program: found,
            version: MINIMUM,
            search_path,
            proxies,
            supervisor: None,
        };
        let printed = git.run(Call::new("--version"), &Stop::new())?.success()?;
        let printed = String::from_utf8_lossy(&printed);
        git.version = GitVersion::parse(&printed).ok_or_else(|| GitError::NotGit {
            program: git.program.clone(),
            output: clip(printed.trim_end()),
        })?;
        if git.version < MINIMUM {
            return Err(GitError::TooOld {
                program: git.program,
                version: git.version,
            });
        }
        Ok(git)
    }

    /// Lets `supervisor` (our own binary) watch calls that use the network, so that no transport
    /// outlives a daemon that was killed.
    #[must_use]
    pub fn supervised_by(mut self, supervisor: PathBuf) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Its version.
    pub fn version(&self) -> GitVersion {
        self.version
    }

    /// The executable's absolute path.
    pub fn path(&self) -> &Path {
        &self.program
    }

    /// Runs one call to its end.
    ///
    /// # Errors
    /// When it can't be started, takes too long, prints too much, dies of a signal or is stopped.
    /// An exit code other than 0 is no error here: see [`Output::success`].
    pub(super) fn run(&self, call: Call, stop: &Stop) -> Result<Output, GitError> {
        let Call {
            command,
            timeout,
            limit,
            ..
        } = call;
        let program = Program {
            executable: self.program.clone(),
            env: self.environment(&call),
            args: std::iter::once(OsString::from(command))
                .chain(call.args)
                .collect(),
            directory: call.directory,
            stdin: call.stdin,
            timeout,
            stdout_limit: limit,
            supervisor: match call.protocols {
                "" => None,
                _ => self.supervisor.clone(),
            },
        };
        let finished = run(&program, stop)?;
        match finished.ended {
            Ended::Itself => {}
            Ended::TimedOut => {
                return Err(GitError::TimedOut {
                    command,
                    after: timeout,
                });
            }
            Ended::Stopped => return Err(GitError::Stopped),
            Ended::TooMuchOutput => return Err(GitError::TooMuchOutput { command, limit }),
        }
        let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
        let Some(code) = finished.code else {
            let detail = format!("ended by signal {}", finished.signal.unwrap_or_default());
            return Err(GitError::Failed { command, detail });
        };
        Ok(Output {
            command,
            code,
            stdout: finished.stdout,
            stderr,
        })
    }

    /// Everything that one call finds in its environment.
    fn environment(&self, call: &Call) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = [
            ("LC_ALL", "C"),
            // No home: neither git nor the HTTP library looks for the operator's credentials.
            ("HOME", "/nonexistent"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", call.protocols),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
        env.push(("PATH".into(), self.search_path.clone()));
        if let Some(git_dir) = &call.git_dir {
            env.push(("GIT_DIR".into(), git_dir.into()));
        }
        if !call.protocols.is_empty() {
            env.extend(self.proxies.iter().cloned());
        }
        env.extend(call.env.iter().cloned());
        let fixed = CONFIG
            .iter()
            .map(|(key, value)| (OsString::from(key), OsString::from(value)));
        let config: Vec<_> = fixed.chain(call.config.iter().cloned()).collect();
        env.push(("GIT_CONFIG_COUNT".into(), config.len().to_string().into()));
        for (number, (key, value)) in config.into_iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{number}").into(), key));
            env.push((format!("GIT_CONFIG_VALUE_{number}").into(), value));
        }
        env
    }
}

/// The absolute path of an executable: `program` itself if it has a `/`, else from `search_path`.
fn resolve(program: &Path, search_path: &OsStr) -> Option<PathBuf> {
    let executable = |path: &PathBuf| {
        std::fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = if program.components().count() > 1 {
        Some(program.to_owned()).filter(executable)
    } else {
        std::env::split_paths(search_path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(program))
            .find(executable)
    };
    std::path::absolute(found?).ok()
}
