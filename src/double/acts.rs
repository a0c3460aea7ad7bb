//! How the double's state changes: what people do, and what the API's writing endpoints do for an
//! account. Both come to the same, so both are here once.

use std::path::Path;

use super::history::{History, Size};
use super::state::{Issue, Merged, Pull, Reaction, Repo, State};
use super::{Comment, LineComment, NewPull, Review};
use crate::clock::Timestamp;

impl State {
    /// # Panics
    /// When `bare` is no repository: a mistake of the caller.
    pub(super) fn add_repo(&mut self, name: &str, bare: &Path) {
        let (id, created_at) = (self.id(), self.now());
        let history = History {
            git: &self.git,
            bare,
        };
        told(history.allow_any_commit());
        let default_branch = told(history.default_branch());
        self.repos.push(Repo {
            id,
            name: name.to_owned(),
            bare: bare.to_owned(),
            default_branch,
            private: false,
            created_at,
            pulls: Vec::new(),
            issues: Vec::new(),
            comments: Vec::new(),
            line_comments: Vec::new(),
            reviews: Vec::new(),
            reactions: Vec::new(),
        });
    }

    pub(super) fn rename_user(&mut self, login: &str, new: &str) {
        let rename = |name: &mut String| {
            if name == login {
                new.clone_into(name);
            }
        };
        self.users
            .iter_mut()
            .for_each(|user| rename(&mut user.login));
        self.rename_token(login, new);
        for repo in &mut self.repos {
            repo.pulls
                .iter_mut()
                .for_each(|one| rename(&mut one.author));
            repo.comments
                .iter_mut()
                .for_each(|one| rename(&mut one.author));
            repo.line_comments
                .iter_mut()
                .for_each(|one| rename(&mut one.author));
        }
    }

    /// # Panics
    /// When a branch does not exist: a mistake of the caller.
    pub(super) fn open_pull(&mut self, name: &str, new: NewPull) -> i64 {
        let (id, now, git) = (self.id(), self.now(), self.git.clone());
        let repo = self.repo_mut(name);
        let number = next_number(repo);
        let mut pull = Pull {
            number,
            id,
            author: new.author,
            title: new.title,
            body: new.body,
            head_ref: new.head_ref,
            head_sha: String::new(),
            head_repo_gone: false,
            base_ref: new.base_ref,
            base_sha: String::new(),
            draft: new.draft,
            labels: Vec::new(),
            created_at: now,
            updated_at: now,
            closed_at: None,
            merged: None,
            size: Size::default(),
        };
        read_branches(&git, &repo.bare, &mut pull);
        repo.pulls.push(pull);
        number
    }

    pub(super) fn open_issue(&mut self, name: &str, author: &str, title: &str, body: &str) -> i64 {
        let (id, created_at) = (self.id(), self.now());
        let repo = self.repo_mut(name);
        let number = next_number(repo);
        repo.issues.push(Issue {
            number,
            id,
            author: author.to_owned(),
            title: title.to_owned(),
            body: body.to_owned(),
            created_at,
        });
        number
    }

    /// # Panics
    /// When a branch does not exist: a mistake of the caller.
    pub(super) fn push(&mut self, name: &str, number: i64) {
        let (git, bare) = (self.git.clone(), self.repo_mut(name).bare.clone());
        self.change(name, number, |pull, _| read_branches(&git, &bare, pull));
    }

    /// # Panics
    /// When the two conflict: a mistake of the caller.
    pub(super) fn merge(&mut self, name: &str, number: i64, by: &str) {
        let pull = self.pull_mut(name, number).clone();
        let message = format!("Merge pull request #{number} from {}", pull.head_ref);
        let git = self.git.clone();
        let history = History {
            git: &git,
            bare: &self.repo_mut(name).bare,
        };
        let commit = told(history.merge(&pull.base_ref, &pull.head_sha, &message));
        let by = by.to_owned();
        self.change(name, number, |pull, now| {
            pull.closed_at = Some(now);
            pull.merged = Some(Merged { by, commit });
        });
    }

    /// Changes a pull request and stamps it; `act` gets the time too.
    pub(super) fn change(
        &mut self,
        repo: &str,
        number: i64,
        act: impl FnOnce(&mut Pull, Timestamp),
    ) {
        let now = self.now();
        let pull = self.pull_mut(repo, number);
        act(pull, now);
        pull.updated_at = now;
    }

    /// Adds a comment to the conversation and returns its id. It stamps the pull request too.
    pub(super) fn comment(&mut self, repo: &str, number: i64, author: &str, body: &str) -> i64 {
        let (id, now) = (self.id(), self.now());
        let repo = self.repo_mut(repo);
        repo.comments.push(Comment {
            id,
            number,
            author: author.to_owned(),
            body: body.to_owned(),
            created_at: now,
            updated_at: now,
        });
        touch(repo, number, now);
        id
    }

    /// Adds a comment on a line and returns its id. It stamps the pull request too.
    pub(super) fn line_comment(&mut self, repo: &str, new: NewLineComment<'_>) -> i64 {
        let (id, now) = (self.id(), self.now());
        let repo = self.repo_mut(repo);
        let commit = repo.pull(new.number).map(|pull| pull.head_sha.clone());
        repo.line_comments.push(LineComment {
            id,
            number: new.number,
            author: new.author.to_owned(),
            body: new.body.to_owned(),
            path: new.path.to_owned(),
            line: new.line,
            commit: commit.unwrap_or_default(),
            review: new.review,
            created_at: now,
            updated_at: now,
        });
        touch(repo, new.number, now);
        id
    }

    /// Adds a review and returns its id. `state` is GitHub's word, such as `COMMENTED`.
    pub(super) fn review(
        &mut self,
        repo: &str,
        number: i64,
        author: &str,
        body: &str,
        state: &str,
    ) -> i64 {
        let (id, now) = (self.id(), self.now());
        let repo = self.repo_mut(repo);
        let commit = repo.pull(number).map(|pull| pull.head_sha.clone());
        repo.reviews.push(Review {
            id,
            number,
            author: author.to_owned(),
            body: body.to_owned(),
            state: state.to_owned(),
            commit: commit.unwrap_or_default(),
            submitted_at: now,
        });
        touch(repo, number, now);
        id
    }

    pub(super) fn edit_comment(&mut self, repo: &str, id: i64, body: &str) {
        let now = self.now();
        let comments = &mut self.repo_mut(repo).comments;
        if let Some(comment) = comments.iter_mut().find(|comment| comment.id == id) {
            comment.body = body.to_owned();
            comment.updated_at = now;
        }
    }

    pub(super) fn delete_comment(&mut self, repo: &str, id: i64) {
        let comments = &mut self.repo_mut(repo).comments;
        comments.retain(|comment| comment.id != id);
    }

    pub(super) fn reactions_of(&mut self, repo: &str, on: &str) -> Vec<(String, String)> {
        let reactions = self.repo_mut(repo).reactions.iter();
        reactions
            .filter(|reaction| reaction.on == on)
            .map(|reaction| (reaction.login.clone(), reaction.content.clone()))
            .collect()
    }

    /// Adds a reaction and returns its place; false when the same account left the same one before.
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
        reactions.push(Reaction {
            id,
            on: on.to_owned(),
            login: login.to_owned(),
            content: content.to_owned(),
            created_at,
        });
        (reactions.len() - 1, true)
    }
}

/// A comment on a line to add.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewLineComment<'a> {
    pub(super) number: i64,
    pub(super) author: &'a str,
    pub(super) path: &'a str,
    pub(super) line: u32,
    pub(super) body: &'a str,
    /// The review that it is part of.
    pub(super) review: Option<i64>,
}

/// Issues and pull requests share one sequence.
fn next_number(repo: &Repo) -> i64 {
    (repo.pulls.len() + repo.issues.len()) as i64 + 1
}

/// Talking about a pull request updates it.
fn touch(repo: &mut Repo, number: i64, now: Timestamp) {
    if let Some(pull) = repo.pulls.iter_mut().find(|pull| pull.number == number) {
        pull.updated_at = now;
    }
}

/// What git said, for a caller who must have asked for something that exists.
fn told<T>(answer: std::io::Result<T>) -> T {
    match answer {
        Ok(value) => value,
        Err(error) => panic!("the double's repository: {error}"),
    }
}

/// Reads both branches, measures the change and moves `refs/pull/N/head`, as GitHub does.
fn read_branches(git: &Path, bare: &Path, pull: &mut Pull) {
    let history = History { git, bare };
    pull.head_sha = told(history.tip(&pull.head_ref));
    pull.base_sha = told(history.tip(&pull.base_ref));
    let reference = format!("refs/pull/{}/head", pull.number);
    told(history.point(&reference, &pull.head_sha));
    pull.size = told(history.size(&pull.base_sha, &pull.head_sha));
}
