//! GitHub's objects, as far as they are read. Lenient: unknown fields are ignored, an account may be
//! gone, a body may be null.

use serde::Deserialize;

use crate::clock::Timestamp;
use crate::ids::{CommentId, CommitSha, PrNumber, RepoId, RepoName, UserId};

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Account {
    /// Its numeric id.
    pub id: UserId,
    /// Its current name.
    pub login: String,
    /// `User`, `Bot`, `Organization`, `Mannequin`.
    #[serde(rename = "type", default)]
    pub kind: String,
}

impl Account {
    /// It is a GitHub App or another bot.
    pub fn is_bot(&self) -> bool {
        self.kind == "Bot"
    }
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Repository {
    /// Its numeric id.
    pub id: RepoId,
    /// Its current name.
    pub full_name: RepoName,
    /// Only some may see it.
    #[serde(default)]
    pub private: bool,
}

/// One side of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Branch {
    /// The branch's name.
    #[serde(rename = "ref")]
    pub name: String,
    /// The commit at its tip.
    pub sha: CommitSha,
    /// Its repository; `None` for a fork that is gone.
    pub repo: Option<Repository>,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Label {
    /// Its name.
    pub name: String,
}

/// A pull request, from a list or by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pull {
    /// Its number.
    pub number: PrNumber,
    /// `open` or `closed`.
    pub state: String,
    /// It is not ready.
    #[serde(default)]
    pub draft: bool,
    /// It was merged; only known when it was asked for by itself.
    #[serde(default)]
    pub merged: bool,
    /// Its title.
    pub title: String,
    /// Who opened it; `None` for an account that is gone.
    pub user: Option<Account>,
    /// What it brings.
    pub head: Branch,
    /// What it targets.
    pub base: Branch,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// Changed files; only known when it was asked for by itself.
    #[serde(default)]
    pub changed_files: u64,
    /// Added lines; likewise.
    #[serde(default)]
    pub additions: u64,
    /// Removed lines; likewise.
    #[serde(default)]
    pub deletions: u64,
}

impl Pull {
    /// The names of its labels.
    pub fn label_names(&self) -> Vec<String> {
        self.labels.iter().map(|label| label.name.clone()).collect()
    }
}

/// A comment of either kind, as far as both have the same.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Remark {
    /// Who wrote it; `None` for an account that is gone.
    pub user: Option<Account>,
    /// Its Markdown.
    pub body: Option<String>,
}

/// A comment in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssueComment {
    /// Its id.
    pub id: CommentId,
    /// Who wrote it; `None` for an account that is gone.
    pub user: Option<Account>,
    /// Its Markdown.
    pub body: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    /// The API address of its issue or pull request.
    pub issue_url: String,
    /// Its address for people, which tells pull requests from issues.
    pub html_url: Option<String>,
}

impl IssueComment {
    /// The pull request or issue that it belongs to.
    pub fn pull(&self) -> Option<PrNumber> {
        self.issue_url.rsplit('/').next()?.parse().ok()
    }
}

/// A comment on a line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReviewComment {
    /// Its id.
    pub id: CommentId,
    /// Who wrote it; `None` for an account that is gone.
    pub user: Option<Account>,
    /// Its Markdown.
    pub body: Option<String>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    /// The API address of its pull request.
    pub pull_request_url: String,
}
