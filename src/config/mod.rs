//! The operator's configuration: raw TOML on one side, values that can't be wrong on the other.
//!
//! The file is parsed to a tree with places, read section by section against one table of keys
//! ([`keys`]), and checked across sections. Every problem is reported with file, line, key and what to
//! write instead; a file with one problem gives no configuration at all. Secrets never stand in it:
//! it names the places where they are, which [`TokenSource::resolve`] reads.

mod check;
mod convert;
mod defaults;
mod error;
pub mod keys;
mod raw;
mod rules;
mod secrets;
mod show;
pub mod template;
mod token;
mod types;
mod urls;
mod values;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use url::Url;

pub use error::{ConfigError, ConfigErrors, Warning};
pub use show::show;
pub use types::*;

use crate::ids::RepoName;

/// Looks up an environment variable; handed in, so that tests need not change their own.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where the service's configuration is.
pub const SYSTEM_FILE: &str = "/etc/prwarden/config.toml";

/// The configuration in a working directory.
pub const LOCAL_FILE: &str = "prwarden.toml";

/// More than a configuration has, so that a wrong file isn't read to its end.
const LIMIT: u64 = 1024 * 1024;

impl Config {
    /// Reads and checks `path`. `env` gives the directories that `workspace.cache_dir` defaults to.
    ///
    /// # Errors
    /// Every problem of the file; when there is one, nothing of the file is used.
    pub fn load(path: &Path, env: Env<'_>) -> Result<(Self, Vec<Warning>), ConfigErrors> {
        let (text, open_to_all) = read(path)?;
        let (config, mut warnings) = parse(&text, Some(path), env)?;
        if open_to_all {
            warnings.push(Warning {
                file: Some(path.to_path_buf()),
                line: None,
                key: None,
                message:
                    "everybody may change this file, and with it what runs here: run chmod o-w"
                        .to_owned(),
            });
        }
        Ok((config, warnings))
    }

    /// The file to read: `explicit`, else the first that exists of [`SYSTEM_FILE`] and
    /// [`LOCAL_FILE`]. An explicit file need not exist; [`Config::load`] then says so.
    pub fn locate(explicit: Option<&Path>) -> Option<PathBuf> {
        if let Some(path) = explicit {
            return Some(path.to_path_buf());
        }
        let mut places = [SYSTEM_FILE, LOCAL_FILE].into_iter().map(PathBuf::from);
        places.find(|path| path.exists())
    }

    /// What an empty file means: built-in checks, no repository. For commands that need no file.
    ///
    /// # Errors
    /// None in practice: the defaults pass the same checks as a file.
    pub fn embedded(env: Env<'_>) -> Result<Self, ConfigErrors> {
        parse("", None, env).map(|(config, _)| config)
    }

    /// What is watched, for people: the names of a few repositories, the number of many.
    pub fn watched(&self) -> String {
        match self.repos.as_slice() {
            [] => "no repository".to_owned(),
            few if few.len() <= 3 => few
                .iter()
                .map(|repo| repo.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            many => format!("{} repositories", many.len()),
        }
    }

    /// Checks that there is something to poll.
    ///
    /// # Errors
    /// When the file has no `[[repo]]`.
    pub fn require_repositories(&self) -> Result<(), ConfigError> {
        if !self.repos.is_empty() {
            return Ok(());
        }
        Err(ConfigError {
            file: self.file.clone(),
            line: None,
            key: Some("repo".to_owned()),
            problem: "there is no repository to poll".to_owned(),
            remedy: "add a [[repo]] with name = \"owner/name\"".to_owned(),
        })
    }
}

impl GithubConfig {
    /// Where git fetches a repository from.
    pub fn git_url(&self, repo: &RepoName) -> Url {
        let mut url = self.web_url.clone();
        let root = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{root}/{repo}.git"));
        url
    }
}

/// The file's text, and whether everybody may write to it.
fn read(path: &Path) -> Result<(String, bool), ConfigErrors> {
    let failed = |problem: String, line: Option<usize>, remedy: &str| ConfigError {
        file: Some(path.to_path_buf()),
        line,
        key: None,
        problem,
        remedy: remedy.to_owned(),
    };
    let unreadable = |error: io::Error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "prwarden config init writes one",
            io::ErrorKind::PermissionDenied => "run as the account that the file belongs to",
            _ => "name the file by --config",
        };
        failed(format!("cannot be read ({error})"), None, remedy)
    };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    let mut bytes = Vec::new();
    file.take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LIMIT {
        let problem = format!("is larger than {LIMIT} bytes");
        return Err(failed(problem, None, "name the configuration by --config").into());
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        failed("is not UTF-8".to_owned(), Some(line), "save it as UTF-8")
    })?;
    Ok((text, mode & 0o002 != 0))
}

/// Reads and checks a file's text.
fn parse(
    text: &str,
    file: Option<&Path>,
    env: Env<'_>,
) -> Result<(Config, Vec<Warning>), ConfigErrors> {
    let report = raw::Report::new(file, text);
    secrets::refuse(&report, text);
    if report.failed() {
        // Messages about anything else could show what was found.
        return Err(report.into_errors());
    }
    let root = raw::parse(&report, text);
    if report.failed() {
        return Err(report.into_errors());
    }
    raw::refuse_unknown_sections(&report, root.get_ref());
    let config = convert::config(&report, root.get_ref(), file, env);
    match config {
        Some(config) if !report.failed() => Ok((config, report.into_warnings())),
        _ => Err(report.into_errors()),
    }
}
