//! A GitHub that lives on the loopback interface and keeps state: the demo and the tests talk to it.
//!
//! It answers the requests that prwarden makes as GitHub's published API description says, keeps pull
//! requests, comments, reactions and ETags, serves git over HTTP through `git http-backend`, and
//! fails on demand. People's actions (opening, commenting, pushing) are methods of [`Double`].

mod api;
mod faults;
mod git;
mod http;
pub mod sample;
mod server;
mod state;
mod wire;

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::clock::Timestamp;

pub use faults::{Action, Fault, Hold, Matcher, Moment};
pub use state::{Comment, NewPull, RateLimit, UserKind};

use server::Server;
use state::{LineComment, State};

/// A running double. Dropping it ends it.
#[derive(Debug)]
pub struct Double {
    server: Server,
}

/// A request that was answered, or dropped on purpose (status 0).
#[derive(Debug, Clone)]
pub struct Logged {
    /// `GET`, `POST` ...
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The query without its `?`.
    pub query: String,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The answer's status; 0 when the connection was cut instead.
    pub status: u16,
    /// The request's body; empty for git.
    pub request_body: String,
    /// The answer's body; empty for git.
    pub response_body: String,
}

impl Double {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start() -> io::Result<Self> {
        Ok(Self {
            server: Server::start()?,
        })
    }

    /// The root of both the API and the web host.
    pub fn url(&self) -> String {
        self.server.shared.url.clone()
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.server.shared.state())
    }

    /// Adds an account.
    pub fn add_user(&self, id: i64, login: &str, kind: UserKind) {
        self.with(|state| state.add_user(id, login, kind));
    }

    /// Lets `token` speak for the account `login`. From the first one on, requests without a known
    /// token are answered with 401.
    pub fn set_token(&self, token: &str, login: &str) {
        self.with(|state| state.tokens.insert(token.to_owned(), login.to_owned()));
    }

    /// Forgets every token.
    pub fn revoke_tokens(&self) {
        self.with(|state| {
            for login in state.tokens.values_mut() {
                login.clear();
            }
        });
    }

    /// Adds a repository, served from the bare repository at `bare`.
    pub fn add_repo(&self, name: &str, bare: &Path) {
        self.with(|state| state.add_repo(name, bare));
    }

    /// Hides a repository from whoever has no token, git included.
    pub fn make_private(&self, repo: &str) {
        self.with(|state| state.repo_mut(repo).private = true);
    }

    /// Puts another repository behind the name, with another id.
    pub fn replace_repo(&self, repo: &str) {
        self.with(|state| state.renumber(repo));
    }

    /// Opens a pull request from a branch that exists and returns its number.
    ///
    /// # Panics
    /// When the repository or a branch does not exist: a mistake of the caller.
    pub fn open_pull(&self, repo: &str, new: NewPull) -> i64 {
        self.with(|state| state.open_pull(repo, new))
    }

    /// Reads the branch of a pull request again, after commits were added to it.
    pub fn push(&self, repo: &str, number: i64) {
        self.with(|state| state.push(repo, number));
    }

    /// The head of a pull request, as the API tells it.
    pub fn head(&self, repo: &str, number: i64) -> String {
        self.with(|state| state.pull_mut(repo, number).head_sha.clone())
    }

    /// Takes a draft out of that state.
    pub fn ready(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull| pull.draft = false));
    }

    /// Closes a pull request.
    pub fn close(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull| pull.open = false));
    }

    /// Opens a closed pull request again.
    pub fn reopen(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull| pull.open = true));
    }

    /// Adds a label.
    pub fn label(&self, repo: &str, number: i64, label: &str) {
        self.with(|state| state.change(repo, number, |pull| pull.labels.push(label.to_owned())));
    }

    /// A person's comment in the conversation; returns its id.
    pub fn comment(&self, repo: &str, number: i64, author: &str, body: &str) -> i64 {
        self.with(|state| state.comment(repo, number, author, body))
    }

    /// A person's comment on a line; returns its id.
    pub fn review_comment(
        &self,
        repo: &str,
        number: i64,
        author: &str,
        path: &str,
        line: u32,
        body: &str,
    ) -> i64 {
        let place = LineComment {
            path: path.to_owned(),
            line,
        };
        self.with(|state| state.review_comment(repo, number, author, place, body))
    }

    /// Changes the body of a comment in the conversation.
    pub fn edit_comment(&self, repo: &str, id: i64, body: &str) {
        self.with(|state| state.edit_comment(repo, id, body));
    }

    /// Deletes a comment of the conversation.
    pub fn delete_comment(&self, repo: &str, id: i64) {
        self.with(|state| {
            state
                .repo_mut(repo)
                .comments
                .retain(|comment| comment.id != id)
        });
    }

    /// Makes an account one that is gone: its items stay, without an author.
    pub fn delete_user(&self, login: &str) {
        self.with(|state| state.users.retain(|user| user.login != login));
    }

    /// The comments in a conversation, oldest first.
    pub fn comments(&self, repo: &str, number: i64) -> Vec<Comment> {
        self.with(|state| state.comments_of(repo, number))
    }

    /// Who reacted how to a pull request.
    pub fn pull_reactions(&self, repo: &str, number: i64) -> Vec<(String, String)> {
        self.with(|state| state.reactions_of(repo, &format!("issues/{number}")))
    }

    /// Who reacted how to a comment of the conversation.
    pub fn comment_reactions(&self, repo: &str, id: i64) -> Vec<(String, String)> {
        self.with(|state| state.reactions_of(repo, &format!("issues/comments/{id}")))
    }

    /// Who reacted how to a comment on a line.
    pub fn review_comment_reactions(&self, repo: &str, id: i64) -> Vec<(String, String)> {
        self.with(|state| state.reactions_of(repo, &format!("pulls/comments/{id}")))
    }

    /// The requests since the start or the last [`Double::clear_requests`], in the order in which they
    /// ended.
    pub fn requests(&self) -> Vec<Logged> {
        self.with(|state| state.log.clone())
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.with(|state| state.log.clear());
    }

    /// Stamps what happens from now on with `time` (whole seconds).
    pub fn at(&self, time: Timestamp) {
        self.with(|state| state.fixed_time = Some(time));
    }

    /// Stamps what happens from now on with the system's time, as at the start.
    pub fn use_system_clock(&self) {
        self.with(|state| state.fixed_time = None);
    }

    /// Sets the primary rate limit.
    pub fn set_rate_limit(&self, rate: RateLimit) {
        self.with(|state| state.rate = Some(rate));
    }

    /// Answers without rate-limit headers, as an Enterprise Server may.
    pub fn hide_rate_limit(&self) {
        self.with(|state| state.rate = None);
    }

    /// Makes requests fail.
    pub fn fault(&self, fault: Fault) {
        self.server.shared.faults.add(fault);
    }

    /// Holds the next request that `matcher` names at `moment`, until the hold is released or dropped.
    pub fn hold(&self, matcher: Matcher, moment: Moment) -> Hold {
        self.server.shared.faults.hold(matcher, moment)
    }
}

/// What the threads of a double share.
#[derive(Debug)]
struct Shared {
    url: String,
    state: std::sync::Mutex<State>,
    faults: Arc<faults::Faults>,
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
