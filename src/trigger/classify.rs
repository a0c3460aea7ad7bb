//! Whether a pull request or a comment starts something.

use super::mentions;
use crate::clock::Timestamp;
use crate::config::{IgnoreRules, TriggerConfig};
use crate::ids::{CommitSha, UserId};
use crate::store::queue::Command;

/// An account, as far as a decision needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Its numeric id.
    pub id: UserId,
    /// It is a GitHub App or another bot.
    pub bot: bool,
}

/// What a response says of an open pull request, and what was seen of it before.
#[derive(Debug, Clone, Copy)]
pub struct PullFacts<'a> {
    /// When it was opened.
    pub created_at: Timestamp,
    /// Who opened it; `None` for an account that is gone.
    pub author: Option<Account>,
    /// It is a draft now.
    pub draft: bool,
    /// Its head now.
    pub head: &'a CommitSha,
    /// Its title.
    pub title: &'a str,
    /// The branch it targets.
    pub base_ref: &'a str,
    /// The branch it comes from.
    pub head_ref: &'a str,
    /// The names of its labels.
    pub labels: &'a [String],
    /// What was seen of it before.
    pub seen: Option<SeenBefore<'a>>,
}

/// What was last seen of a pull request.
#[derive(Debug, Clone, Copy)]
pub struct SeenBefore<'a> {
    /// It was a draft.
    pub draft: bool,
    /// Its head; `None` when that is not known.
    pub head: Option<&'a CommitSha>,
}

/// What a response says of a comment.
#[derive(Debug, Clone, Copy)]
pub struct CommentFacts<'a> {
    /// When it was written.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    /// Who wrote it; `None` for an account that is gone.
    pub author: Option<Account>,
    /// Its Markdown.
    pub body: &'a str,
    /// Whether its pull request is open; `None` when that is not known.
    pub pr_open: Option<bool>,
    /// The labels of its pull request, as far as they are known.
    pub labels: &'a [String],
    /// It is one of ours.
    pub ours: bool,
}

/// What made a pull request worth a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is new.
    Opened,
    /// It was a draft and is ready.
    Ready,
    /// Its head moved.
    Pushed,
    /// A person asked.
    Mentioned,
}

/// Why an item starts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// It is older than what is looked at, or was seen before.
    NotFresh,
    /// A bot opened the pull request.
    BotAuthor,
    /// It is a draft.
    Draft,
    /// `triggers.ignore` or `triggers.never` names it.
    Ignored,
    /// Its author is not on the allow-list.
    AuthorNotAllowlisted,
    /// The pull request is not open.
    PrNotOpen,
    /// A bot wrote the comment.
    BotCommenter,
    /// We wrote it.
    SelfComment,
    /// It does not call us.
    NoMention,
    /// Its author is not on the allow-list.
    CommenterNotAllowlisted,
}

impl Skip {
    /// The reason's name in the log and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFresh => "not_fresh",
            Self::BotAuthor => "bot_author",
            Self::Draft => "draft",
            Self::Ignored => "ignored",
            Self::AuthorNotAllowlisted => "author_not_allowlisted",
            Self::PrNotOpen => "pr_not_open",
            Self::BotCommenter => "bot_commenter",
            Self::SelfComment => "self_comment",
            Self::NoMention => "no_mention",
            Self::CommenterNotAllowlisted => "commenter_not_allowlisted",
        }
    }
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It starts something.
    Accepted {
        /// Who is charged.
        actor: UserId,
        /// What is asked for.
        command: Command,
        /// Why.
        cause: Cause,
    },
    /// It starts nothing.
    Skipped(Skip),
}

impl Verdict {
    /// The reason's name in the log and the store.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Skipped(skip) => skip.as_str(),
        }
    }
}

/// Decides on an open pull request. `horizon` is the moment before which an item is old.
pub fn classify_pull(facts: PullFacts<'_>, horizon: Timestamp, rules: &TriggerConfig) -> Verdict {
    let Some(cause) = cause(&facts, horizon, rules) else {
        return Verdict::Skipped(Skip::NotFresh);
    };
    let Some(author) = facts.author else {
        return Verdict::Skipped(Skip::AuthorNotAllowlisted);
    };
    let skip = if author.bot {
        Skip::BotAuthor
    } else if facts.draft {
        Skip::Draft
    } else if ignored(&facts, &rules.ignore) || has_label(facts.labels, &rules.never) {
        Skip::Ignored
    } else if !rules.allowlist.contains(&author.id) {
        Skip::AuthorNotAllowlisted
    } else {
        return Verdict::Accepted {
            actor: author.id,
            command: Command::Review,
            cause,
        };
    };
    Verdict::Skipped(skip)
}

/// What is new about the pull request. "Opened" happens once per number: a push to one that was seen
/// is a push, whatever its creation time.
fn cause(facts: &PullFacts<'_>, horizon: Timestamp, rules: &TriggerConfig) -> Option<Cause> {
    let Some(seen) = facts.seen else {
        return (facts.created_at >= horizon).then_some(Cause::Opened);
    };
    if seen.draft && !facts.draft && rules.on_ready {
        return Some(Cause::Ready);
    }
    let moved = seen.head.is_some_and(|head| head != facts.head);
    (moved && rules.on_push).then_some(Cause::Pushed)
}

/// Decides on a comment. `horizon` is the moment before which an item is old.
pub fn classify_comment(
    facts: CommentFacts<'_>,
    horizon: Timestamp,
    rules: &TriggerConfig,
) -> Verdict {
    let time = if rules.on_edit {
        facts.updated_at
    } else {
        facts.created_at
    };
    let mention = || mentions::find(facts.body, &rules.handle);
    let skip = if time < horizon {
        Skip::NotFresh
    } else if facts.pr_open == Some(false) {
        Skip::PrNotOpen
    } else if facts.author.is_some_and(|author| author.bot) {
        Skip::BotCommenter
    } else if facts.ours {
        Skip::SelfComment
    } else if let Some(mention) = mention() {
        match facts
            .author
            .filter(|author| rules.allowlist.contains(&author.id))
        {
            None => Skip::CommenterNotAllowlisted,
            Some(_) if has_label(facts.labels, &rules.never) => Skip::Ignored,
            Some(author) => {
                let (actor, command) = (author.id, mention.command);
                return Verdict::Accepted {
                    actor,
                    command,
                    cause: Cause::Mentioned,
                };
            }
        }
    } else {
        Skip::NoMention
    };
    Verdict::Skipped(skip)
}

fn ignored(facts: &PullFacts<'_>, rules: &IgnoreRules) -> bool {
    let title = facts.title.to_lowercase();
    has_label(facts.labels, &rules.labels)
        || rules.base.iter().any(|glob| glob.is_match(facts.base_ref))
        || rules.head.iter().any(|glob| glob.is_match(facts.head_ref))
        || rules
            .title
            .iter()
            .any(|text| title.contains(&text.to_lowercase()))
}

/// Label names are compared without regard to case, as GitHub does.
fn has_label(labels: &[String], wanted: &[String]) -> bool {
    let same = |a: &String, b: &String| a.to_lowercase() == b.to_lowercase();
    wanted
        .iter()
        .any(|name| labels.iter().any(|label| same(label, name)))
}

#[cfg(test)]
mod tests;
