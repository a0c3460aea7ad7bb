//! The repository source: three repo-wide conditional requests, whatever the number of open pull
//! requests.

use std::time::Duration;

use super::decide::{self, Comment};
use super::feed::{Feed, Response, read_items};
use super::open_pulls::OpenPulls;
use crate::clock::{Clock, Timestamp};
use crate::config::PollConfig;
use crate::context::Served;
use crate::github::{ApiError, Conditional, IssueComment, Pull, RateState, ReviewComment, Role};
use crate::ids::{CommentSource, RepoName};
use crate::store::runs::{self, Stale};
use crate::store::watermarks::{self, Stream};
use crate::store::{Store, StoreError, Txn, etags, repos};

/// Polls one repository.
#[derive(Debug)]
pub struct RepositorySource<'a> {
    served: &'a Served,
    overlap: Duration,
    /// Where streams that were never polled begin.
    seed: Timestamp,
    open: OpenPulls,
}

/// What one poll brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Polled {
    /// Responses that were new.
    pub fresh: usize,
    /// Triggers that were queued.
    pub queued: usize,
}

/// Why a poll was cut short. What was committed before stays committed.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// GitHub did not answer as it should.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name belongs to another repository than before.
    #[error(
        "{repo} is now another repository (id {found}) than the one polled before (id {known}); \
         if that is wanted, start with a new store"
    )]
    Replaced {
        /// The name.
        repo: RepoName,
        /// The id that answers to it now.
        found: i64,
        /// The id remembered.
        known: i64,
    },
}

impl<'a> RepositorySource<'a> {
    /// A source whose unseen streams begin at `start`, cut to the whole second in which GitHub
    /// stamps events: nothing older is ever bought.
    pub fn new(served: &'a Served, config: &PollConfig, start: Timestamp) -> Self {
        let (overlap, seed) = (config.overlap, start.whole_second());
        Self {
            served,
            overlap,
            seed,
            open: OpenPulls::default(),
        }
    }

    /// The repository's name.
    pub fn name(&self) -> &RepoName {
        &self.served.repo.name
    }

    /// What is left of the token's primary limit, as the last response said.
    pub fn rate(&self) -> RateState {
        self.served.client.rate()
    }

    /// Forgets the ETag of `/pulls`, so that the next response is a full one and fills the set of
    /// open pull requests.
    ///
    /// # Errors
    /// When the store can't be written.
    pub fn forget_pulls(&self, store: &mut Store) -> Result<(), StoreError> {
        store.write(|txn| etags::forget(txn, &Feed::Pulls.path(self.name())))
    }

    /// Makes the three requests, pull requests first, and queues what they bring.
    ///
    /// # Errors
    /// At the first request that fails; the others are made at the next poll.
    pub fn poll(&mut self, store: &mut Store, clock: &dyn Clock) -> Result<Polled, PollError> {
        let mut polled = Polled::default();
        for feed in Feed::ALL {
            if let Some(queued) = self.poll_feed(feed, store, clock)? {
                polled.fresh += 1;
                polled.queued += queued;
            }
        }
        Ok(polled)
    }

    /// One request with its follow-up pages and its transaction; `None` for a 304.
    fn poll_feed(
        &mut self,
        feed: Feed,
        store: &mut Store,
        clock: &dyn Clock,
    ) -> Result<Option<usize>, PollError> {
        let repo = self.name().clone();
        let path = feed.path(&repo);
        let stream = feed.stream();
        let (etag, horizon) = self.position(store, stream, &path)?;
        let client = &self.served.client;
        let first = match client.list(&path, etag.as_deref(), Role::Poll)? {
            Conditional::NotModified { date } => {
                if feed == Feed::Pulls {
                    self.open.confirm(date.unwrap_or_else(|| clock.now()));
                }
                return Ok(None);
            }
            Conditional::Fresh(page) => page,
        };
        if let Some(path) = &first.moved_to {
            log::warn!(repo = repo.as_str(); "the repository has moved to {path}; change its name in the configuration");
        }
        let response = Response::gather(client, first, feed, path, horizon, clock.now())?;
        let now = clock.now();
        let queued = match feed {
            Feed::Pulls => self.take_pulls(store, response, now)?,
            Feed::Comments(source) => self.take_comments(store, source, response, now)?,
        };
        Ok(Some(queued))
    }

    /// The ETag to ask with, and the moment before which an item is old. A stream that was never
    /// polled begins at the seed. A quiet poll only reads here.
    fn position(
        &self,
        store: &mut Store,
        stream: Stream,
        path: &str,
    ) -> Result<(Option<String>, Timestamp), StoreError> {
        let repo = self.name();
        let (etag, watermark, seed) = store.read(|txn| {
            Ok((
                etags::get(txn, path)?,
                watermarks::get(txn, stream, repo)?,
                watermarks::seed(txn, stream, repo)?,
            ))
        })?;
        let seed = match seed {
            Some(seed) => seed,
            None => store.write(|txn| watermarks::plant(txn, stream, repo, self.seed))?,
        };
        Ok((
            etag,
            watermark.map_or(seed, |mark| mark.minus(self.overlap).max(seed)),
        ))
    }

    /// Decides on every pull request of a response and commits all of it at once.
    fn take_pulls(
        &mut self,
        store: &mut Store,
        response: Response,
        now: Timestamp,
    ) -> Result<usize, PollError> {
        let repo = self.name().clone();
        let rules = &self.served.repo.rules.triggers;
        let listed: Vec<Pull> = read_items(&repo, &response.items);
        let mut newest = None;
        let queued = store.write(|txn| {
            let mut queued = 0;
            for pull in &listed {
                check_identity(txn, &repo, pull)?;
                newest = newest.max(Some(pull.created_at));
                queued += usize::from(decide::pull(
                    txn,
                    &repo,
                    pull,
                    rules,
                    response.horizon,
                    now,
                )?);
            }
            response.commit(txn, &repo, Stream::PullRequests, newest)?;
            if response.complete {
                let open: Vec<_> = listed.iter().map(|pull| pull.number).collect();
                let (open, as_of) = (open.as_slice(), response.as_of);
                runs::purge(txn, &repo, Stale::Closed { open, as_of }, now)?;
            }
            Ok::<_, PollError>(queued)
        })?;
        let labels = listed
            .into_iter()
            .map(|pull| (pull.number, pull.label_names()))
            .collect();
        self.open.replace(labels, response.complete, response.as_of);
        Ok(queued)
    }

    /// Decides on every comment of a response and commits all of it at once.
    fn take_comments(
        &mut self,
        store: &mut Store,
        source: CommentSource,
        response: Response,
        now: Timestamp,
    ) -> Result<usize, PollError> {
        let repo = self.name().clone();
        let rules = &self.served.repo.rules.triggers;
        let items: Vec<Comment> = match source {
            CommentSource::Issue => read_items::<IssueComment>(&repo, &response.items)
                .into_iter()
                .filter_map(Comment::of_issue)
                .collect(),
            CommentSource::Review => read_items::<ReviewComment>(&repo, &response.items)
                .into_iter()
                .filter_map(Comment::of_review)
                .collect(),
        };
        store.write(|txn| {
            let (mut queued, mut newest) = (0, None);
            for comment in &items {
                newest = newest.max(Some(comment.updated_at));
                let (open, horizon) = (&self.open, response.horizon);
                let new = decide::comment(txn, &repo, comment, open, rules, horizon, now)?;
                queued += usize::from(new);
            }
            response.commit(txn, &repo, Feed::Comments(source).stream(), newest)?;
            Ok::<_, PollError>(queued)
        })
    }
}

/// Notices when a name was taken over by another repository.
fn check_identity(txn: &Txn<'_>, repo: &RepoName, pull: &Pull) -> Result<(), PollError> {
    let Some(found) = pull.base.repo.as_ref().map(|base| base.id) else {
        return Ok(());
    };
    match repos::id(txn, repo)? {
        None => Ok(repos::remember(txn, repo, found)?),
        Some(known) if known == found => Ok(()),
        Some(known) => Err(PollError::Replaced {
            repo: repo.clone(),
            found: found.get(),
            known: known.get(),
        }),
    }
}
