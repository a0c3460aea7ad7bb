//! The values that go in and out of a [`Double`](super::Double).

use crate::clock::Timestamp;

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
    /// The pull request or issue.
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

/// A comment on a line of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineComment {
    /// Its id.
    pub id: i64,
    /// The pull request.
    pub number: i64,
    /// Who wrote it.
    pub author: String,
    /// Its Markdown.
    pub body: String,
    /// The file.
    pub path: String,
    /// The line in the new file, from 1.
    pub line: u32,
    /// The head that it was written on.
    pub commit: String,
    /// The review that it is part of.
    pub review: Option<i64>,
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
}

/// A review of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Its id.
    pub id: i64,
    /// The pull request.
    pub number: i64,
    /// Who wrote it.
    pub author: String,
    /// Its Markdown.
    pub body: String,
    /// `COMMENTED`, `APPROVED`, `CHANGES_REQUESTED` or `PENDING`.
    pub state: String,
    /// The head that it was written on.
    pub commit: String,
    /// When it was sent.
    pub submitted_at: Timestamp,
}

/// A request that was answered, or dropped on purpose (status 0).
#[derive(Debug, Clone)]
pub struct Logged {
    /// Its place in the order of arrival, from 1.
    pub seq: u64,
    /// `GET`, `POST` ...
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The query without its `?`.
    pub query: String,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// Every header but `Authorization`, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The account whose token it came with.
    pub account: Option<String>,
    /// The answer's status; 0 when the connection was cut instead.
    pub status: u16,
    /// The request's body; empty for git.
    pub request_body: String,
    /// The answer's body; empty for git.
    pub response_body: String,
}

impl Logged {
    /// A header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}
