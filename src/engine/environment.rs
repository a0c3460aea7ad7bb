//! The environment of an engine, built from nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::secret::Secret;

/// Looks up one of the daemon's own variables.
pub(super) type Lookup = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// Variables that every program needs and that tell nothing about the daemon.
const COMMON: [&str; 13] = [
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
];

/// Names under which tools look for a GitHub token: never passed on, whoever asks.
const FORBIDDEN: [&str; 5] = [
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_PAT",
];

/// What GitHub's tokens start with: a token under another name isn't passed on either.
const TOKEN_PREFIXES: [&str; 6] = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"];

/// The `PATH` when the daemon has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// An engine's whole environment.
#[derive(Clone)]
pub(super) struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// What a program that has it may not say: the tokens, and the values that were passed on by name.
    secrets: Vec<Secret>,
}

impl Environment {
    /// The common variables, and of the daemon's those in `names`, except for those that hold one of
    /// `tokens`. `TMPDIR` and `HOME` are `scratch`, unless `HOME` is among the names.
    pub(super) fn new<'a>(
        lookup: &Lookup,
        scratch: &OsStr,
        names: impl Iterator<Item = &'a str>,
        tokens: &[Secret],
    ) -> Self {
        let mut variables = BTreeMap::new();
        variables.insert("PATH".into(), DEFAULT_PATH.into());
        variables.insert("HOME".into(), scratch.to_owned());
        variables.insert("TMPDIR".into(), scratch.to_owned());
        for name in COMMON {
            variables.extend(lookup(name).map(|value| (name.into(), value)));
        }
        let mut secrets = tokens.to_vec();
        for name in names {
            let Some(value) = lookup(name) else { continue };
            if is_github_token(name, &value, tokens) {
                log::warn!(
                    "engine.env names {name}, a GitHub token; no engine gets one, so it is left out"
                );
                continue;
            }
            if name != "HOME" && !name.ends_with("_DIR") {
                secrets.extend(value.to_str().map(Secret::new));
            }
            variables.insert(name.into(), value);
        }
        Self { variables, secrets }
    }

    /// Sets one variable.
    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.into(), value.into());
    }

    /// Whether the variable is set and not empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.variables
            .get(OsStr::new(name))
            .is_some_and(|value| !value.is_empty())
    }

    /// The variables for a program.
    pub(super) fn to_vec(&self) -> Vec<(OsString, OsString)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// What a program that has it may not say.
    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }
}

fn is_github_token(name: &str, value: &OsStr, tokens: &[Secret]) -> bool {
    let value = value.to_string_lossy();
    if tokens.iter().any(|token| token.expose() == value.trim()) {
        return true;
    }
    FORBIDDEN
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
        || TOKEN_PREFIXES
            .iter()
            .any(|prefix| value.trim_start().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon(name: &str) -> Option<OsString> {
        let value = match name {
            "PATH" => "/opt/bin",
            "HOME" => "/var/lib/prwarden",
            "TZ" => "UTC",
            "GITHUB_TOKEN" | "GH_TOKEN" | "gh_token" => "very-secret",
            "OTHER" => "ghp_0123456789",
            "KEY" => "sk-0123456789",
            "CREDENTIALS_DIRECTORY" => "/run/credentials",
            _ => return None,
        };
        Some(value.into())
    }

    fn names(environment: &Environment) -> Vec<String> {
        let variables = environment.to_vec().into_iter();
        variables
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn nothing_of_the_daemons_environment_passes_unnamed() {
        let environment = Environment::new(&daemon, OsStr::new("/scratch"), [].into_iter(), &[]);
        assert_eq!(names(&environment), ["HOME", "PATH", "TMPDIR", "TZ"]);
        let home = (OsString::from("HOME"), OsString::from("/scratch"));
        assert!(environment.to_vec().contains(&home));
    }

    #[test]
    fn a_github_token_never_passes_even_when_it_is_named() {
        let asked = [
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "gh_token",
            "OTHER",
            "CREDENTIALS_DIRECTORY",
            "KEY",
            "ABSENT",
        ];
        let tokens = [Secret::new("/run/credentials")];
        let scratch = OsStr::new("/scratch");
        let environment = Environment::new(&daemon, scratch, asked.into_iter(), &tokens);
        assert_eq!(names(&environment), ["HOME", "KEY", "PATH", "TMPDIR", "TZ"]);
    }

    #[test]
    fn the_home_can_be_passed_on_by_name() {
        let environment =
            Environment::new(&daemon, OsStr::new("/scratch"), ["HOME"].into_iter(), &[]);
        let home = (OsString::from("HOME"), OsString::from("/var/lib/prwarden"));
        assert!(environment.to_vec().contains(&home));
    }
}
