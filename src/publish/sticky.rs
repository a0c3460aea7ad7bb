//! One comment per pull request, rewritten by each review.
//!
//! Where it is, is asked of GitHub every time: the store's pointer is a hint, and a comment is ours only
//! by its marker and its author. Several of ours heal into the oldest.

use super::creation::{LONGEST_WAIT, LOOK_AGAIN, Lease};
use super::{Attempt, Published};
use crate::clock::Timestamp;
use crate::github::{ApiError, IssueComment, Pull};
use crate::ids::{CommentId, CommitSha, UserId, nonce};
use crate::report::layout::{self, View};
use crate::report::notice;
use crate::report::sticky::{self as markers, State, Ticked};
use crate::store::runs::PublishOutcome;
use crate::store::sticky::Pointer;
use crate::store::{StoreError, Txn, comments, queue, runs, sticky};

/// Why the comment is not written now.
enum Hindrance {
    Api(ApiError),
    Store(StoreError),
    /// GitHub refuses these bytes, or has no such conversation to write into.
    Final(String),
    /// As often as the configuration allows.
    UsedUp,
    /// Another worker owns the row.
    LeaseLost,
    /// Another worker or process is creating the comment.
    Contended,
}

impl Hindrance {
    /// What a refused write comes to.
    fn of_write(error: ApiError) -> Self {
        match error {
            ApiError::Status {
                status: 404 | 410 | 422,
                message,
                ..
            } => Self::Final(message),
            error => Self::Api(error),
        }
    }
}

impl From<ApiError> for Hindrance {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<StoreError> for Hindrance {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What came of writing the comment.
enum Written {
    /// It shows the run; true when an earlier attempt had written it.
    Shows(CommentId, bool),
    /// It shows a newer review.
    Superseded,
    DryRun,
    Refused,
}

impl Attempt<'_> {
    /// Publishes the run in the pull request's one comment.
    pub(super) fn publish_sticky(mut self) -> Result<Published, StoreError> {
        match self.write_sticky() {
            Ok(Written::Shows(comment, true)) => self.shown(comment, Published::Adopted),
            Ok(Written::Shows(comment, false)) => self.shown(comment, Published::Posted),
            Ok(Written::Superseded) => {
                self.record(PublishOutcome::Superseded, Published::Superseded)
            }
            Ok(Written::DryRun) => self.record(PublishOutcome::DryRun, Published::DryRun),
            Ok(Written::Refused) => self.record(PublishOutcome::Refused, Published::Refused),
            Err(Hindrance::Store(error)) => Err(error),
            Err(Hindrance::LeaseLost) => {
                log::warn!(key = self.row.key.as_str(); "the lease was lost before the post");
                Ok(Published::LeaseLost)
            }
            Err(Hindrance::Contended) => {
                let until = self.publisher.clock.now().plus(LONGEST_WAIT);
                self.store.write_patiently(|txn| {
                    queue::release_unattempted(txn, &self.row.key, self.owner, until)
                })?;
                Ok(Published::Later(until))
            }
            Err(Hindrance::Final(message)) => {
                self.give_up(&format!("GitHub refused it: {message}"))
            }
            Err(Hindrance::UsedUp) => self.give_up("its attempts are used up"),
            Err(Hindrance::Api(ApiError::Stopped)) => self.later(&ApiError::Stopped),
            Err(Hindrance::Api(error)) if self.is_last() => self.give_up(&format!(
                "its attempts are used up, and whether one of them succeeded can't be found out: \
                     {error}"
            )),
            Err(Hindrance::Api(error)) => self.later(&error),
        }
    }

    fn write_sticky(&mut self) -> Result<Written, Hindrance> {
        let pull = self.publisher.client.pull(&self.run.repo, self.run.pr)?;
        let me = self.account()?;
        let found = self.locate(me, &pull)?;
        if let Some(written) = self.decided(found.as_ref(), &pull) {
            return Ok(written);
        }
        // An attempt may have been made when the configuration asked for a comment of its own.
        if let (None, Some(began)) = (&found, self.run.publication.began_at)
            && let Some(comment) = self.find_own_comment(began)?
        {
            return Ok(Written::Shows(comment.id, true));
        }
        if self.is_last() {
            return Err(Hindrance::UsedUp);
        }
        match found {
            Some(comment) => self.rewrite(&comment, &pull),
            None => self.create(me, &pull),
        }
    }

    /// Our account's id; `None` for an app's token, which may not ask who it is.
    pub(super) fn account(&self) -> Result<Option<UserId>, ApiError> {
        match self.publisher.client.me() {
            Ok(me) => Ok(Some(me.id)),
            Err(ApiError::Status { status: 403, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The pull request's comment: the hint if it holds, else by a search, in which several heal into
    /// the oldest.
    fn locate(
        &mut self,
        me: Option<UserId>,
        pull: &Pull,
    ) -> Result<Option<IssueComment>, Hindrance> {
        let (repo, pr) = (&self.run.repo, self.run.pr);
        let hint = self.store.read(|txn| sticky::get(txn, repo, pr))?;
        if let Some(hint) = hint {
            match self.publisher.client.comment(repo, hint.comment) {
                Ok(comment) if self.is_ours(&comment, me)? && comment.pull() == Some(pr) => {
                    return Ok(Some(comment));
                }
                Ok(_)
                | Err(ApiError::Status {
                    status: 404 | 410, ..
                }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.search(me, pull)
    }

    fn search(
        &mut self,
        me: Option<UserId>,
        pull: &Pull,
    ) -> Result<Option<IssueComment>, Hindrance> {
        let all = self
            .publisher
            .client
            .comments(&self.run.repo, self.run.pr, None)?;
        let mut ours = Vec::new();
        for comment in all {
            if self.is_ours(&comment, me)? {
                ours.push(comment);
            }
        }
        ours.sort_by_key(|comment| (comment.created_at, comment.id));
        self.heal(ours, &pull.head.sha)
    }

    /// A comment is ours by its marker and its author's id. An app's token can't tell its own id; then
    /// the store has to know the comment, or the run that it shows.
    fn is_ours(&mut self, comment: &IssueComment, me: Option<UserId>) -> Result<bool, StoreError> {
        let body = comment.body.as_deref().unwrap_or_default();
        let Some(author) = &comment.user else {
            return Ok(false);
        };
        if !markers::is_marked(body) {
            return Ok(false);
        }
        if let Some(me) = me {
            return Ok(author.id == me);
        }
        if !author.is_bot() {
            return Ok(false);
        }
        let (repo, run) = (&self.run.repo, State::read(body).map(|state| state.run));
        self.store.read(|txn| {
            Ok(comments::contains(txn, repo, comment.id)?
                || match &run {
                    Some(run) => runs::has_nonce(txn, repo, self.run.pr, run)?,
                    None => false,
                })
        })
    }

    /// Of several comments of ours the oldest survives, with the text that wins; the others are deleted.
    fn heal(
        &self,
        ours: Vec<IssueComment>,
        head: &CommitSha,
    ) -> Result<Option<IssueComment>, Hindrance> {
        let mut ours = ours.into_iter();
        let Some(mut oldest) = ours.next() else {
            return Ok(None);
        };
        if self.publisher.rules.dry_run {
            return Ok(Some(oldest));
        }
        let (client, repo) = (self.publisher.client, &self.run.repo);
        for other in ours {
            let (shown, new) = (state_of(&oldest), state_of(&other));
            let wins = match (&shown, &new) {
                (Some(shown), Some(new)) => shown.gives_way_to(new, head),
                (shown, new) => shown.is_none() && new.is_some(),
            };
            if wins {
                let body = other.body.clone().unwrap_or_default();
                client.update_comment(repo, oldest.id, &body)?;
                oldest.body = Some(body);
            }
            log::info!(repo = repo.as_str(), pr = self.run.pr.get();
                "a second comment of ours ({}) is deleted; {} stays", other.id, oldest.id);
            client.delete_comment(repo, other.id)?;
        }
        Ok(Some(oldest))
    }

    /// What needs no writing: the comment shows this run already, or a newer one, or the run's commit
    /// is outdated and such reviews are not wanted.
    fn decided(&self, found: Option<&IssueComment>, pull: &Pull) -> Option<Written> {
        let head = &pull.head.sha;
        let own = self.state(Ticked::new());
        if let Some(comment) = found
            && let Some(state) = state_of(comment)
        {
            if state.run == own.run {
                return Some(Written::Shows(comment.id, true));
            }
            if !state.gives_way_to(&own, head) {
                return Some(Written::Superseded);
            }
        }
        let outdated = self.run.head != *head && !self.publisher.rules.post_superseded;
        outdated.then_some(Written::Superseded)
    }

    fn rewrite(&mut self, comment: &IssueComment, pull: &Pull) -> Result<Written, Hindrance> {
        let ticked = markers::ticked(comment.body.as_deref().unwrap_or_default());
        let body = self.sticky_body(&ticked, pull)?;
        if let Some(instead) = self.withheld(&body) {
            return Ok(instead);
        }
        if !self.note_attempt()? {
            return Err(Hindrance::LeaseLost);
        }
        let client = self.publisher.client;
        match client.update_comment(&self.run.repo, comment.id, &body) {
            Ok(()) => Ok(Written::Shows(comment.id, false)),
            // Deleted since it was read.
            Err(ApiError::Status {
                status: 404 | 410, ..
            }) => {
                let me = self.account()?;
                self.create(me, pull)
            }
            Err(error) => Err(Hindrance::of_write(error)),
        }
    }

    /// Creates the comment under the creation lease, inside of which it is looked for again.
    fn create(&mut self, me: Option<UserId>, pull: &Pull) -> Result<Written, Hindrance> {
        let body = self.sticky_body(&Ticked::new(), pull)?;
        if let Some(instead) = self.withheld(&body) {
            return Ok(instead);
        }
        let token = nonce().map_err(|error| ApiError::Setup(format!("no randomness: {error}")))?;
        let (run, publisher) = (self.run, self.publisher);
        let lease = Lease {
            repo: &run.repo,
            pr: run.pr,
            token: &token,
            clock: publisher.clock,
        };
        let mut waited = std::time::Duration::ZERO;
        while !lease.take(self.store)? {
            if waited >= LONGEST_WAIT {
                return Err(Hindrance::Contended);
            }
            if !lease.wait(publisher.stop) {
                return Err(ApiError::Stopped.into());
            }
            waited += LOOK_AGAIN;
        }
        let path = self.store.path().to_owned();
        let written = lease.while_held(&path, || self.create_leased(&lease, me, pull, &body));
        lease.release(self.store);
        written
    }

    fn create_leased(
        &mut self,
        lease: &Lease<'_>,
        me: Option<UserId>,
        pull: &Pull,
        body: &str,
    ) -> Result<Written, Hindrance> {
        if let Some(comment) = self.search(me, pull)? {
            return match self.decided(Some(&comment), pull) {
                Some(written) => Ok(written),
                None => self.rewrite(&comment, pull),
            };
        }
        if !lease.renew(self.store)? {
            return Err(Hindrance::Contended);
        }
        if !self.note_attempt()? {
            return Err(Hindrance::LeaseLost);
        }
        let (repo, pr) = (&self.run.repo, self.run.pr);
        let created = self.publisher.client.create_comment(repo, pr, body);
        let created = created.map_err(Hindrance::of_write)?;
        let now = self.publisher.clock.now();
        self.store
            .write_patiently(|txn| comments::add(txn, repo, created.id, now))?;
        // Another store's daemon may have created one at the same moment. Until that is known the row
        // stays open, and a later attempt finds what this one made.
        match self.search(me, pull)? {
            // What was created is not listed yet.
            None => Ok(Written::Shows(created.id, false)),
            Some(survivor) => match state_of(&survivor) {
                Some(state) if state.run == self.state(Ticked::new()).run => {
                    Ok(Written::Shows(survivor.id, false))
                }
                _ => Ok(Written::Superseded),
            },
        }
    }

    fn state(&self, ticked: Ticked) -> State {
        layout::state(self.run, ticked)
    }

    fn sticky_body(&mut self, ticked: &Ticked, pull: &Pull) -> Result<String, StoreError> {
        let run = self.run;
        let (repo, pr) = (&run.repo, run.pr);
        let told = run.notice.is_some().then_some(run);
        let below = match told {
            Some(_) => self.store.read(|txn| runs::newest_shown(txn, repo, pr))?,
            None => None,
        };
        if told.is_some() && below.is_none() {
            return Ok(notice::render_sticky(run, ticked));
        }
        let review = below.as_ref().unwrap_or(run);
        let earlier = self
            .store
            .read(|txn| runs::earlier_findings(txn, repo, pr, Some(&review.key)))?;
        let view = View {
            run: review,
            newer: (pull.head.sha != review.head).then_some(&pull.head.sha),
            web_url: self.publisher.web_url,
            earlier: &earlier,
            told,
        };
        Ok(layout::render_sticky(view, ticked))
    }

    fn withheld(&self, body: &str) -> Option<Written> {
        if self.leaks(body) {
            return Some(Written::Refused);
        }
        self.is_dry_run(body).then_some(Written::DryRun)
    }

    fn shown(
        &mut self,
        comment: CommentId,
        result: fn(CommentId) -> Published,
    ) -> Result<Published, StoreError> {
        let run = self.run;
        self.visible_and(comment, result, |txn| {
            let pointer = Pointer {
                comment,
                shown: run.key.clone(),
            };
            sticky::set(txn, &run.repo, run.pr, &pointer)
        })
    }

    /// Shows the stored run as the comment's boxes ask, without any engine. A comment that is gone is
    /// not made again, and one that shows a newer review stays.
    pub(super) fn render_again(mut self, pointer: &Pointer) -> Result<Published, StoreError> {
        match self.try_render(pointer) {
            Ok(()) => {
                self.store
                    .write_patiently(|txn| queue::complete(txn, &self.row.key, self.owner))?;
                Ok(Published::Already)
            }
            Err(Hindrance::Store(error)) => Err(error),
            Err(Hindrance::LeaseLost | Hindrance::Contended | Hindrance::UsedUp) => {
                Ok(Published::LeaseLost)
            }
            Err(Hindrance::Final(message)) => {
                log::error!(repo = self.run.repo.as_str(), pr = self.run.pr.get();
                    "the comment is not shown otherwise: GitHub refused it: {message}");
                self.store
                    .write_patiently(|txn| queue::abandon(txn, &self.row.key, self.owner))?;
                Ok(Published::GivenUp)
            }
            Err(Hindrance::Api(error)) => {
                log::warn!(repo = self.run.repo.as_str(), pr = self.run.pr.get();
                    "the comment is not shown otherwise yet: {error}");
                let last = self.row.attempts + 1 >= self.publisher.rules.max_publish_attempts;
                let until = self.next_attempt(&error, self.row.attempts + 1);
                self.store.write_patiently(|txn| match last {
                    true => queue::abandon(txn, &self.row.key, self.owner),
                    false => queue::release(txn, &self.row.key, self.owner, until),
                })?;
                Ok(Published::Later(until))
            }
        }
    }

    fn try_render(&mut self, pointer: &Pointer) -> Result<(), Hindrance> {
        let (client, repo) = (self.publisher.client, &self.run.repo);
        let comment = match client.comment(repo, pointer.comment) {
            Ok(comment) => comment,
            Err(ApiError::Status {
                status: 404 | 410, ..
            }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let me = self.account()?;
        if !self.is_ours(&comment, me)? {
            return Ok(());
        }
        let shown = comment.body.as_deref().unwrap_or_default();
        let ticked = markers::ticked(shown);
        let own = self.state(ticked.clone());
        let pull = client.pull(repo, self.run.pr)?;
        match State::read(shown) {
            Some(state) if state == own => return Ok(()),
            Some(state) if state.run != own.run && !state.gives_way_to(&own, &pull.head.sha) => {
                return Ok(());
            }
            _ => {}
        }
        let body = self.sticky_body(&ticked, &pull)?;
        if self.leaks(&body) || self.is_dry_run(&body) {
            return Ok(());
        }
        let until = self.lease_end();
        if !self
            .store
            .write_patiently(|txn| queue::renew(txn, &self.row.key, self.owner, until))?
        {
            return Err(Hindrance::LeaseLost);
        }
        client
            .update_comment(repo, comment.id, &body)
            .map_err(Hindrance::of_write)
    }
}

fn state_of(comment: &IssueComment) -> Option<State> {
    State::read(comment.body.as_deref()?)
}

/// Queues showing a pull request's review again when a poll brought its comment with other boxes ticked,
/// or with an older review than the store's. Tells whether it did.
///
/// # Errors
/// When the store can't be read or written.
pub fn notice_ticks(
    txn: &Txn<'_>,
    comment: CommentId,
    pointer: &Pointer,
    body: &str,
    place: (&crate::ids::RepoName, crate::ids::PrNumber),
    now: Timestamp,
) -> Result<bool, StoreError> {
    if comment != pointer.comment {
        return Ok(false);
    }
    let (repo, pr) = place;
    let Some(run) =
        runs::get(txn, &pointer.shown)?.filter(|run| run.publication.purged_at.is_none())
    else {
        return Ok(false);
    };
    let wanted = layout::state(&run, markers::ticked(body));
    if let Some(shown) = State::read(body)
        && (shown == wanted || (shown.run != wanted.run && shown.at > wanted.at))
    {
        return Ok(false);
    }
    queue::insert_render(txn, repo, pr, &pointer.shown, now)
}
