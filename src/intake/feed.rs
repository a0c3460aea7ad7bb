//! The three requests and what they answer: pages in, one transaction's worth of items out.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::github::{ApiError, Client, Page, Role};
use crate::ids::{CommentSource, RepoName};
use crate::output;
use crate::store::watermarks::{self, Stream};
use crate::store::{StoreError, Txn, decisions, etags};

/// Items on a full page; a shorter page is the last one.
const PER_PAGE: usize = 100;

/// How many pages of one response are followed before a gap is accepted and named.
const MAX_PAGES: usize = 10;

/// One of the three requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    Pulls,
    Comments(CommentSource),
}

impl Feed {
    /// In the order in which they are asked: the set of open pull requests comes before the comments
    /// that it judges.
    pub(super) const ALL: [Self; 3] = [
        Self::Pulls,
        Self::Comments(CommentSource::Issue),
        Self::Comments(CommentSource::Review),
    ];

    pub(super) fn path(self, repo: &RepoName) -> String {
        let query = format!("direction=desc&per_page={PER_PAGE}");
        match self {
            Self::Pulls => format!("/repos/{repo}/pulls?state=open&sort=created&{query}"),
            Self::Comments(CommentSource::Issue) => {
                format!("/repos/{repo}/issues/comments?sort=updated&{query}")
            }
            Self::Comments(CommentSource::Review) => {
                format!("/repos/{repo}/pulls/comments?sort=updated&{query}")
            }
        }
    }

    pub(super) fn stream(self) -> Stream {
        match self {
            Self::Pulls => Stream::PullRequests,
            Self::Comments(CommentSource::Issue) => Stream::Comments,
            Self::Comments(CommentSource::Review) => Stream::ReviewComments,
        }
    }

    /// The field by which the feed is sorted, newest first.
    fn sorted_by(self) -> &'static str {
        match self {
            Self::Pulls => "created_at",
            Self::Comments(_) => "updated_at",
        }
    }
}

/// A new response with its follow-up pages: what one transaction commits.
#[derive(Debug)]
pub(super) struct Response {
    path: String,
    etag: Option<String>,
    pub(super) items: Vec<Value>,
    pub(super) horizon: Timestamp,
    /// The pages end before anything could be cut off.
    pub(super) complete: bool,
    pub(super) as_of: Timestamp,
    /// The server's clock.
    date: Option<Timestamp>,
}

/// How far ahead of the response that holds it an item's stamp may be.
const STAMP_AHEAD: Duration = Duration::from_secs(300);

impl Response {
    /// Follows pages while everything on them is newer than the horizon. One page normally does.
    pub(super) fn gather(
        client: &Client,
        first: Page,
        feed: Feed,
        path: String,
        horizon: Timestamp,
        now: Timestamp,
    ) -> Result<Self, ApiError> {
        let Page {
            mut items,
            etag,
            mut next,
            date,
            ..
        } = first;
        let mut pages = 1;
        let mut on_page = items.len();
        while on_page >= PER_PAGE && all_newer(&items[items.len() - on_page..], feed, horizon) {
            let Some(link) = next else { break };
            if pages == MAX_PAGES {
                log::warn!(
                    "{path} holds more than {} new items since {horizon}: older ones of them are missed",
                    MAX_PAGES * PER_PAGE
                );
                break;
            }
            let page = client.next_page(&link, Role::Poll)?;
            on_page = page.items.len();
            items.extend(page.items);
            next = page.next;
            pages += 1;
        }
        let complete = on_page < PER_PAGE;
        Ok(Self {
            path,
            etag,
            items,
            horizon,
            complete,
            as_of: date.unwrap_or(now),
            date,
        })
    }

    /// The part that all feeds share: the watermark moves to the newest time in the payload, never to
    /// the local clock, and the ETag vouches for all of it. A stamp in the server's own future would
    /// make all that follows look old until then.
    pub(super) fn commit(
        &self,
        txn: &Txn<'_>,
        repo: &RepoName,
        stream: Stream,
        newest: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        if let Some(newest) = newest {
            let most = self.date.map(|date| date.plus(STAMP_AHEAD));
            let mark = most.map_or(newest, |most| newest.min(most));
            if mark < newest {
                log::warn!(repo = repo.as_str();
                    "{} holds an item of {newest}, which is yet to come; the watermark stays at {mark}",
                    self.path);
            }
            watermarks::advance(txn, stream, repo, mark)?;
        }
        decisions::trim(txn, repo)?;
        match &self.etag {
            Some(etag) => etags::set(txn, &self.path, etag),
            None => etags::forget(txn, &self.path),
        }
    }
}

/// Whether no item of a page is as old as the horizon. An item without a readable time is taken for
/// new: it must not end the search.
fn all_newer(items: &[Value], feed: Feed, horizon: Timestamp) -> bool {
    let time = |item: &Value| {
        item.get(feed.sorted_by())?
            .as_str()?
            .parse::<Timestamp>()
            .ok()
    };
    items.iter().filter_map(time).all(|time| time >= horizon)
}

/// Reads each item leniently; one that can't be read is logged and skipped, never the response.
pub(super) fn read_items<T: DeserializeOwned>(repo: &RepoName, items: &[Value]) -> Vec<T> {
    let read = |item: &Value| match T::deserialize(item) {
        Ok(read) => Some(read),
        Err(error) => {
            let id = item.get("id").and_then(Value::as_i64).unwrap_or(0);
            log::warn!(repo = repo.as_str(); "item {id} is skipped: {}", output::clip(&error.to_string()));
            None
        }
    };
    items.iter().filter_map(read).collect()
}
