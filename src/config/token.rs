//! Where a token is found when it is needed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Parsed, Wrong};
use super::{Env, TokenSource};
use crate::secret::Secret;

/// The name under which a service manager offers the token.
const CREDENTIAL: &str = "github-token";

/// More than any token has, so that a wrong file isn't read to its end.
const LIMIT: u64 = 64 * 1024;

impl TokenSource {
    /// Reads the token: from the file; or from the environment variable, else from the systemd
    /// credential `$CREDENTIALS_DIRECTORY/github-token`.
    ///
    /// # Errors
    /// Nothing is there, it is empty or no token, or a file that others can read. The message says
    /// what was looked at and never what stands in it.
    pub fn resolve(&self, env: Env<'_>) -> Result<Secret, ConfigError> {
        let credentials = env("CREDENTIALS_DIRECTORY").filter(|dir| !dir.is_empty());
        let credentials = credentials.map(PathBuf::from);
        let (key, found) = match self {
            Self::File(path) => ("token_file", read(path, credentials.as_deref())),
            Self::Env(name) => {
                let found = match env(name) {
                    Some(text) => token(&text, &format!("the environment variable {name}")),
                    None => match credentials.as_deref() {
                        Some(dir) => credential(name, dir),
                        None => Err(nothing(name, "there is no $CREDENTIALS_DIRECTORY")),
                    },
                };
                ("token_env", found)
            }
        };
        found.map_err(|wrong| ConfigError {
            file: None,
            line: None,
            key: Some(format!("github.{key}")),
            problem: wrong.problem,
            remedy: wrong.remedy,
        })
    }
}

fn nothing(name: &str, credential: &str) -> Wrong {
    Wrong::new(
        format!("no token: the environment variable {name} is not set, and {credential}"),
        format!("set {name}, or name a file by github.token_file"),
    )
}

fn credential(name: &str, dir: &Path) -> Parsed<Secret> {
    let path = dir.join(CREDENTIAL);
    if path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    {
        return Err(nothing(name, &format!("there is no {}", path.display())));
    }
    read(&path, Some(dir))
}

fn read(path: &Path, credentials: Option<&Path>) -> Parsed<Secret> {
    let shown = path.display();
    let unreadable = |error: io::Error| {
        Wrong::new(
            format!("no token: cannot read {shown} ({error})"),
            "make the file readable for the account that prwarden runs as, and for it alone",
        )
    };
    // Before opening, because opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Wrong::new(
            format!("no token: {shown} is not a regular file"),
            "name a file that holds the token",
        ));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    // systemd grants a service's account access to a credential by an ACL, whose mask then shows as
    // read permission of the group although no group can read it.
    let in_credentials = credentials.is_some_and(|dir| path.starts_with(dir));
    let forbidden = if in_credentials { 0o037 } else { 0o077 };
    if metadata.permissions().mode() & forbidden != 0 {
        return Err(Wrong::new(
            format!(
                "{shown} can be read or changed by others (mode {:04o})",
                metadata.mode() & 0o7777
            ),
            format!("run chmod 600 {shown}, and replace the token if others may have read it"),
        ));
    }
    let mut bytes = Vec::new();
    let mut bounded = (&mut file).take(LIMIT + 1);
    bounded.read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|text| text.len() as u64 <= LIMIT);
    let text = text.ok_or_else(|| not_a_token(&shown.to_string()))?;
    token(&text, &shown.to_string())
}

fn not_a_token(place: &str) -> Wrong {
    Wrong::new(
        format!("what stands in {place} is not a token"),
        "write the token alone, on one line, without quotes",
    )
}

/// A token goes into a request header: one word of visible ASCII.
fn token(text: &str, place: &str) -> Parsed<Secret> {
    let secret = Secret::new(text);
    if secret.expose().is_empty() {
        return Err(Wrong::new(
            format!("no token: {place} is empty"),
            "put the token there, or name another place by github.token_env or github.token_file",
        ));
    }
    if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(not_a_token(place));
    }
    Ok(secret)
}
