//! Whether a tool is there and still has the flags that contain it, asked before anything is paid for.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::conceal::Concealer;
use super::environment::Environment;
use super::failure::EngineFailure;
use super::unavailable;
use crate::clock::Stop;
use crate::output::clip;
use crate::process::{self, Ended, Program};

/// For `--version` and `--help` each.
const LIMIT: Duration = Duration::from_secs(30);

/// Most bytes of either text.
const OUTPUT: usize = 1 << 20;

/// What passed, by path, with the file's time of modification: a tool that was updated is asked again.
#[derive(Default)]
pub(super) struct Preflight(Mutex<HashMap<PathBuf, Passed>>);

#[derive(Clone)]
struct Passed {
    modified: Option<SystemTime>,
    version: String,
}

/// What is asked of a tool.
pub(super) struct Check<'a> {
    /// The executable, a path or a name.
    pub(super) binary: &'a Path,
    /// Flags that `--help` has to list.
    pub(super) flags: &'a [&'a str],
    /// A text that `--version` should contain.
    pub(super) expected_version: Option<&'a str>,
    pub(super) environment: &'a Environment,
    pub(super) directory: &'a Path,
    pub(super) supervisor: Option<&'a Path>,
}

impl Preflight {
    /// The tool's version, once it has passed.
    pub(super) fn pass(&self, check: &Check<'_>, stop: &Stop) -> Result<String, EngineFailure> {
        let path = locate(check.binary, check.environment)?;
        let modified = path.metadata().and_then(|data| data.modified()).ok();
        let known = self.passed(&path);
        if let Some(passed) = known.filter(|passed| passed.modified == modified) {
            return Ok(passed.version);
        }
        let version = check.ask(&path, "--version", stop)?;
        let version = clip(version.trim());
        if let Some(wanted) = check.expected_version
            && !version.contains(wanted)
        {
            log::warn!(
                "{} is {version}, not {wanted} as engine.expected_version says",
                path.display()
            );
        }
        let help = check.ask(&path, "--help", stop)?;
        let listed = |flag: &&&str| {
            let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            words.into_iter().any(|word| word == **flag)
        };
        let missing: Vec<_> = check
            .flags
            .iter()
            .filter(|flag| !listed(flag))
            .copied()
            .collect();
        if !missing.is_empty() {
            return Err(unavailable(
                format!("{} {version} has no {}", path.display(), missing.join(", ")),
                "without it the tool isn't contained; install a version that has it",
            ));
        }
        let passed = Passed {
            modified,
            version: version.clone(),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(path, passed);
        Ok(version)
    }

    fn passed(&self, path: &Path) -> Option<Passed> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(path).cloned()
    }
}

/// The executable's path, or that it is missing.
pub(super) fn locate(binary: &Path, environment: &Environment) -> Result<PathBuf, EngineFailure> {
    process::locate(binary, &environment.to_vec()).map_err(|error| {
        unavailable(
            format!("{}: {error}", binary.display()),
            "install it, or name it in the [engine] section",
        )
    })
}

impl Check<'_> {
    /// What the tool prints when it is given `flag` alone.
    fn ask(&self, path: &Path, flag: &str, stop: &Stop) -> Result<String, EngineFailure> {
        let program = Program {
            executable: path.to_owned(),
            args: vec![OsString::from(flag)],
            env: self.environment.to_vec(),
            directory: self.directory.to_owned(),
            stdin: Vec::new(),
            timeout: LIMIT,
            stdout_limit: OUTPUT,
            supervisor: self.supervisor.map(ToOwned::to_owned),
        };
        let broken = |how: String| {
            let problem = format!("{} {flag} {how}", path.display());
            unavailable(problem, "run it by hand to see why")
        };
        let finished = process::run(&program, stop)
            .map_err(|error| broken(format!("can't be run: {error}")))?;
        match finished.ended {
            Ended::Stopped => return Err(EngineFailure::Stopped),
            Ended::TimedOut => {
                return Err(broken(format!("gave no answer in {} s", LIMIT.as_secs())));
            }
            Ended::TooMuchOutput => return Err(broken("printed without end".to_owned())),
            Ended::Itself => {}
        }
        if finished.code != Some(0) {
            let concealer = Concealer::new(self.environment.secrets());
            let mut said = finished.stderr;
            concealer.output(&mut said);
            let said = String::from_utf8_lossy(&said);
            return Err(broken(format!("failed: {}", clip(said.trim()))));
        }
        Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
    }
}
