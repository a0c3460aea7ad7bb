//! What the double remembers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Logged, git};
use crate::clock::{Clock, SystemClock, Timestamp};

/// What an account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserKind {
    /// A person.
    User,
    /// A GitHub App.
    Bot,
}

/// The primary rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests in an hour.
    pub limit: u32,
    /// Requests left.
    pub remaining: u32,
    /// When it starts anew, in seconds since 1970.
    pub reset: i64,
}

/// A pull request to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    /// Who opens it.
    pub author: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub body: String,
    /// The branch with the change.
    pub head_ref: String,
    /// The branch that it targets.
    pub base_ref: String,
    /// It is not ready.
    pub draft: bool,
}

/// A comment in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: i64,
    /// The pull request.
    pub number: i64,
    /// Who wrote it.
    pub author: String,
    /// Its Markdown.
    pub body: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone)]
pub(super) struct User {
    pub(super) id: i64,
    pub(super) login: String,
    pub(super) kind: UserKind,
}

/// The place of a comment on a line.
#[derive(Debug, Clone)]
pub(super) struct LineComment {
    pub(super) path: String,
    pub(super) line: u32,
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
    pub(super) base_ref: String,
    pub(super) base_sha: String,
    pub(super) draft: bool,
    pub(super) open: bool,
    pub(super) labels: Vec<String>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    /// Files, added and removed lines, commits.
    pub(super) size: [u64; 4],
}

#[derive(Debug)]
pub(super) struct Reaction {
    pub(super) id: i64,
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
    pub(super) private: bool,
    pub(super) pulls: Vec<Pull>,
    pub(super) comments: Vec<Comment>,
    pub(super) line_comments: Vec<(Comment, LineComment)>,
    pub(super) reactions: Vec<Reaction>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) url: String,
    pub(super) users: Vec<User>,
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) repos: Vec<Repo>,
    pub(super) log: Vec<Logged>,
    pub(super) fixed_time: Option<Timestamp>,
    pub(super) rate: Option<RateLimit>,
    next_id: i64,
}

impl State {
    pub(super) fn new(url: &str) -> Self {
        let now = SystemClock.now();
        Self {
            url: url.to_owned(),
            users: Vec::new(),
            tokens: BTreeMap::new(),
            repos: Vec::new(),
            log: Vec::new(),
            fixed_time: None,
            rate: Some(RateLimit {
                limit: 5000,
                remaining: 5000,
                reset: now.unix() + 3600,
            }),
            next_id: 5_000_001,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.fixed_time
            .unwrap_or_else(|| SystemClock.now())
            .whole_second()
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn add_user(&mut self, id: i64, login: &str, kind: UserKind) {
        self.users.push(User {
            id,
            login: login.to_owned(),
            kind,
        });
    }

    pub(super) fn user(&self, login: &str) -> Option<&User> {
        self.users.iter().find(|user| user.login == login)
    }

    pub(super) fn add_repo(&mut self, name: &str, bare: &Path) {
        let id = self.id();
        self.repos.push(Repo {
            id,
            name: name.to_owned(),
            bare: bare.to_owned(),
            private: false,
            pulls: Vec::new(),
            comments: Vec::new(),
            line_comments: Vec::new(),
            reactions: Vec::new(),
        });
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

    /// # Panics
    /// When there is none: a mistake of the test.
    pub(super) fn repo_mut(&mut self, name: &str) -> &mut Repo {
        match self.find_repo(name) {
            Some(at) => &mut self.repos[at],
            None => panic!("the double has no repository {name}"),
        }
    }

    /// # Panics
    /// When there is none: a mistake of the test.
    pub(super) fn pull_mut(&mut self, repo: &str, number: i64) -> &mut Pull {
        let pulls = &mut self.repo_mut(repo).pulls;
        match pulls.iter_mut().find(|pull| pull.number == number) {
            Some(pull) => pull,
            None => panic!("the double has no pull request {repo}#{number}"),
        }
    }

    pub(super) fn open_pull(&mut self, name: &str, new: NewPull) -> i64 {
        let (id, now) = (self.id(), self.now());
        let repo = self.repo_mut(name);
        let number = repo.pulls.len() as i64 + 1;
        let mut pull = Pull {
            number,
            id,
            author: new.author,
            title: new.title,
            body: new.body,
            head_ref: new.head_ref,
            head_sha: String::new(),
            base_ref: new.base_ref,
            base_sha: String::new(),
            draft: new.draft,
            open: true,
            labels: Vec::new(),
            created_at: now,
            updated_at: now,
            size: [0; 4],
        };
        read_branches(&repo.bare, &mut pull);
        repo.pulls.push(pull);
        number
    }

    pub(super) fn push(&mut self, name: &str, number: i64) {
        let bare = self.repo_mut(name).bare.clone();
        self.change(name, number, |pull| read_branches(&bare, pull));
    }

    pub(super) fn change(&mut self, repo: &str, number: i64, act: impl FnOnce(&mut Pull)) {
        let now = self.now();
        let pull = self.pull_mut(repo, number);
        act(pull);
        pull.updated_at = now;
    }

    fn new_comment(&mut self, number: i64, author: &str, body: &str) -> Comment {
        let (id, now) = (self.id(), self.now());
        Comment {
            id,
            number,
            author: author.to_owned(),
            body: body.to_owned(),
            created_at: now,
            updated_at: now,
        }
    }

    pub(super) fn comment(&mut self, repo: &str, number: i64, author: &str, body: &str) -> i64 {
        let comment = self.new_comment(number, author, body);
        let id = comment.id;
        self.repo_mut(repo).comments.push(comment);
        id
    }

    pub(super) fn review_comment(
        &mut self,
        repo: &str,
        number: i64,
        author: &str,
        place: LineComment,
        body: &str,
    ) -> i64 {
        let comment = self.new_comment(number, author, body);
        let id = comment.id;
        self.repo_mut(repo).line_comments.push((comment, place));
        id
    }

    pub(super) fn edit_comment(&mut self, repo: &str, id: i64, body: &str) {
        let now = self.now();
        if let Some(comment) = self.repo_mut(repo).comments.iter_mut().find(|c| c.id == id) {
            comment.body = body.to_owned();
            comment.updated_at = now;
        }
    }

    pub(super) fn comments_of(&mut self, repo: &str, number: i64) -> Vec<Comment> {
        let comments = self.repo_mut(repo).comments.iter();
        comments
            .filter(|comment| comment.number == number)
            .cloned()
            .collect()
    }

    pub(super) fn reactions_of(&mut self, repo: &str, on: &str) -> Vec<(String, String)> {
        let reactions = self
            .repo_mut(repo)
            .reactions
            .iter()
            .filter(|reaction| reaction.on == on);
        reactions
            .map(|reaction| (reaction.login.clone(), reaction.content.clone()))
            .collect()
    }

    /// Adds a reaction; false when the same account left the same one before.
    pub(super) fn react(
        &mut self,
        repo: usize,
        on: &str,
        login: &str,
        content: &str,
    ) -> (usize, bool) {
        let (id, created_at) = (self.id(), self.now());
        let reactions = &mut self.repos[repo].reactions;
        let same = |r: &Reaction| r.on == on && r.login == login && r.content == content;
        if let Some(at) = reactions.iter().position(same) {
            return (at, false);
        }
        let (on, login, content) = (on.to_owned(), login.to_owned(), content.to_owned());
        reactions.push(Reaction {
            id,
            on,
            login,
            content,
            created_at,
        });
        (reactions.len() - 1, true)
    }
}

/// Reads both branches, measures the change and moves `refs/pull/N/head`, as GitHub does.
///
/// # Panics
/// When a branch does not exist: a mistake of the test.
fn read_branches(bare: &Path, pull: &mut Pull) {
    let git = |args: &[&str]| match git::run(Path::new("git"), bare, args, b"") {
        Ok(text) => text,
        Err(error) => panic!("the double's repository: {error}"),
    };
    let tip = |branch: &str| {
        git(&[
            "rev-parse",
            "--verify",
            &format!("refs/heads/{branch}^{{commit}}"),
        ])
    };
    pull.head_sha = tip(&pull.head_ref);
    pull.base_sha = tip(&pull.base_ref);
    git(&[
        "update-ref",
        &format!("refs/pull/{}/head", pull.number),
        &pull.head_sha,
    ]);
    let range = format!("{}...{}", pull.base_sha, pull.head_sha);
    let mut size = [0_u64; 4];
    let numbers = git::run(Path::new("git"), bare, &["diff", "--numstat", &range], b"");
    // Histories without a common commit have no such range.
    for line in numbers.unwrap_or_default().lines() {
        let mut columns = line
            .split('\t')
            .map(|column| column.parse::<u64>().unwrap_or(0));
        size[0] += 1;
        size[1] += columns.next().unwrap_or(0);
        size[2] += columns.next().unwrap_or(0);
    }
    let commits = git(&[
        "rev-list",
        "--count",
        &format!("{}..{}", pull.base_sha, pull.head_sha),
    ]);
    size[3] = commits.parse().unwrap_or(0);
    pull.size = size;
}
