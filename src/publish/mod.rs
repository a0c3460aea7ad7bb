//! Making a recorded run visible, exactly once.
//!
//! A run is recorded before anything is posted, together with a row of its own that carries the
//! post: whatever happens to the process, that row is claimed again and nothing is paid twice.
//! Before a POST the attempt is noted in the store. An attempt whose outcome is unknown is resolved
//! by looking for the run's hidden marker among our own comments, never by posting again.

pub mod backoff;
mod creation;
mod sticky;

use std::time::Duration;

use url::Url;

use crate::clock::{Clock, Stop, Timestamp};
use crate::config::{PublishConfig, PublishMode};
use crate::github::{ApiError, Client, IssueComment, Target};
use crate::ids::{CommentId, OwnerName, nonce};
use crate::report::layout::{self, View};
use crate::report::sticky::State;
use crate::report::{notice, reply};
use crate::secret::Secret;
use crate::secret::leak;
use crate::store::queue::{Command, Kind, Trigger};
use crate::store::runs::{PublishOutcome, Run};
use crate::store::{Store, StoreError, Txn, comments, queue, runs};

pub use sticky::notice_ticks;

/// Clocks differ: a comment counts as possibly ours when GitHub stamped it up to this long before
/// our note of the attempt.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// Everything that publishing needs besides the store.
#[derive(Debug)]
pub struct Publisher<'a> {
    /// Talks to the repository.
    pub client: &'a Client,
    /// What may be posted.
    pub rules: &'a PublishConfig,
    /// The host that links may point to.
    pub web_url: &'a Url,
    /// What a body must not contain.
    pub secrets: &'a [&'a Secret],
    /// Where time comes from.
    pub clock: &'a dyn Clock,
    /// How long the lease is renewed for right before the write.
    pub lease: Duration,
    /// Ends a wait for another's creation of the comment.
    pub stop: &'a Stop,
}

/// What became of a run's publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// A comment was created.
    Posted(CommentId),
    /// An earlier attempt had created it after all.
    Adopted(CommentId),
    /// It was visible already, or the run has nothing to show.
    Already,
    /// The head moved on and the configuration wants no outdated reviews.
    Superseded,
    /// Nothing is written in a dry run.
    DryRun,
    /// The body held a secret.
    Refused,
    /// Not now; the row waits until then.
    Later(Timestamp),
    /// Never: the attempts are used up or GitHub refused these bytes.
    GivenUp,
    /// Another worker owns the row now.
    LeaseLost,
}

/// Publishes the run behind `row`, which `owner` holds, and finishes the row.
///
/// # Errors
/// Only for faults of the store. Faults of GitHub become [`Published::Later`] or
/// [`Published::GivenUp`].
pub fn publish(
    store: &mut Store,
    row: &Trigger,
    owner: &OwnerName,
    publisher: &Publisher<'_>,
) -> Result<Published, StoreError> {
    if row.kind == Kind::Render {
        return show_again(store, row, owner, publisher);
    }
    let run_key = row.key.published_run().unwrap_or_else(|| row.key.clone());
    let run = store.read(|txn| runs::get(txn, &run_key))?;
    let Some(mut run) = run else {
        log::error!(key = row.key.as_str(); "no run is recorded under {run_key}; nothing to publish");
        store.write_patiently(|txn| queue::abandon(txn, &row.key, owner))?;
        return Ok(Published::GivenUp);
    };
    if run.publication.published_at.is_some() || run.publication.failed_at.is_some() {
        store.write_patiently(|txn| queue::complete(txn, &row.key, owner))?;
        return Ok(Published::Already);
    }
    // Runs of other tools have no marker of ours, and a comment without one could not be found again
    // after a lost reply.
    if run.nonce.is_none()
        && let Ok(nonce) = nonce()
    {
        store.write_patiently(|txn| runs::set_nonce(txn, &run_key, &nonce))?;
        run.nonce = Some(nonce);
    }
    let attempt = Attempt {
        store,
        row,
        owner,
        run: &run,
        publisher,
    };
    match (publisher.rules.mode, run.command) {
        (PublishMode::Sticky, Command::Review) => attempt.publish_sticky(),
        _ => attempt.publish_anew(),
    }
}

/// Shows the run behind the pull request's comment as its boxes ask.
fn show_again(
    store: &mut Store,
    row: &Trigger,
    owner: &OwnerName,
    publisher: &Publisher<'_>,
) -> Result<Published, StoreError> {
    let found = store.read(|txn| {
        let pointer = crate::store::sticky::get(txn, &row.repo, row.pr)?;
        let run = match &pointer {
            Some(pointer) => runs::get(txn, &pointer.shown)?,
            None => None,
        };
        Ok(pointer.zip(run))
    })?;
    match found {
        Some((pointer, run)) if run.publication.purged_at.is_none() => Attempt {
            store,
            row,
            owner,
            run: &run,
            publisher,
        }
        .render_again(&pointer),
        _ => {
            store.write_patiently(|txn| queue::complete(txn, &row.key, owner))?;
            Ok(Published::Already)
        }
    }
}

/// One attempt at one run.
struct Attempt<'a> {
    store: &'a mut Store,
    row: &'a Trigger,
    owner: &'a OwnerName,
    run: &'a Run,
    publisher: &'a Publisher<'a>,
}

impl Attempt<'_> {
    /// Publishes the run in a comment of its own.
    fn publish_anew(mut self) -> Result<Published, StoreError> {
        if let Some(began) = self.run.publication.began_at {
            match self.find_own_comment(began) {
                Ok(Some(comment)) => return self.visible(comment.id, Published::Adopted),
                Ok(None) => {}
                Err(error) if self.is_last() && !matches!(error, ApiError::Stopped) => {
                    return self.give_up(&format!(
                        "its attempts are used up, and whether one of them succeeded can't be found \
                         out: {error}"
                    ));
                }
                Err(error) => return self.later(&error),
            }
        }
        if self.is_last() {
            return self.give_up("its attempts are used up");
        }
        let pull = match self.publisher.client.pull(&self.run.repo, self.run.pr) {
            Ok(pull) => pull,
            Err(error) => return self.later(&error),
        };
        let newer = (pull.head.sha != self.run.head).then_some(&pull.head.sha);
        if newer.is_some() && !self.publisher.rules.post_superseded {
            return self.record(PublishOutcome::Superseded, Published::Superseded);
        }
        let body = match (&self.run.notice, &self.run.reply) {
            (Some(_), _) => notice::render(self.run),
            (None, Some(reply)) => reply::render(self.run, reply, newer, self.publisher.web_url),
            (None, None) if self.run.command != Command::Review => {
                return self.give_up("it has nothing to show that this version knows");
            }
            (None, None) => layout::render(View {
                run: self.run,
                newer,
                web_url: self.publisher.web_url,
                earlier: &[],
                told: None,
            }),
        };
        if self.leaks(&body) {
            return self.record(PublishOutcome::Refused, Published::Refused);
        }
        if self.is_dry_run(&body) {
            return self.record(PublishOutcome::DryRun, Published::DryRun);
        }
        self.post(&body)
    }

    /// Whether the body holds a secret of ours, which is said without it.
    fn leaks(&self, body: &str) -> bool {
        let leaks = leak::contains_secret(body, self.publisher.secrets);
        if leaks {
            log::error!(repo = self.run.repo.as_str(), pr = self.run.pr.get();
                "the review contains one of our own secrets and is not posted");
        }
        leaks
    }

    fn is_dry_run(&self, body: &str) -> bool {
        if self.publisher.rules.dry_run {
            log::info!(repo = self.run.repo.as_str(), pr = self.run.pr.get();
                "dry run: would post a comment of {} bytes", body.len());
        }
        self.publisher.rules.dry_run
    }

    fn lease_end(&self) -> Timestamp {
        self.publisher.clock.now().plus(self.publisher.lease)
    }

    /// Notes durably that a write is about to be made, if the row is still ours.
    fn note_attempt(&mut self) -> Result<bool, StoreError> {
        let (now, until) = (self.publisher.clock.now(), self.lease_end());
        self.store.write_patiently(|txn| {
            let ours = queue::renew(txn, &self.row.key, self.owner, until)?;
            if ours {
                runs::begin_publish(txn, &self.run.key, now)?;
            }
            Ok(ours)
        })
    }

    fn is_last(&self) -> bool {
        self.run.publication.attempts >= self.publisher.rules.max_publish_attempts
    }

    /// Notes the attempt durably while the lease is still ours, then writes.
    fn post(mut self, body: &str) -> Result<Published, StoreError> {
        if !self.note_attempt()? {
            log::warn!(key = self.row.key.as_str(); "the lease was lost before the post");
            return Ok(Published::LeaseLost);
        }
        match self
            .publisher
            .client
            .create_comment(&self.run.repo, self.run.pr, body)
        {
            Ok(comment) => self.visible(comment.id, Published::Posted),
            Err(ApiError::Status {
                status: 404 | 410 | 422,
                message,
                ..
            }) => self.give_up(&format!("GitHub refused it: {message}")),
            Err(error) => self.later(&error),
        }
    }

    /// Our own comment with the run's marker, if an attempt since `began` made one.
    fn find_own_comment(&self, began: Timestamp) -> Result<Option<IssueComment>, ApiError> {
        let Some(nonce) = &self.run.nonce else {
            return Ok(None);
        };
        let client = self.publisher.client;
        let marker = layout::run_marker(nonce);
        let me = self.account()?;
        let since = Some(began.minus(CLOCK_SKEW));
        let comments = client.comments(&self.run.repo, self.run.pr, since)?;
        Ok(comments.into_iter().find(|comment| {
            // The marker is random and posted by nobody but us; a person may quote it, an app does not.
            let ours = comment.user.as_ref().is_some_and(|user| match me {
                Some(me) => user.id == me,
                None => user.is_bot(),
            });
            ours && comment.body.as_deref().is_some_and(|body| {
                let run = State::read(body).map(|state| state.run);
                body.trim_end().ends_with(&marker) || run.as_ref() == Some(nonce)
            })
        }))
    }

    /// The comment, the run's stamp and the row's end are one transaction: a poll that sees our
    /// comment already knows that it is ours.
    fn visible(
        &mut self,
        comment: CommentId,
        result: fn(CommentId) -> Published,
    ) -> Result<Published, StoreError> {
        self.visible_and(comment, result, |_| Ok(()))
    }

    /// The same, with `more` in the same transaction.
    fn visible_and(
        &mut self,
        comment: CommentId,
        result: fn(CommentId) -> Published,
        more: impl FnOnce(&Txn<'_>) -> Result<(), StoreError>,
    ) -> Result<Published, StoreError> {
        let now = self.publisher.clock.now();
        self.store.write_patiently(|txn| {
            more(txn)?;
            comments::add(txn, &self.run.repo, comment, now)?;
            runs::published(
                txn,
                &self.run.key,
                Some(comment),
                PublishOutcome::Published,
                now,
            )?;
            queue::complete(txn, &self.row.key, self.owner)
        })?;
        Ok(result(comment))
    }

    fn record(
        &mut self,
        outcome: PublishOutcome,
        result: Published,
    ) -> Result<Published, StoreError> {
        let now = self.publisher.clock.now();
        self.store.write_patiently(|txn| {
            runs::published(txn, &self.run.key, None, outcome, now)?;
            queue::complete(txn, &self.row.key, self.owner)
        })?;
        Ok(result)
    }

    fn later(&mut self, error: &ApiError) -> Result<Published, StoreError> {
        let now = self.publisher.clock.now();
        if matches!(error, ApiError::Stopped) {
            // prwarden stops: that is no attempt, and the next start goes on at once.
            self.store.write_patiently(|txn| {
                queue::release_unattempted(txn, &self.row.key, self.owner, now)
            })?;
            return Ok(Published::Later(now));
        }
        let until = self.next_attempt(error, self.run.publication.attempts + 1);
        log::warn!(repo = self.run.repo.as_str(), pr = self.run.pr.get(), key = self.row.key.as_str();
            "not published yet, next attempt at {}: {error}", until.to_minute());
        self.store.write_patiently(|txn| {
            runs::count_publish_attempt(txn, &self.run.key)?;
            queue::release_unattempted(txn, &self.row.key, self.owner, until)
        })?;
        Ok(Published::Later(until))
    }

    fn next_attempt(&self, error: &ApiError, attempt: u32) -> Timestamp {
        let random = getrandom::u32().unwrap_or(u32::MAX);
        let backoff = self
            .publisher
            .clock
            .now()
            .plus(backoff::wait_after(attempt, random));
        error.retry_at().map_or(backoff, |at| at.max(backoff))
    }

    fn give_up(&mut self, why: &str) -> Result<Published, StoreError> {
        log::error!(repo = self.run.repo.as_str(), pr = self.run.pr.get(), key = self.row.key.as_str();
            "the review of {} stays unpublished: {why}. Look at the pull request's state (locked, deleted) \
             and at the token's permissions", self.run.head.short());
        let now = self.publisher.clock.now();
        self.store.write_patiently(|txn| {
            runs::publish_failed(txn, &self.run.key, now)?;
            queue::abandon(txn, &self.row.key, self.owner)
        })?;
        Ok(Published::GivenUp)
    }
}

/// Adds the `eyes` reaction that tells the asker that the request was heard: on the comment that
/// asked, else on the pull request. Failing is no reason to stop.
pub fn acknowledge(client: &Client, row: &Trigger, rules: &PublishConfig) {
    if rules.dry_run {
        return;
    }
    let target = row.comment.map_or(Target::Pull(row.pr), Target::Comment);
    if let Err(error) = client.react_eyes(&row.repo, target) {
        log::warn!(repo = row.repo.as_str(), pr = row.pr.get(); "no reaction was left: {error}");
    }
}
