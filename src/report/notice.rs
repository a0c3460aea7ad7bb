//! What is told when there is nothing to show: fixed text over numbers.

use super::sticky::{self, Ticked};
use super::{layout, sanitise};
use crate::findings::notice::{Failure, Notice};
use crate::ids::Tokens;
use crate::output::count;
use crate::store::queue::Command;
use crate::store::runs::Run;

const FOOTER: &str = "\n---\n*Written by a machine.*\n";

/// A comment of its own that tells the notice of a run, with the run's hidden marker at its end.
pub fn render(run: &Run) -> String {
    let mut text = content(run) + FOOTER;
    if let Some(nonce) = &run.nonce {
        text.push('\n');
        text.push_str(&layout::run_marker(nonce));
    }
    text
}

/// The pull request's one comment, which tells the notice of a run and shows no review.
pub fn render_sticky(run: &Run, ticked: &Ticked) -> String {
    let state = layout::state(run, ticked.clone());
    sticky::wrap(&(content(run) + FOOTER), &state)
}

/// The heading and what stands below it.
pub(super) fn content(run: &Run) -> String {
    if let Some(Notice::Help { handle, commands }) = &run.notice {
        return help(handle, commands);
    }
    let what = match run.command {
        Command::Review => format!("pull request {} was not reviewed", run.pr),
        other => format!("no `{}` for pull request {}", other.as_str(), run.pr),
    };
    let why = run.notice.as_ref().map(text).unwrap_or_default();
    let head = sanitise::code(run.head.short());
    format!("### prwarden: {what}\n\nCommit {head}: {why}\n")
}

/// The commands that are on, each with what it does.
fn help(handle: &str, commands: &[String]) -> String {
    let call = sanitise::code(&format!("@{handle}"));
    let mut text = format!(
        "### prwarden: what can be asked for\n\nWho is on the allow-list calls {call} in a comment, \
         with one of these words behind it:\n\n"
    );
    for command in commands.iter().filter_map(|word| Command::from_word(word)) {
        let what = match command {
            Command::Review => "reviews the change; also what any other word does",
            Command::Describe => "describes the change: what it does, its files, how to test it",
            Command::Ask => "answers the question that follows on the same line",
            Command::Fix => "fixes what was found",
            Command::Merge => "merges the pull request",
            Command::Help => "shows this list",
        };
        text.push_str(&format!("- `{}` {what}.\n", command.as_str()));
    }
    text
}

/// One paragraph of Markdown: what is the case, and which setting would change it.
fn text(notice: &Notice) -> String {
    match notice {
        Notice::TooLarge {
            files,
            lines,
            max_files,
            max_lines,
        } => format!(
            "The change is too large: {} and {}; at most {max_files} files \
             (`budget.max_changed_files`) and {max_lines} lines (`budget.max_changed_lines`) are \
             looked at. Smaller pull requests help, and paths can be left out with \
             `budget.excluded_paths`.",
            count(*files as usize, "file"),
            count(*lines as usize, "line"),
        ),
        Notice::TooManyBytes { limit } => format!(
            "The change is too large: its diff or its list of files takes more than {limit} bytes. \
             Generated files can be left out with `budget.excluded_paths`."
        ),
        Notice::OverEstimate {
            lines,
            estimate,
            reserved,
            ask,
        } => {
            let setting = match ask {
                true => "budget.max_ask_tokens",
                false => "budget.max_run_tokens",
            };
            format!(
                "The change of {} is estimated to need {} tokens; {} are reserved for it (`{setting}`).",
                count(*lines as usize, "line"),
                Tokens(*estimate),
                Tokens(*reserved),
            )
        }
        Notice::NothingToReview => {
            "There is nothing to look at: no file differs from the base branch, or all that do are \
             left out (`budget.excluded_paths`, `budget.default_exclusions`)."
                .to_owned()
        }
        Notice::NoCommonHistory => {
            "The branch shares no commit with the base branch, so there is no change to look at."
                .to_owned()
        }
        Notice::UnsafePath => {
            "The head holds a path that some systems take for git's own directory or that leaves \
             the tree. It is not written to disk; renaming the file helps."
                .to_owned()
        }
        Notice::CommandOff { command } => {
            format!("The command `{command}` is not switched on here.")
        }
        Notice::NoQuestion => {
            "The comment has no question: it stands on the same line as the word `ask`.".to_owned()
        }
        Notice::NoModel => "Questions are answered by a model, and the engine that is configured \
                            asks none (`engine.kind`)."
            .to_owned(),
        Notice::Help { handle, commands } => help(handle, commands),
        Notice::Failed { attempts, failure } => {
            let times = match attempts {
                1 => "once".to_owned(),
                times => format!("{times} times (`worker.max_attempts`)"),
            };
            format!(
                "It was tried {times} and failed: {}. The operator finds more in the log.",
                failed(*failure)
            )
        }
    }
}

fn failed(failure: Failure) -> &'static str {
    match failure {
        Failure::Checkout => "the change could not be fetched",
        Failure::EngineUnavailable => "the review engine could not be started (`prwarden doctor`)",
        Failure::EngineTimeout => {
            "the review engine did not finish in time (`engine.timeout_seconds`)"
        }
        Failure::EngineCrashed => "the review engine ended without an answer",
        Failure::EngineAnswer => "the review engine's answer could not be used",
        Failure::EngineService => "the model's service did not answer",
        Failure::PromptTooLong => {
            "the change is larger than the model takes (`budget.max_changed_lines`)"
        }
        Failure::EngineLimit => "the review engine reached a limit of its own",
        Failure::EngineRefused => "the model or its service declined",
        Failure::Interrupted => "prwarden was ended in the middle of it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Handle, keys};
    use crate::trigger::mentions;

    fn all() -> Vec<Notice> {
        let failures = [
            Failure::Checkout,
            Failure::EngineUnavailable,
            Failure::EngineTimeout,
            Failure::EngineCrashed,
            Failure::EngineAnswer,
            Failure::EngineService,
            Failure::PromptTooLong,
            Failure::EngineLimit,
            Failure::EngineRefused,
            Failure::Interrupted,
        ];
        let failed = failures.map(|failure| Notice::Failed {
            attempts: 3,
            failure,
        });
        let estimate = |ask| Notice::OverEstimate {
            lines: 1,
            estimate: 40_000,
            reserved: 30_000,
            ask,
        };
        let others = [
            Notice::TooLarge {
                files: 1,
                lines: 40_000,
                max_files: 100,
                max_lines: 3000,
            },
            Notice::TooManyBytes { limit: 9 },
            estimate(false),
            estimate(true),
            Notice::NothingToReview,
            Notice::NoCommonHistory,
            Notice::UnsafePath,
            Notice::CommandOff {
                command: "merge".into(),
            },
            Notice::NoQuestion,
            Notice::NoModel,
        ];
        others.into_iter().chain(failed).collect()
    }

    #[test]
    fn every_setting_that_a_notice_names_exists() {
        let exists = |name: &str| {
            let (section, key) = name.split_once('.').unwrap();
            let section = keys::SECTIONS.iter().find(|one| one.name == section);
            section.is_some_and(|section| section.keys.iter().any(|one| one.name == key))
        };
        let mut named = 0;
        for notice in all() {
            let text = text(&notice);
            for name in text
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|name| name.contains('.'))
            {
                assert!(exists(name), "{name}: {text}");
                named += 1;
            }
        }
        assert!(named > 5);
    }

    #[test]
    fn help_calls_nobody_and_tells_each_command_that_is_on_by_its_word() {
        let commands = ["review", "ask", "help", "dance"]
            .map(str::to_owned)
            .to_vec();
        let text = help("claude-bot", &commands);
        let handle = "claude-bot".parse::<Handle>().unwrap();
        assert_eq!(mentions::find(&text, &handle), None);
        assert_eq!(text.matches("\n- `").count(), 3, "{text}");
        assert!(
            text.contains("`@claude-bot`") && text.contains("- `ask` answers"),
            "{text}"
        );
    }

    #[test]
    fn a_notice_calls_nobody_is_one_paragraph_and_is_read_as_it_was_written() {
        for notice in all() {
            let text = text(&notice);
            assert_eq!(mentions::find(&text, &Handle::default()), None);
            assert!(
                !text.contains('\n') && !text.contains("  ") && text.ends_with('.'),
                "{text}"
            );
            let json = serde_json::to_string(&notice).unwrap();
            assert_eq!(serde_json::from_str::<Notice>(&json).unwrap(), notice);
        }
    }
}
