//! What GitHub says of the pull request right before money is spent.

use crate::context::Served;
use crate::findings::notice::Notice;
use crate::github::{ApiError, Pull};
use crate::ids::{CommitSha, RepoId};
use crate::store::queue::{Command, Trigger};
use crate::trigger::mentions;

/// The coarse gate refuses, before anything is fetched, what is this many times over the caps.
const COARSE: u64 = 10;

/// Most characters of a question; more are cut.
const LONGEST_QUESTION: usize = 2000;

/// Whether to go on.
#[derive(Debug)]
pub(super) enum Facts {
    /// The pull request is to be looked at.
    Open(Box<Open>),
    /// The commands that are on are to be told, of which commit.
    Help(CommitSha, Notice),
    /// It is closed or merged, or was never a pull request.
    Closed(String),
    /// The rules forbid it, or it is far too large; perhaps with what is told of which commit.
    Refused(String, Option<(CommitSha, Notice)>),
}

/// A pull request that is to be looked at.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) pull: Pull,
    /// Its repository.
    pub(super) repo: RepoId,
    /// What is asked, by `ask`.
    pub(super) question: Option<String>,
}

/// Asks GitHub and applies the rules that need its answer.
///
/// # Errors
/// When GitHub can't be asked.
pub(super) fn gather(
    served: &Served,
    row: &Trigger,
    known_id: Option<RepoId>,
) -> Result<Facts, ApiError> {
    let (client, rules) = (&served.client, &served.repo.rules);
    // The queue may be older than the configuration, or another tool's.
    if !rules.triggers.allowlist.contains(&row.actor) {
        return Ok(Facts::Refused(
            format!(
                "account {} is not on triggers.allowlist any more",
                row.actor
            ),
            None,
        ));
    }
    let pull = match client.pull(&row.repo, row.pr) {
        Ok(pull) => pull,
        Err(error @ ApiError::Status { status: 404, .. }) => {
            // That is also what a token is told that may not see the repository any more.
            client.repository(&row.repo)?;
            return match client.pull(&row.repo, row.pr) {
                Err(ApiError::Status { status: 404, .. }) => Ok(gone()),
                _ => Err(error),
            };
        }
        Err(ApiError::Status { status: 410, .. }) => return Ok(gone()),
        Err(error) => return Err(error),
    };
    let Some(id) = pull.base.repo.as_ref().map(|repo| repo.id) else {
        return Ok(Facts::Refused(
            "GitHub names no base repository".to_owned(),
            None,
        ));
    };
    if known_id.is_some_and(|known| known != id) {
        return Ok(Facts::Refused(
            format!(
                "{} is now another repository (id {id}) than the one reviewed before; if that is wanted, \
             start with a new store",
                row.repo
            ),
            None,
        ));
    }
    if pull.state != "open" {
        let how = if pull.merged { "merged" } else { "closed" };
        return Ok(Facts::Closed(format!("the pull request is {how}")));
    }
    if let Some(label) = forbidding_label(&pull, &rules.triggers.never) {
        return Ok(Facts::Refused(
            format!("label {label:?} is in triggers.never"),
            None,
        ));
    }
    let told = |notice| Some((pull.head.sha.clone(), notice));
    match row.command {
        Command::Help => {
            let (head, help) = (pull.head.sha.clone(), help(served));
            return Ok(Facts::Help(head, help));
        }
        Command::Fix | Command::Merge => {
            let command = row.command.as_str().to_owned();
            let text = format!("the command {command:?} is not switched on");
            return Ok(Facts::Refused(text, told(Notice::CommandOff { command })));
        }
        Command::Ask if !served.engine.spends() => {
            let text = "no model is configured that could answer a question".to_owned();
            return Ok(Facts::Refused(text, told(Notice::NoModel)));
        }
        Command::Review | Command::Describe | Command::Ask => {}
    }
    let lines = pull.additions.saturating_add(pull.deletions);
    let caps = &rules.caps;
    if pull.changed_files > COARSE * u64::from(caps.max_changed_files)
        || lines > COARSE * u64::from(caps.max_changed_lines)
    {
        let notice = Notice::TooLarge {
            files: pull.changed_files,
            lines,
            max_files: caps.max_changed_files,
            max_lines: caps.max_changed_lines,
        };
        let text = format!(
            "{} files and {lines} lines changed are far above budget.max_changed_files = {} and \
             budget.max_changed_lines = {}",
            pull.changed_files, caps.max_changed_files, caps.max_changed_lines
        );
        return Ok(Facts::Refused(text, told(notice)));
    }
    let question = match row.command {
        Command::Ask => match question(served, row)? {
            Asked::Question(text) => Some(text),
            Asked::Nothing => {
                let text = "the comment has no question".to_owned();
                return Ok(Facts::Refused(text, told(Notice::NoQuestion)));
            }
            Asked::Withdrawn => {
                let text = "the comment that asked is gone or asks nothing any more".to_owned();
                return Ok(Facts::Refused(text, None));
            }
        },
        _ => None,
    };
    Ok(Facts::Open(Box::new(Open {
        pull,
        repo: id,
        question,
    })))
}

/// What is on, for everybody who may ask.
fn help(served: &Served) -> Notice {
    let on = |command: &Command| match command {
        Command::Review | Command::Describe | Command::Help => true,
        Command::Ask => served.engine.spends(),
        Command::Fix | Command::Merge => false,
    };
    let commands = Command::ALL.into_iter().filter(on);
    Notice::Help {
        handle: served.repo.rules.triggers.handle.as_str().to_owned(),
        commands: commands
            .map(|command| command.as_str().to_owned())
            .collect(),
    }
}

/// What a comment asks.
enum Asked {
    Question(String),
    /// It asks, and nothing follows.
    Nothing,
    /// It was deleted, or edited so that it asks no more.
    Withdrawn,
}

/// Reads the question where it was asked: a text that is edited before it is answered counts as it
/// stands then.
fn question(served: &Served, row: &Trigger) -> Result<Asked, ApiError> {
    let Some(comment) = row.comment else {
        return Ok(Asked::Withdrawn);
    };
    let remark = match served.client.remark(&row.repo, comment) {
        Ok(remark) => remark,
        Err(ApiError::Status {
            status: 404 | 410, ..
        }) => return Ok(Asked::Withdrawn),
        Err(error) => return Err(error),
    };
    let by_actor = remark.user.is_some_and(|user| user.id == row.actor);
    let handle = &served.repo.rules.triggers.handle;
    let mention = remark.body.and_then(|body| mentions::find(&body, handle));
    Ok(match mention {
        Some(mention) if by_actor && mention.command == Command::Ask => {
            match mention.rest.is_empty() {
                true => Asked::Nothing,
                false => Asked::Question(mention.rest.chars().take(LONGEST_QUESTION).collect()),
            }
        }
        _ => Asked::Withdrawn,
    })
}

fn gone() -> Facts {
    Facts::Closed("GitHub knows no such pull request".to_owned())
}

fn forbidding_label<'a>(pull: &'a Pull, never: &[String]) -> Option<&'a str> {
    let mut names = pull.labels.iter().map(|label| label.name.as_str());
    names.find(|name| {
        never
            .iter()
            .any(|other| other.to_lowercase() == name.to_lowercase())
    })
}
