//! The requests that prwarden makes, each as what it means.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::http::Method;
use url::Url;

use super::client::{Answer, Client, Role, message};
use super::error::ApiError;
use super::headers::{http_date, next_link};
use super::wire::{Account, IssueComment, Pull, Remark, Repository};
use crate::clock::Timestamp;
use crate::ids::{CommentId, CommentRef, CommentSource, PrNumber, RepoName, UserId};
use crate::output;

/// How many pages of one conversation are read at most when our own comment is looked for.
const MAX_COMMENT_PAGES: usize = 50;

/// The answer to a conditional request.
#[derive(Debug)]
pub enum Conditional {
    /// Nothing changed since the ETag (304); costs nothing of the primary limit.
    NotModified {
        /// GitHub's clock.
        date: Option<Timestamp>,
    },
    /// The list.
    Fresh(Page),
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// Its items, each to be read on its own.
    pub items: Vec<Value>,
    /// To ask with next time; a weak one is as good.
    pub etag: Option<String>,
    /// The page after it. [`Client::next_page`] refuses one on another host.
    pub next: Option<Url>,
    /// The path that answers now, when the asked one has moved for good.
    pub moved_to: Option<String>,
    /// GitHub's clock.
    pub date: Option<Timestamp>,
}

/// What a reaction is left on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The pull request itself.
    Pull(PrNumber),
    /// A comment.
    Comment(CommentRef),
}

impl Client {
    /// The first page of a list, unless it still has `etag`.
    ///
    /// # Errors
    /// Any [`ApiError`] but `OutcomeUnknown`.
    pub fn list(
        &self,
        path: &str,
        etag: Option<&str>,
        role: Role,
    ) -> Result<Conditional, ApiError> {
        let answer = self.read(self.url(path)?, etag, role)?;
        if answer.reply.status == 304 && etag.is_some() {
            return Ok(Conditional::NotModified {
                date: date(&answer),
            });
        }
        page(answer).map(Conditional::Fresh)
    }

    /// The page that [`Page::next`] names.
    ///
    /// # Errors
    /// Any [`ApiError`] but `OutcomeUnknown`; `OtherHost` when it is not on the API's host.
    pub fn next_page(&self, next: &Url, role: Role) -> Result<Page, ApiError> {
        page(self.read(next.clone(), None, role)?)
    }

    /// A pull request by itself.
    ///
    /// # Errors
    /// `Status` with 404 when there is none of this number.
    pub fn pull(&self, repo: &RepoName, pr: PrNumber) -> Result<Pull, ApiError> {
        self.get(&format!("/repos/{repo}/pulls/{pr}"))
    }

    /// A repository.
    ///
    /// # Errors
    /// `Status` with 404 when there is none, or the token may not see it.
    pub fn repository(&self, repo: &RepoName) -> Result<Repository, ApiError> {
        self.get(&format!("/repos/{repo}"))
    }

    /// The account that the token belongs to.
    ///
    /// # Errors
    /// `Status` with 401 for a token that is not valid.
    pub fn me(&self) -> Result<Account, ApiError> {
        self.get("/user")
    }

    /// An account by its numeric id.
    ///
    /// # Errors
    /// `Status` with 404 when there is none.
    pub fn user(&self, id: UserId) -> Result<Account, ApiError> {
        self.get(&format!("/user/{id}"))
    }

    /// The comments of a conversation, oldest first; with `since` those written or edited since then.
    ///
    /// # Errors
    /// Any [`ApiError`] but `OutcomeUnknown`. A conversation that is not read to its end is an error:
    /// whoever looks for a comment would take it for absent.
    pub fn comments(
        &self,
        repo: &RepoName,
        pr: PrNumber,
        since: Option<Timestamp>,
    ) -> Result<Vec<IssueComment>, ApiError> {
        let since = since.map_or_else(String::new, |at| format!("since={}&", at.to_github()));
        let path = format!("/repos/{repo}/issues/{pr}/comments?{since}per_page=100");
        let answer = self.read(self.url(&path)?, None, Role::Review)?;
        let request = answer.request.clone();
        let mut page = page(answer)?;
        let mut comments = Vec::new();
        for _ in 0..MAX_COMMENT_PAGES {
            for item in page.items {
                let comment = IssueComment::deserialize(item);
                comments.push(comment.map_err(|error| unreadable(request.clone(), &error))?);
            }
            match page.next {
                Some(next) => page = self.next_page(&next, Role::Review)?,
                None => return Ok(comments),
            }
        }
        let limit = MAX_COMMENT_PAGES;
        Err(ApiError::Endless { request, limit })
    }

    /// Writes a comment into the conversation of a pull request.
    ///
    /// # Errors
    /// `OutcomeUnknown` when it may be there; look before trying again.
    pub fn create_comment(
        &self,
        repo: &RepoName,
        pr: PrNumber,
        body: &str,
    ) -> Result<IssueComment, ApiError> {
        let url = self.url(&format!("/repos/{repo}/issues/{pr}/comments"))?;
        let answer = self.write(Method::POST, url, &json!({ "body": body }), Role::Review)?;
        let Answer { reply, request, .. } = &answer;
        if !(200..300).contains(&reply.status) {
            return Err(refused(&answer));
        }
        // It is there, whatever the answer says about it.
        serde_json::from_slice(&reply.body).map_err(|error| ApiError::OutcomeUnknown {
            request: request.clone(),
            reason: output::clip(&format!("it answered {}, but {error}", reply.status)),
        })
    }

    /// One comment of a conversation.
    ///
    /// # Errors
    /// `Status` with 404 when there is none of this id.
    pub fn comment(&self, repo: &RepoName, id: CommentId) -> Result<IssueComment, ApiError> {
        self.get(&format!("/repos/{repo}/issues/comments/{id}"))
    }

    /// What a comment says, of a conversation or on a line.
    ///
    /// # Errors
    /// `Status` with 404 when there is none of this id.
    pub fn remark(&self, repo: &RepoName, comment: CommentRef) -> Result<Remark, ApiError> {
        self.get(&format!("/repos/{repo}/{}", path(comment)))
    }

    /// Rewrites a comment of a conversation. Doing it twice is the same as once.
    ///
    /// # Errors
    /// `Status` with 404 when it is gone; `OutcomeUnknown` when it may be rewritten.
    pub fn update_comment(
        &self,
        repo: &RepoName,
        id: CommentId,
        body: &str,
    ) -> Result<(), ApiError> {
        let url = self.url(&format!("/repos/{repo}/issues/comments/{id}"))?;
        let body = json!({ "body": body });
        let answer = self.write(Method::PATCH, url, &body, Role::Review)?;
        match answer.reply.status {
            200..300 => Ok(()),
            _ => Err(refused(&answer)),
        }
    }

    /// Deletes a comment of a conversation; one that is gone already counts as deleted.
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub fn delete_comment(&self, repo: &RepoName, id: CommentId) -> Result<(), ApiError> {
        let url = self.url(&format!("/repos/{repo}/issues/comments/{id}"))?;
        let answer = self.write(Method::DELETE, url, &json!({}), Role::Review)?;
        match answer.reply.status {
            200..300 | 404 | 410 => Ok(()),
            _ => Err(refused(&answer)),
        }
    }

    /// Leaves an `eyes` reaction. It is the same whether it was there before (200) or not (201).
    ///
    /// # Errors
    /// Any [`ApiError`].
    pub fn react_eyes(&self, repo: &RepoName, target: Target) -> Result<(), ApiError> {
        let on = match target {
            Target::Pull(pr) => format!("issues/{pr}"),
            Target::Comment(comment) => path(comment),
        };
        let url = self.url(&format!("/repos/{repo}/{on}/reactions"))?;
        let body = json!({ "content": "eyes" });
        let answer = self.write(Method::POST, url, &body, Role::Review)?;
        match answer.reply.status {
            200 | 201 => Ok(()),
            _ => Err(refused(&answer)),
        }
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        expect(self.read(self.url(path)?, None, Role::Review)?, 200)
    }
}

/// Where a comment is, below its repository.
fn path(comment: CommentRef) -> String {
    let of = match comment.source {
        CommentSource::Issue => "issues",
        CommentSource::Review => "pulls",
    };
    format!("{of}/comments/{}", comment.id)
}

fn page(answer: Answer) -> Result<Page, ApiError> {
    let next = answer.reply.all("link").find_map(next_link);
    let next = next.and_then(|target| answer.url.join(target).ok());
    let etag = answer.reply.header("etag").map(str::to_owned);
    let (date, moved_to) = (date(&answer), answer.moved_to.clone());
    let items = expect(answer, 200)?;
    Ok(Page {
        items,
        etag,
        next,
        moved_to,
        date,
    })
}

/// The body of an answer that must have `status`.
fn expect<T: DeserializeOwned>(answer: Answer, status: u16) -> Result<T, ApiError> {
    if answer.reply.status != status {
        return Err(refused(&answer));
    }
    serde_json::from_slice(&answer.reply.body).map_err(|error| unreadable(answer.request, &error))
}

fn refused(answer: &Answer) -> ApiError {
    let (request, status) = (answer.request.clone(), answer.reply.status);
    ApiError::Status {
        request,
        status,
        message: message(&answer.reply),
    }
}

fn unreadable(request: String, error: &serde_json::Error) -> ApiError {
    ApiError::NotJson {
        request,
        reason: output::clip(&error.to_string()),
    }
}

fn date(answer: &Answer) -> Option<Timestamp> {
    answer.reply.header("date").and_then(http_date)
}
