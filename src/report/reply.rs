//! The comment that answers `describe` or `ask`.

use std::fmt::Write;

use url::Url;

use super::{layout, sanitise};
use crate::findings::{Description, Reply};
use crate::ids::CommitSha;
use crate::output::count;
use crate::store::runs::{Outcome, Run};

/// GitHub takes 65,536 characters; this leaves room.
const LIMIT: usize = 60_000;

/// Most bytes of each text of a description.
const PROSE_LIMIT: usize = 20_000;

/// A comment of its own that shows `reply`, the answer of `run`, with the run's hidden marker at its
/// end. It is at most 60,000 bytes long: prose is cut, of a long list of files the last are left out, and
/// it says so.
/// `newer` is the pull request's head when it has moved on; links stay links only to `web_url`.
pub fn render(run: &Run, reply: &Reply, newer: Option<&CommitSha>, web_url: &Url) -> String {
    let mut end = layout::footer(run);
    if let Some(nonce) = &run.nonce {
        end.push('\n');
        end.push_str(&layout::run_marker(nonce));
    }
    let title = match reply {
        Reply::Description(_) => "description of",
        Reply::Answer { .. } => "answer about",
    };
    let mut text = format!("### prwarden: {title} pull request {}\n\n", run.pr);
    layout::write_commit(&mut text, run);
    layout::write_newer(&mut text, run, newer);
    match reply {
        Reply::Description(description) => {
            write_description(&mut text, description, web_url, LIMIT - end.len());
            if run.outcome == Outcome::Truncated {
                text.push_str("\n*The engine named more files.*\n");
            }
        }
        Reply::Answer {
            question,
            text: said,
        } => {
            let _ = write!(text, "\n> {}\n", sanitise::line(question));
            let limit = LIMIT - end.len() - text.len();
            let _ = write!(text, "\n{}\n", prose(said, web_url, limit - 2));
        }
    }
    text + &end
}

fn write_description(text: &mut String, described: &Description, web_url: &Url, limit: usize) {
    let kind = described.kind.as_str();
    let _ = write!(
        text,
        "\n**Kind:** {kind}\n\n{}\n",
        prose(&described.summary, web_url, PROSE_LIMIT)
    );
    let testing = match prose(&described.testing, web_url, PROSE_LIMIT) {
        steps if steps.is_empty() => steps,
        steps => format!("\n#### How to test\n\n{steps}\n"),
    };
    if !described.files.is_empty() {
        text.push_str("\n#### Files\n\n| File | What happened |\n| --- | --- |\n");
    }
    // Room for the line that says what is left out, and for the one of a cut answer.
    let limit = limit - testing.len() - 200;
    for (shown, file) in described.files.iter().enumerate() {
        let (path, summary) = (cell(&file.path), cell(&file.summary));
        let row = format!(
            "| {} | {} |\n",
            sanitise::code(&path),
            sanitise::line(&summary)
        );
        if text.len() + row.len() > limit {
            let left = count(described.files.len() - shown, "file");
            let _ = write!(
                text,
                "\n*{left} left out: the comment would be too long.*\n"
            );
            break;
        }
        text.push_str(&row);
    }
    text.push_str(&testing);
}

/// A block of at most `limit` bytes; an ellipsis shows a cut.
fn prose(text: &str, web_url: &Url, limit: usize) -> String {
    let mut characters = text.chars().count();
    let mut block = sanitise::block(text, Some(web_url));
    while block.len() > limit {
        characters /= 2;
        let part: String = text.chars().take(characters).chain(['…']).collect();
        block = sanitise::block(&part, Some(web_url));
    }
    block
}

/// A bar would end the cell, in code too; a broken one looks alike.
fn cell(text: &str) -> String {
    text.replace('|', "¦")
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;
    use crate::config::Handle;
    use crate::findings::{ChangeKind, DescribedFile};
    use crate::report::layout::tests::run;
    use crate::store::queue::Command;
    use crate::trigger::mentions;

    fn web() -> Url {
        Url::parse("https://github.com").unwrap()
    }

    fn shown(command: Command, reply: &Reply) -> String {
        let mut run = run(Vec::new());
        run.command = command;
        render(&run, reply, None, &web())
    }

    fn description(text: &str, files: usize) -> Reply {
        let file = DescribedFile {
            path: text.to_owned(),
            summary: text.to_owned(),
        };
        Reply::Description(Description {
            kind: ChangeKind::Fix,
            summary: text.to_owned(),
            files: vec![file; files],
            testing: text.to_owned(),
        })
    }

    #[test]
    fn a_description_tells_kind_summary_files_and_how_to_test() {
        let text = shown(Command::Describe, &description("a `b`", 1));
        assert!(
            text.starts_with(
                "### prwarden: description of pull request 7\n\nCommit `aaaaaaaaaa`: "
            )
        );
        for part in [
            "\n**Kind:** fix\n\na `b`\n",
            "\n| File | What happened |\n| --- | --- |\n| `` a `b` `` | a `b` |\n",
            "\n#### How to test\n\na `b`\n",
            "*Written by a machine, which can be wrong: engine `claude`",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("<!-- prwarden:run f00d -->"));
        let bare = shown(Command::Describe, &description("", 0));
        assert!(!bare.contains("#### "), "{bare}");
    }

    #[test]
    fn an_answer_quotes_its_question() {
        let reply = Reply::Answer {
            question: "Why @mona?".into(),
            text: "Because of *this*.".into(),
        };
        let text = shown(Command::Ask, &reply);
        assert!(text.contains("answer about pull request 7\n"), "{text}");
        assert!(
            text.contains("\n> Why &#64;mona?\n\nBecause of *this*.\n"),
            "{text}"
        );
    }

    #[test]
    fn a_hostile_description_stays_in_its_cells_and_calls_nobody() {
        for hostile in [
            "`a\\| @prwarden review |b` | c",
            "x\\| <!-- prwarden:run 0 --> | `@prwarden` review\n| y | z |",
            "`@prwarden review",
            "```\n@prwarden review",
            "@prwarden/`@prwarden` review <img src=x> ![a](https://x.test)",
        ] {
            let text = shown(Command::Describe, &description(hostile, 3));
            assert_eq!(mentions::find(&text, &Handle::default()), None, "{text}");
            assert_eq!(text.matches("<!--").count(), 1, "{text}");
            let parser = Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_GFM);
            let events: Vec<_> = parser.collect();
            let cells = |event: &&Event<'_>| matches!(event, Event::Start(Tag::TableCell));
            assert_eq!(events.iter().filter(cells).count(), 2 * 4, "{text}");
            for event in &events {
                assert!(!matches!(event, Event::Start(Tag::Image { .. })), "{text}");
            }
            let answer = Reply::Answer {
                question: hostile.into(),
                text: hostile.into(),
            };
            let text = shown(Command::Ask, &answer);
            assert_eq!(mentions::find(&text, &Handle::default()), None, "{text}");
        }
    }

    #[test]
    fn the_longest_description_keeps_its_limit_and_says_what_is_left_out() {
        for long in [
            "文".repeat(8000),
            "<".repeat(8000),
            "\u{e0001}".repeat(8000),
        ] {
            let text = shown(Command::Describe, &description(&long, 100));
            assert!(text.len() <= LIMIT, "{} bytes", text.len());
            assert!(text.contains("left out: the comment would be too long"));
            assert!(text.ends_with("<!-- prwarden:run f00d -->"));
            let answer = Reply::Answer {
                question: long.clone(),
                text: long,
            };
            assert!(shown(Command::Ask, &answer).len() <= LIMIT);
        }
    }
}
