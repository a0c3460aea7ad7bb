//! From an item of a response to a decision that is kept, and a trigger when it was accepted.

use super::open_pulls::OpenPulls;
use crate::clock::Timestamp;
use crate::config::TriggerConfig;
use crate::github::{Account, IssueComment, Pull, ReviewComment};
use crate::ids::{CommentRef, CommentSource, DedupeKey, PrNumber, RepoName};
use crate::publish;
use crate::store::queue::{self, Kind, NewTrigger};
use crate::store::{StoreError, Txn, comments, decisions, pulls, sticky};
use crate::trigger::{self, CommentFacts, PullFacts, SeenBefore, Skip, Verdict};

/// A comment of either sequence, as far as a decision needs it.
#[derive(Debug)]
pub(super) struct Comment {
    pub(super) reference: CommentRef,
    pub(super) pr: PrNumber,
    /// The conversation belongs to an issue, not to a pull request.
    pub(super) on_issue: bool,
    pub(super) author: Option<trigger::Account>,
    pub(super) body: String,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

impl Comment {
    /// Of a conversation; `None` when it names no number.
    pub(super) fn of_issue(comment: IssueComment) -> Option<Self> {
        Some(Self {
            reference: CommentRef {
                source: CommentSource::Issue,
                id: comment.id,
            },
            pr: comment.pull()?,
            on_issue: comment.html_url.as_deref().is_some_and(is_of_issue),
            author: comment.user.as_ref().map(account),
            body: comment.body.unwrap_or_default(),
            created_at: comment.created_at,
            updated_at: comment.updated_at,
        })
    }

    /// Of a diff; `None` when it names no number.
    pub(super) fn of_review(comment: ReviewComment) -> Option<Self> {
        Some(Self {
            reference: CommentRef {
                source: CommentSource::Review,
                id: comment.id,
            },
            pr: number_in(&comment.pull_request_url)?,
            on_issue: false,
            author: comment.user.as_ref().map(account),
            body: comment.body.unwrap_or_default(),
            created_at: comment.created_at,
            updated_at: comment.updated_at,
        })
    }
}

/// Whether a web address is `.../issues/N#issuecomment-ID` and not `.../pull/N#...`, whatever the
/// repository is called.
fn is_of_issue(url: &str) -> bool {
    url.rsplit('/').nth(1) == Some("issues")
}

/// The number at the end of an API address such as `.../issues/12`.
fn number_in(url: &str) -> Option<PrNumber> {
    url.rsplit('/').next()?.parse().ok()
}

/// Keeps the decision for `explain` and says it at debug.
fn note(
    txn: &Txn<'_>,
    repo: &RepoName,
    item: &str,
    pr: PrNumber,
    verdict: &Verdict,
    now: Timestamp,
) -> Result<(), StoreError> {
    let reason = verdict.reason();
    log::debug!(repo = repo.as_str(), pr = pr.get(), reason = reason; "{item}: {reason}");
    let merely_old = *verdict == Verdict::Skipped(Skip::NotFresh);
    decisions::record(txn, repo, item, pr, reason, merely_old, now)
}

fn account(account: &Account) -> trigger::Account {
    trigger::Account {
        id: account.id,
        bot: account.is_bot(),
    }
}

/// Decides on one pull request and notes what was seen of it; true when a trigger was queued.
pub(super) fn pull(
    txn: &Txn<'_>,
    repo: &RepoName,
    pull: &Pull,
    rules: &TriggerConfig,
    horizon: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let seen = pulls::get(txn, repo, pull.number)?;
    let labels = pull.label_names();
    let facts = PullFacts {
        created_at: pull.created_at,
        author: pull.user.as_ref().map(account),
        draft: pull.draft,
        head: &pull.head.sha,
        title: &pull.title,
        base_ref: &pull.base.name,
        head_ref: &pull.head.name,
        labels: &labels,
        seen: seen.as_ref().map(|seen| SeenBefore {
            draft: seen.draft,
            head: seen.head.as_ref(),
        }),
    };
    let verdict = trigger::classify_pull(facts, horizon, rules);
    note(
        txn,
        repo,
        &format!("pull:{}", pull.number),
        pull.number,
        &verdict,
        now,
    )?;
    let head = &pull.head.sha;
    let known = seen.as_ref().and_then(|seen| seen.head.as_ref());
    let moved = known.is_some_and(|known| known != head);
    let same_draft = seen.as_ref().is_some_and(|seen| seen.draft == pull.draft);
    if !same_draft || known != Some(head) {
        pulls::put(txn, repo, pull.number, pull.draft, &pull.head.sha, now)?;
    }
    let Verdict::Accepted { actor, command, .. } = verdict else {
        return Ok(false);
    };
    let new = NewTrigger {
        key: DedupeKey::automatic(repo, pull.number, &pull.head.sha),
        kind: Kind::PrOpened,
        repo: repo.clone(),
        pr: pull.number,
        head: Some(pull.head.sha.clone()),
        actor,
        comment: None,
        command,
    };
    if queue::enqueue(txn, &new, now)? {
        return Ok(true);
    }
    // A branch that was set back to an earlier head: its row may have given way to a later one.
    Ok(moved && queue::reopen(txn, &new, now)?)
}

/// Decides on one comment; true when a trigger was queued.
pub(super) fn comment(
    txn: &Txn<'_>,
    repo: &RepoName,
    comment: &Comment,
    open: &OpenPulls,
    rules: &TriggerConfig,
    horizon: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let is_open = if comment.on_issue {
        Some(false)
    } else {
        open.is_open(comment.pr, comment.created_at)
    };
    let facts = CommentFacts {
        created_at: comment.created_at,
        updated_at: comment.updated_at,
        author: comment.author,
        body: &comment.body,
        pr_open: is_open,
        labels: open.labels(comment.pr),
        ours: comments::contains(txn, repo, comment.reference.id)?,
    };
    if facts.ours && comment.reference.source == CommentSource::Issue {
        let pointer = sticky::get(txn, repo, comment.pr)?;
        if let Some(pointer) = pointer
            && publish::notice_ticks(
                txn,
                comment.reference.id,
                &pointer,
                &comment.body,
                (repo, comment.pr),
                now,
            )?
        {
            return Ok(true);
        }
    }
    let verdict = trigger::classify_comment(facts, horizon, rules);
    let CommentRef { source, id } = comment.reference;
    let item = format!("{}-comment:{id}", source.as_str());
    note(txn, repo, &item, comment.pr, &verdict, now)?;
    let Verdict::Accepted { actor, command, .. } = verdict else {
        return Ok(false);
    };
    let new = NewTrigger {
        key: DedupeKey::mention(repo, comment.pr, comment.reference),
        kind: Kind::Mention,
        repo: repo.clone(),
        pr: comment.pr,
        head: None,
        actor,
        comment: Some(comment.reference),
        command,
    };
    queue::enqueue(txn, &new, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_may_be_called_issues() {
        for (url, of_issue) in [
            (
                "https://github.com/acme/widgets/issues/1#issuecomment-5",
                true,
            ),
            (
                "https://github.com/acme/widgets/pull/1#issuecomment-5",
                false,
            ),
            (
                "https://github.com/acme/issues/issues/1#issuecomment-5",
                true,
            ),
            (
                "https://github.com/acme/issues/pull/1#issuecomment-5",
                false,
            ),
            (
                "https://ghe.example/issues/pull/pull/1#issuecomment-5",
                false,
            ),
            ("", false),
        ] {
            assert_eq!(is_of_issue(url), of_issue, "{url}");
        }
    }
}
