//! What GitHub says of the pull request right before money is spent.

use crate::config::RepoRules;
use crate::findings::notice::Notice;
use crate::github::{ApiError, Client, Pull};
use crate::ids::{CommitSha, RepoId};
use crate::store::queue::{Command, Trigger};

/// The coarse gate refuses, before anything is fetched, what is this many times over the caps.
const COARSE: u64 = 10;

/// Whether to go on.
#[derive(Debug)]
pub(super) enum Facts {
    /// The pull request is to be reviewed.
    Review(Box<Pull>, RepoId),
    /// It is closed or merged, or was never a pull request.
    Closed(String),
    /// The rules forbid it, or it is far too large; perhaps with what is told of which commit.
    Refused(String, Option<(CommitSha, Notice)>),
}

/// Asks GitHub and applies the rules that need its answer.
///
/// # Errors
/// When GitHub can't be asked.
pub(super) fn gather(
    client: &Client,
    row: &Trigger,
    rules: &RepoRules,
    known_id: Option<RepoId>,
) -> Result<Facts, ApiError> {
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
    if row.command != Command::Review {
        let command = row.command.as_str().to_owned();
        let text = format!("the command {command:?} is not switched on");
        return Ok(Facts::Refused(text, told(Notice::CommandOff { command })));
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
    Ok(Facts::Review(Box::new(pull), id))
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
