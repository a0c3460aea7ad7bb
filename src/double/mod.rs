//! A GitHub that lives on the loopback interface and keeps state: the demo and the tests talk to it.
//!
//! It answers the requests that prwarden makes as GitHub's published API description says, keeps pull
//! requests, comments, reactions and ETags, serves git over HTTP through `git http-backend`, and
//! fails on demand. People's actions (opening, commenting, pushing) are methods of [`Double`]; what
//! they name must exist, or they panic with a message that says what does not.

mod acts;
mod api;
mod faults;
mod git;
mod history;
mod http;
mod kinds;
pub mod sample;
mod server;
mod state;
mod wire;

use std::io;
use std::path::Path;

use crate::clock::Timestamp;

pub use faults::{Action, Fault, Hold, Matcher, Moment};
pub use kinds::{Comment, LineComment, Logged, NewPull, RateLimit, Review, UserKind};

use acts::NewLineComment;
use server::Server;
use state::{State, User};

/// A running double. Dropping it closes its connections and ends its threads.
#[derive(Debug)]
pub struct Double {
    server: Server,
}

/// The server itself, accounts and repositories.
impl Double {
    /// Starts on a free port of 127.0.0.1, with the git in `PATH`.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start() -> io::Result<Self> {
        Self::start_with(Path::new("git"))
    }

    /// Starts on a free port of 127.0.0.1, with this git.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start_with(git: &Path) -> io::Result<Self> {
        let server = Server::start(git)?;
        Ok(Self { server })
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
        let login = login.to_owned();
        self.with(|state| state.users.push(User { id, login, kind }));
    }

    /// Makes an account one that is gone: its items stay, without an author.
    pub fn delete_user(&self, login: &str) {
        self.with(|state| state.users.retain(|user| user.login != login));
    }

    /// Gives an account another name; its id and what it wrote stay.
    pub fn rename_user(&self, login: &str, new: &str) {
        self.with(|state| state.rename_user(login, new));
    }

    /// Lets `token` speak for the account `login`. From the first one on, requests without a known
    /// token are answered with 401; before, anybody may read and nobody may write.
    pub fn set_token(&self, token: &str, login: &str) {
        self.with(|state| state.set_token(token, login));
    }

    /// Forgets every token.
    pub fn revoke_tokens(&self) {
        self.with(State::revoke_tokens);
    }

    /// Adds a repository, served from the bare repository at `bare`. Its configuration is changed:
    /// fetches may be partial and ask for any commit, as on GitHub.
    ///
    /// # Panics
    /// When `bare` is no repository.
    pub fn add_repo(&self, name: &str, bare: &Path) {
        self.with(|state| state.add_repo(name, bare));
    }

    /// The numeric id of a repository, as in `/repositories/ID`.
    pub fn repo_id(&self, repo: &str) -> i64 {
        self.with(|state| state.repo_mut(repo).id)
    }

    /// Hides a repository from whoever has no token, git included.
    pub fn make_private(&self, repo: &str) {
        self.with(|state| state.repo_mut(repo).private = true);
    }

    /// Puts another repository behind the name, with another id.
    pub fn replace_repo(&self, repo: &str) {
        self.with(|state| state.renumber(repo));
    }
}

/// What people do to pull requests.
impl Double {
    /// Opens a pull request from a branch that exists and returns its number.
    ///
    /// # Panics
    /// When the repository or a branch does not exist.
    pub fn open_pull(&self, repo: &str, new: NewPull) -> i64 {
        self.with(|state| state.open_pull(repo, new))
    }

    /// Opens an issue that is no pull request and returns its number.
    pub fn open_issue(&self, repo: &str, author: &str, title: &str, body: &str) -> i64 {
        self.with(|state| state.open_issue(repo, author, title, body))
    }

    /// Reads the branch of a pull request again, after commits were added to it or it was reset.
    ///
    /// # Panics
    /// When the branch does not exist any more.
    pub fn push(&self, repo: &str, number: i64) {
        self.with(|state| state.push(repo, number));
    }

    /// The head of a pull request, as the API tells it.
    pub fn head(&self, repo: &str, number: i64) -> String {
        self.with(|state| state.pull_mut(repo, number).head_sha.clone())
    }

    /// Makes a pull request a draft.
    pub fn draft(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull, _| pull.draft = true));
    }

    /// Takes a draft out of that state.
    pub fn ready(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull, _| pull.draft = false));
    }

    /// Closes a pull request.
    pub fn close(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull, now| pull.closed_at = Some(now)));
    }

    /// Opens a closed pull request again.
    pub fn reopen(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull, _| pull.closed_at = None));
    }

    /// Merges a pull request into its base branch with a merge commit. Needs git 2.38.
    ///
    /// # Panics
    /// When the two conflict.
    pub fn merge(&self, repo: &str, number: i64, by: &str) {
        self.with(|state| state.merge(repo, number, by));
    }

    /// Adds a label.
    pub fn label(&self, repo: &str, number: i64, label: &str) {
        let label = label.to_owned();
        self.with(|state| state.change(repo, number, |pull, _| pull.labels.push(label)));
    }

    /// Takes a label away.
    pub fn unlabel(&self, repo: &str, number: i64, label: &str) {
        let act = |state: &mut State| {
            state.change(repo, number, |pull, _| pull.labels.retain(|l| l != label));
        };
        self.with(act);
    }

    /// Changes the title.
    pub fn retitle(&self, repo: &str, number: i64, title: &str) {
        let title = title.to_owned();
        self.with(|state| state.change(repo, number, |pull, _| pull.title = title));
    }

    /// Deletes the fork that a pull request came from: its `head.repo` becomes null.
    pub fn delete_fork(&self, repo: &str, number: i64) {
        self.with(|state| state.change(repo, number, |pull, _| pull.head_repo_gone = true));
    }
}

/// What people say, and what was said.
impl Double {
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
        let new = NewLineComment {
            number,
            author,
            path,
            line,
            body,
            review: None,
        };
        self.with(|state| state.line_comment(repo, new))
    }

    /// Changes the body of a comment in the conversation.
    pub fn edit_comment(&self, repo: &str, id: i64, body: &str) {
        self.with(|state| state.edit_comment(repo, id, body));
    }

    /// Deletes a comment of the conversation.
    pub fn delete_comment(&self, repo: &str, id: i64) {
        self.with(|state| state.delete_comment(repo, id));
    }

    /// The comments in a conversation, oldest first.
    pub fn comments(&self, repo: &str, number: i64) -> Vec<Comment> {
        self.with(|state| {
            let comments = state.repo_mut(repo).comments.iter();
            comments.filter(|c| c.number == number).cloned().collect()
        })
    }

    /// The comments on lines of a pull request, oldest first.
    pub fn review_comments(&self, repo: &str, number: i64) -> Vec<LineComment> {
        self.with(|state| {
            let comments = state.repo_mut(repo).line_comments.iter();
            comments.filter(|c| c.number == number).cloned().collect()
        })
    }

    /// The reviews of a pull request, oldest first.
    pub fn reviews(&self, repo: &str, number: i64) -> Vec<Review> {
        self.with(|state| {
            let reviews = state.repo_mut(repo).reviews.iter();
            reviews.filter(|r| r.number == number).cloned().collect()
        })
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
}

/// The log, the clock, the rate limit and failures.
impl Double {
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

    /// Sets the primary rate limit. When its reset has passed it starts anew, full, for an hour.
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

    /// How many requests are still to fail: a story asserts zero to know that its fault was met.
    pub fn faults_left(&self) -> u32 {
        self.server.shared.faults.left()
    }

    /// Lets nothing fail any more.
    pub fn clear_faults(&self) {
        self.server.shared.faults.clear();
    }

    /// Holds the next request that `matcher` names at `moment`, until the hold is released or dropped.
    pub fn hold(&self, matcher: Matcher, moment: Moment) -> Hold {
        self.server.shared.faults.hold(matcher, moment)
    }
}
