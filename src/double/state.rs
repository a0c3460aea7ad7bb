//! What the double remembers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::history::{History, Size};
use super::http::Request;
use super::{Comment, LineComment, Logged, RateLimit, Review, UserKind};
use crate::clock::{Clock, SystemClock, Timestamp};

#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) id: i64,
    pub(super) login: String,
    pub(super) kind: UserKind,
}

#[derive(Debug, Clone)]
pub(super) struct Pull {
    pub(super) number: i64,
    pub(super) id: i64,
    pub(super) author: String,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) head_ref: String,
    pub(super) head_sha: String,
    /// The fork that it came from was deleted.
    pub(super) head_repo_gone: bool,
    pub(super) base_ref: String,
    pub(super) base_sha: String,
    pub(super) draft: bool,
    pub(super) labels: Vec<String>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) closed_at: Option<Timestamp>,
    pub(super) merged: Option<Merged>,
    pub(super) size: Size,
}

impl Pull {
    pub(super) fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }
}

/// How a pull request was merged.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) by: String,
    pub(super) commit: String,
}

/// An issue that is no pull request.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) number: i64,
    pub(super) id: i64,
    pub(super) author: String,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) created_at: Timestamp,
}

#[derive(Debug)]
pub(super) struct Reaction {
    pub(super) id: i64,
    /// `issues/N`, `issues/comments/ID` or `pulls/comments/ID`.
    pub(super) on: String,
    pub(super) login: String,
    pub(super) content: String,
    pub(super) created_at: Timestamp,
}

#[derive(Debug)]
pub(super) struct Repo {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) bare: PathBuf,
    pub(super) default_branch: String,
    pub(super) private: bool,
    pub(super) created_at: Timestamp,
    pub(super) pulls: Vec<Pull>,
    pub(super) issues: Vec<Issue>,
    pub(super) comments: Vec<Comment>,
    pub(super) line_comments: Vec<LineComment>,
    pub(super) reviews: Vec<Review>,
    pub(super) reactions: Vec<Reaction>,
}

impl Repo {
    pub(super) fn owner(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    pub(super) fn pull(&self, number: i64) -> Option<&Pull> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    pub(super) fn issue(&self, number: i64) -> Option<&Issue> {
        self.issues.iter().find(|issue| issue.number == number)
    }

    pub(super) fn comment(&self, id: i64) -> Option<&Comment> {
        self.comments.iter().find(|comment| comment.id == id)
    }
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asker {
    /// Nobody, where nobody needs a token.
    Anonymous,
    /// Somebody without a known token, where one is needed.
    Refused,
    /// The account behind a token.
    Account {
        /// Whose it is.
        login: String,
        /// The token.
        token: String,
    },
}

impl Asker {
    pub(super) fn login(&self) -> Option<&str> {
        match self {
            Self::Account { login, .. } => Some(login),
            Self::Anonymous | Self::Refused => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) url: String,
    pub(super) git: PathBuf,
    pub(super) users: Vec<User>,
    pub(super) repos: Vec<Repo>,
    pub(super) log: Vec<Logged>,
    pub(super) fixed_time: Option<Timestamp>,
    pub(super) rate: Option<RateLimit>,
    tokens: BTreeMap<String, String>,
    /// A token was registered once; without a known one nothing is answered from then on.
    needs_token: bool,
    next_id: i64,
    next_seq: u64,
}

impl State {
    pub(super) fn new(url: &str, git: &Path) -> Self {
        let now = SystemClock.now();
        Self {
            url: url.to_owned(),
            git: git.to_owned(),
            users: Vec::new(),
            repos: Vec::new(),
            log: Vec::new(),
            fixed_time: None,
            rate: Some(RateLimit {
                limit: 5000,
                remaining: 5000,
                reset: now.unix() + 3600,
            }),
            tokens: BTreeMap::new(),
            needs_token: false,
            next_id: 5_000_001,
            next_seq: 0,
        }
    }

    /// The time that things are stamped with.
    pub(super) fn now(&self) -> Timestamp {
        self.fixed_time
            .unwrap_or_else(|| SystemClock.now())
            .whole_second()
    }

    /// A number that nothing else has.
    pub(super) fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// The place of the next request in the order of arrival.
    pub(super) fn next_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    pub(super) fn set_token(&mut self, token: &str, login: &str) {
        self.tokens.insert(token.to_owned(), login.to_owned());
        self.needs_token = true;
    }

    pub(super) fn rename_token(&mut self, login: &str, new: &str) {
        for owner in self.tokens.values_mut() {
            if owner == login {
                new.clone_into(owner);
            }
        }
    }

    pub(super) fn revoke_tokens(&mut self) {
        self.tokens.clear();
    }

    /// Reads `Authorization`: `Bearer` and `token` as the API takes them, `Basic` as git sends it.
    pub(super) fn asker(&self, request: &Request) -> Asker {
        let given = request.header("authorization").and_then(|value| {
            let (scheme, value) = value.split_once(' ')?;
            if scheme.eq_ignore_ascii_case("basic") {
                let text = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
                text.split_once(':').map(|(_, token)| token.to_owned())
            } else {
                let token = ["bearer", "token"].contains(&scheme.to_ascii_lowercase().as_str());
                token.then(|| value.to_owned())
            }
        });
        let known = given.and_then(|token| {
            let login = self.tokens.get(&token)?.clone();
            Some(Asker::Account { login, token })
        });
        known.unwrap_or(if self.needs_token {
            Asker::Refused
        } else {
            Asker::Anonymous
        })
    }

    pub(super) fn user(&self, login: &str) -> Option<&User> {
        self.users
            .iter()
            .find(|user| user.login.eq_ignore_ascii_case(login))
    }

    pub(super) fn renumber(&mut self, name: &str) {
        let id = self.id();
        self.repo_mut(name).id = id;
    }

    pub(super) fn find_repo(&self, name: &str) -> Option<usize> {
        self.repos
            .iter()
            .position(|repo| repo.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn history<'a>(&'a self, repo: &'a Repo) -> History<'a> {
        History {
            git: &self.git,
            bare: &repo.bare,
        }
    }

    /// # Panics
    /// When there is none: a mistake of the caller.
    pub(super) fn repo_mut(&mut self, name: &str) -> &mut Repo {
        match self.find_repo(name) {
            Some(at) => &mut self.repos[at],
            None => panic!("the double has no repository {name}"),
        }
    }

    /// # Panics
    /// When there is none: a mistake of the caller.
    pub(super) fn pull_mut(&mut self, repo: &str, number: i64) -> &mut Pull {
        let pulls = &mut self.repo_mut(repo).pulls;
        match pulls.iter_mut().find(|pull| pull.number == number) {
            Some(pull) => pull,
            None => panic!("the double has no pull request {repo}#{number}"),
        }
    }
}
