//! A double with one repository, and clients that ask it.

use std::process::{Command, Output};
use std::time::Duration;

use prwarden::double::sample::RepoBuilder;
use prwarden::double::{Action, Double, Fault, Matcher, NewPull, UserKind};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const BOT: &str = "prwarden-bot";
pub(crate) const TOKEN: &str = "token-of-the-bot";
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A double with one repository, whose `main` and `two` differ by one file.
pub(crate) struct Place {
    pub(crate) double: Double,
    pub(crate) git: RepoBuilder,
    pub(crate) dir: TempDir,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The field of every item of a list.
    pub(crate) fn each(&self, field: &str) -> Vec<Value> {
        let list = self.json();
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| item[field].clone())
            .collect()
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let git = RepoBuilder::create(&dir.path().join("origin.git")).unwrap();
        let lines: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        git.commit("main", &[("notes.txt", &lines)], "Start")
            .unwrap();
        git.branch("two", "main").unwrap();
        let changed = lines.replace("line 10\n", "line ten\n");
        git.commit("two", &[("notes.txt", &changed)], "Spell ten\n\nIn words.")
            .unwrap();
        let double = Double::start().unwrap();
        double.add_user(101, "mona", UserKind::User);
        double.add_user(900, BOT, UserKind::Bot);
        double.add_repo(REPO, git.path());
        double.set_token(TOKEN, BOT);
        Self { double, git, dir }
    }

    pub(crate) fn open(&self) -> i64 {
        self.double.open_pull(REPO, pull("two"))
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Reply> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.double.url()));
        if !headers.iter().any(|(name, _)| *name == "Authorization") {
            request = request.header("Authorization", format!("Bearer {TOKEN}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(PATIENCE))
            .allow_non_standard_methods(true)
            .build()
            .into();
        let result = if body.is_empty() {
            agent.run(request.body(()).unwrap())
        } else {
            agent.run(request.body(body.to_owned()).unwrap())
        };
        let mut response = result.ok()?;
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()));
        Some(Reply {
            status: response.status().as_u16(),
            headers: headers.collect(),
            text: response.body_mut().read_to_string().ok()?,
        })
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "").unwrap()
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.ask(method, path, &[], &body.to_string()).unwrap()
    }

    pub(crate) fn in_repo(&self, path: &str) -> String {
        format!("/repos/{REPO}{path}")
    }

    pub(crate) fn fault(&self, matcher: Matcher, action: Action) {
        self.double.fault(Fault {
            matcher,
            times: 1,
            action,
        });
    }

    /// Runs the real git as a client would, with or without a token.
    pub(crate) fn client(&self, token: Option<&str>, args: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .current_dir(self.dir.path());
        if let Some(token) = token {
            use base64::Engine as _;
            let pair = format!("x-access-token:{token}");
            let pair = base64::engine::general_purpose::STANDARD.encode(pair);
            git.arg("-c")
                .arg(format!("http.extraHeader=Authorization: Basic {pair}"));
        }
        git.args(args).output().unwrap()
    }

    pub(crate) fn remote(&self) -> String {
        format!("{}/{REPO}.git", self.double.url())
    }

    pub(crate) fn cloned(&self, token: Option<&str>, name: &str) -> Output {
        self.client(token, &["clone", "--quiet", "--bare", &self.remote(), name])
    }
}

pub(crate) fn pull(branch: &str) -> NewPull {
    NewPull {
        author: "mona".to_owned(),
        title: format!("Change {branch}"),
        body: "Why not".to_owned(),
        head_ref: branch.to_owned(),
        base_ref: "main".to_owned(),
        draft: false,
    }
}

pub(crate) fn ok(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
