//! The comment: header, assessment, findings by severity, what was not looked at, and who wrote it.

use std::fmt::Write;

use url::Url;

use super::sticky::{self, State, Ticked, ViewOption};
use super::{LocalReport, notice, place, sanitise};
use crate::findings::{Assessment, Finding, OmitReason, Omitted, Severity, numbers};
use crate::ids::CommitSha;
use crate::output::count;
use crate::store::ledger::{Confidence, Mode};
use crate::store::queue::Command;
use crate::store::runs::{Outcome, Provenance, Run};

/// GitHub takes 65,536 characters; this leaves room.
const LIMIT: usize = 60_000;

/// Paths that were left out are named up to this number.
const NAMED_PATHS: usize = 30;

/// A longer address is not linked: the path alone could fill the comment.
const LONGEST_TARGET: usize = 2000;

/// The hidden marker by which a comment is known to show a certain run.
pub fn run_marker(nonce: &str) -> String {
    format!("<!-- prwarden:run {nonce} -->")
}

/// How a review is shown.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The review.
    pub run: &'a Run,
    /// The pull request's head, when it has moved on.
    pub newer: Option<&'a CommitSha>,
    /// Where links lead.
    pub web_url: &'a Url,
    /// The reviews before it, newest first.
    pub earlier: &'a [Vec<Finding>],
    /// A later run that has only a notice to show, which stands above the review.
    pub told: Option<&'a Run>,
}

/// A comment of its own that shows a review, with the run's hidden marker at its end.
///
/// It is at most 60,000 bytes long: the least severe sections go first, then prose is cut, and it
/// says so.
pub fn render(view: View<'_>) -> String {
    let run = view.run;
    let mut footer = footer(run);
    if let Some(nonce) = &run.nonce {
        footer.push('\n');
        footer.push_str(&run_marker(nonce));
    }
    parts(view, &run.findings, footer).within(LIMIT)
}

/// The pull request's one comment, showing a review as `ticked` asks: the marker in front, check-boxes
/// at the foot, the state at the very end. As long as [`render`]'s at most.
pub fn render_sticky(view: View<'_>, ticked: &Ticked) -> String {
    let run = view.run;
    let nits = run
        .findings
        .iter()
        .filter(|one| one.severity == Severity::Nit);
    let nits = nits.count();
    let gone = numbers::gone(&run.findings, view.earlier);
    let mut footer = String::new();
    if ticked.contains(&ViewOption::Gone) && !gone.is_empty() {
        write_gone(&mut footer, &gone);
    }
    footer.push_str(&self::footer(run));
    footer.push('\n');
    let mut offer = |option, label: &str| {
        sticky::write_box(&mut footer, option, ticked.contains(&option), label);
    };
    if nits > 0 {
        offer(ViewOption::Nits, &format!("show {}", count(nits, "nit")));
    }
    if !gone.is_empty() {
        let gone = count(gone.len(), "finding");
        offer(
            ViewOption::Gone,
            &format!("show {gone} of earlier rounds that are gone"),
        );
    }
    if !run.findings.is_empty() {
        offer(ViewOption::Brief, "titles only");
    }
    let numbered: Vec<Finding> = run
        .findings
        .iter()
        .enumerate()
        .map(|(place, finding)| Finding {
            number: Some(numbers::shown(finding, place)),
            body: match ticked.contains(&ViewOption::Brief) {
                true => String::new(),
                false => finding.body.clone(),
            },
            ..finding.clone()
        })
        .filter(|one| one.severity > Severity::Nit || ticked.contains(&ViewOption::Nits))
        .collect();
    let hidden = run.findings.len() - numbered.len();
    let mut parts = parts(view, &numbered, footer);
    parts.hidden = hidden;
    if let Some(told) = view.told {
        parts.header = format!("{}\n{}", notice::content(told), parts.header);
    }
    let state = state(view.told.unwrap_or(run), ticked.clone());
    let around = sticky::wrap("", &state).len();
    sticky::wrap(&parts.within(LIMIT - around), &state)
}

/// What the pull request's one comment says of itself when it shows `run` with `ticked`.
pub fn state(run: &Run, ticked: Ticked) -> State {
    let nonce = run.nonce.as_deref().unwrap_or_default();
    State::new(nonce, &run.head, round(run), run.recorded_at, ticked)
}

/// Which review of its pull request a run is, counted from 1; zero for one that is none.
pub fn round(run: &Run) -> u32 {
    match (&run.provenance, &run.notice) {
        (Some(made), _) => made.round,
        (None, Some(_)) => 0,
        (None, None) => 1,
    }
}

fn parts<'a>(view: View<'a>, findings: &'a [Finding], footer: String) -> Parts<'a> {
    Parts {
        header: header(view.run, view.newer),
        assessment: view.run.assessment.as_ref(),
        findings,
        hidden: 0,
        omitted: &view.run.omitted,
        footer,
        links: Some(Links {
            web_url: view.web_url,
            run: view.run,
        }),
    }
}

/// What earlier rounds found and this one does not, by number and title.
fn write_gone(text: &mut String, gone: &[(u32, &Finding)]) {
    text.push_str("\n#### Gone since earlier rounds\n\n");
    for (number, finding) in gone.iter().take(NAMED_PATHS) {
        let place = sanitise::code(&place(finding));
        let _ = writeln!(
            text,
            "- {number}. {} ({place})",
            sanitise::line(&finding.title)
        );
    }
    if gone.len() > NAMED_PATHS {
        let _ = writeln!(text, "- and {} more", gone.len() - NAMED_PATHS);
    }
}

/// The same layout for a local review.
pub fn render_local(report: &LocalReport<'_>) -> String {
    let change = report.change;
    let header = format!(
        "### prwarden: {} against {} ({}, {})\n",
        sanitise::code(change.head.short()),
        sanitise::code(change.base.short()),
        count(change.commits as usize, "commit"),
        count(change.files.len(), "file"),
    );
    let parts = Parts {
        header,
        assessment: report.assessment,
        findings: report.findings,
        hidden: 0,
        omitted: &change.omitted,
        footer: format!(
            "\n---\n*Written by a machine: {}.*\n",
            sanitise::code(report.engine)
        ),
        links: None,
    };
    parts.within(LIMIT)
}

fn header(run: &Run, newer: Option<&CommitSha>) -> String {
    let mut text = format!(
        "### prwarden: review of pull request {}, round {}\n\n",
        run.pr,
        round(run)
    );
    text.push_str(&tally(&run.findings));
    write_commit(&mut text, run);
    write_newer(&mut text, run, newer);
    if run.outcome == Outcome::Truncated {
        text.push_str(
            "\n> [!WARNING]\n> The engine's answer was cut short; something may be missing.\n",
        );
    }
    text
}

/// Which commit was looked at.
pub(super) fn write_commit(text: &mut String, run: &Run) {
    let _ = write!(text, "Commit {}", sanitise::code(run.head.short()));
    if let Some(made) = &run.provenance {
        let _ = write!(
            text,
            ": {}, {}, {} against {}",
            count(made.commits as usize, "commit"),
            count(made.files as usize, "file"),
            count(made.lines as usize, "line"),
            sanitise::code(made.base.short()),
        );
    }
    text.push_str(".\n");
}

/// That the pull request has moved on, if it has.
pub(super) fn write_newer(text: &mut String, run: &Run, newer: Option<&CommitSha>) {
    if let Some(newer) = newer {
        let _ = write!(
            text,
            "\n> [!NOTE]\n> The pull request is at {} now; this describes {}.\n",
            sanitise::code(newer.short()),
            sanitise::code(run.head.short()),
        );
    }
}

/// What was found, at a glance.
fn tally(findings: &[Finding]) -> String {
    let of = |severity: Severity| {
        let number = findings.iter().filter(|f| f.severity == severity).count();
        let word = match severity {
            Severity::Blocker => count(number, "blocker"),
            Severity::Major => format!("{number} major"),
            Severity::Minor => format!("{number} minor"),
            Severity::Nit => count(number, "nit"),
        };
        (number > 0).then_some(word)
    };
    let found: Vec<String> = Severity::ALL.into_iter().filter_map(of).collect();
    if found.is_empty() {
        return String::new();
    }
    format!("**{}**\n\n", found.join(" · "))
}

/// Who wrote it.
pub(super) fn footer(run: &Run) -> String {
    let mut text = String::from("\n---\n*Written by a machine, which can be wrong");
    if let Some(made) = &run.provenance {
        text.push_str(": ");
        text.push_str(&provenance(made, run.command));
    }
    text.push_str(".*\n");
    text
}

fn provenance(made: &Provenance, command: Command) -> String {
    let mut text = format!("engine {}", sanitise::code(&made.engine));
    if let Some(model) = &made.model {
        let _ = write!(text, ", model {}", sanitise::code(model));
    }
    let known = match made.confidence {
        Confidence::Exact => "",
        Confidence::Estimated => " (estimated)",
        Confidence::Unavailable => " (not measured: the whole reservation counts)",
    };
    let _ = write!(text, ", {} tokens{known}", made.tokens);
    match made.mode {
        Mode::Focused | Mode::MentionOnly if command == Command::Review => {
            text.push_str(", asked for correctness and security only");
        }
        Mode::Exhausted => {
            text.push_str("; the model was not asked, because its budget is used up")
        }
        Mode::Full | Mode::Focused | Mode::MentionOnly => {}
    }
    if made.dropped > 0 {
        let _ = write!(
            text,
            ", {} about files that do not exist left out",
            count(made.dropped as usize, "remark")
        );
    }
    text
}

/// Where findings link to.
struct Links<'a> {
    web_url: &'a Url,
    run: &'a Run,
}

struct Parts<'a> {
    header: String,
    assessment: Option<&'a Assessment>,
    findings: &'a [Finding],
    /// Findings that are not to be shown.
    hidden: usize,
    omitted: &'a [Omitted],
    footer: String,
    links: Option<Links<'a>>,
}

/// How much of the findings is written.
#[derive(Debug, Clone)]
struct Extent {
    /// The severities that are shown.
    sections: Vec<Severity>,
    /// Most findings of one severity.
    findings: usize,
    /// Most characters of an explanation.
    explanation: usize,
}

impl Extent {
    /// The next smaller one; `None` when nothing is left to leave out.
    fn smaller(mut self) -> Option<Self> {
        if self.sections.len() > 1 {
            self.sections.pop();
        } else if self.explanation > 0 {
            self.explanation = self.explanation.min(8000) / 2;
        } else if self.findings > 1 {
            self.findings = self.findings.min(1000) / 2;
        } else {
            return None;
        }
        Some(self)
    }
}

impl Parts<'_> {
    /// The whole comment in at most `limit` bytes. Everything besides the findings is bounded to less
    /// than that, and so is one finding without its explanation.
    fn within(&self, limit: usize) -> String {
        let found = |severity: &Severity| self.of(*severity).next().is_some();
        let mut extent = Extent {
            sections: Severity::ALL.into_iter().filter(found).collect(),
            findings: usize::MAX,
            explanation: usize::MAX,
        };
        loop {
            let text = self.write(&extent);
            if text.len() <= limit {
                return text;
            }
            match extent.smaller() {
                Some(smaller) => extent = smaller,
                None => return text,
            }
        }
    }

    /// The findings of one severity, each with its number.
    fn of(&self, severity: Severity) -> impl Iterator<Item = (&Finding, u32)> {
        let numbered = self.findings.iter().zip(1_u32..);
        numbered
            .filter(move |(finding, _)| finding.severity == severity)
            .map(|(finding, place)| (finding, finding.number.unwrap_or(place)))
    }

    fn write(&self, extent: &Extent) -> String {
        let mut text = self.header.clone();
        self.write_assessment(&mut text);
        match (self.findings.is_empty(), self.hidden) {
            (false, _) => {}
            (true, 0) => text.push_str("\nNothing was found.\n"),
            (true, _) => text.push_str("\nNothing but nits was found.\n"),
        }
        for severity in &extent.sections {
            self.write_section(&mut text, *severity, extent);
        }
        for severity in Severity::ALL {
            let shown = if extent.sections.contains(&severity) {
                extent.findings
            } else {
                0
            };
            let left_out = self.of(severity).skip(shown).count();
            if left_out > 0 {
                let _ = write!(
                    text,
                    "\n*{} of severity {} left out: the comment would be too long.*\n",
                    count(left_out, "finding"),
                    severity.as_str()
                );
            }
        }
        if extent.explanation < usize::MAX {
            text.push_str("\n*Explanations are cut: the comment would be too long.*\n");
        }
        self.write_omitted(&mut text);
        text.push_str(&self.footer);
        text
    }

    fn write_assessment(&self, text: &mut String) {
        let Some(assessment) = self.assessment else {
            return;
        };
        let _ = write!(
            text,
            "\n**Assessment:** effort {} of 5. {} {}\n",
            assessment.effort,
            sentence(&assessment.risk),
            sentence(&assessment.recommendation),
        );
        if !assessment.priority_files.is_empty() {
            let files = assessment
                .priority_files
                .iter()
                .take(5)
                .map(|file| sanitise::code(file));
            let _ = write!(
                text,
                "\nRead first: {}.\n",
                files.collect::<Vec<_>>().join(", ")
            );
        }
    }

    fn write_section(&self, text: &mut String, severity: Severity, extent: &Extent) {
        let title = match severity {
            Severity::Blocker => "Blockers",
            Severity::Major => "Major",
            Severity::Minor => "Minor",
            Severity::Nit => "Nits",
        };
        let _ = write!(text, "\n#### {title} ({})\n", self.of(severity).count());
        for (finding, number) in self.of(severity).take(extent.findings) {
            let _ = write!(
                text,
                "\n**{number}. {}** ({})\n",
                sanitise::line(&finding.title),
                self.link(finding)
            );
            let mut body: String = finding.body.chars().take(extent.explanation).collect();
            if body.len() < finding.body.len() && !body.is_empty() {
                body.push('…');
            }
            let web_host = self.links.as_ref().map(|links| links.web_url);
            let body = sanitise::block(&body, web_host);
            if !body.is_empty() {
                let _ = write!(text, "\n{body}\n");
            }
        }
    }

    /// The place as a link to the line in the reviewed commit.
    fn link(&self, finding: &Finding) -> String {
        let shown = sanitise::code(&place(finding));
        let Some(links) = &self.links else {
            return shown;
        };
        let mut url = links.web_url.clone();
        let Ok(mut segments) = url.path_segments_mut() else {
            return shown;
        };
        segments.pop_if_empty();
        segments.extend([links.run.repo.owner(), links.run.repo.name(), "blob"]);
        segments.push(links.run.head.as_str());
        segments.extend(finding.path.split('/'));
        drop(segments);
        if let Some(line) = finding.line {
            url.set_fragment(Some(&format!("L{line}")));
        }
        let target = sanitise::target(&url);
        if target.len() > LONGEST_TARGET {
            return shown;
        }
        format!("[{shown}]({target})")
    }

    fn write_omitted(&self, text: &mut String) {
        if self.omitted.is_empty() {
            return;
        }
        let files = count(self.omitted.len(), "file");
        let _ = write!(
            text,
            "\n<details><summary>Not reviewed: {files}</summary>\n\n"
        );
        for omitted in self.omitted.iter().take(NAMED_PATHS) {
            let why = match omitted.reason {
                OmitReason::DefaultExclusion => "lock file, vendored, generated or minified",
                OmitReason::ExcludedPath => "budget.excluded_paths",
                OmitReason::Other => "left out",
            };
            let _ = writeln!(text, "- {} ({why})", sanitise::code(&omitted.path));
        }
        if self.omitted.len() > NAMED_PATHS {
            let _ = writeln!(text, "- and {} more", self.omitted.len() - NAMED_PATHS);
        }
        text.push_str("\n</details>\n");
    }
}

/// One line with a full stop.
fn sentence(text: &str) -> String {
    let line = sanitise::line(text);
    if line.is_empty() || line.ends_with(['.', '!', '?']) {
        line
    } else {
        format!("{line}.")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{DedupeKey, Tokens};
    use crate::store::runs::Publication;

    pub(crate) fn run(findings: Vec<Finding>) -> Run {
        let sha = |digit: &str| digit.repeat(40).parse::<CommitSha>().unwrap();
        Run {
            key: DedupeKey::from_stored("k".into()),
            repo: "acme/widgets".parse().unwrap(),
            pr: "7".parse().unwrap(),
            head: sha("a"),
            outcome: Outcome::Completed,
            findings,
            omitted: vec![Omitted {
                path: "Cargo.lock".into(),
                reason: OmitReason::DefaultExclusion,
            }],
            assessment: Some(Assessment {
                effort: 2,
                risk: "Low".into(),
                recommendation: "Ask @mona".into(),
                priority_files: vec!["src/a.rs".into()],
            }),
            provenance: Some(Provenance {
                base: sha("b"),
                commits: 1,
                files: 2,
                lines: 30,
                round: 3,
                engine: "claude".into(),
                model: Some("m".into()),
                tokens: Tokens(12_345),
                confidence: Confidence::Exact,
                mode: Mode::Focused,
                dropped: 1,
            }),
            command: Command::Review,
            reply: None,
            notice: None,
            nonce: Some("f00d".into()),
            recorded_at: Timestamp::EPOCH,
            publication: Publication::default(),
        }
    }

    fn finding(severity: Severity, body: &str) -> Finding {
        Finding {
            path: "src/a (1).rs".into(),
            line: Some(3),
            severity,
            title: "Off by <one>".into(),
            body: body.into(),
            number: None,
            confidence: None,
            rule: None,
        }
    }

    fn post(run: &Run, newer: Option<&CommitSha>) -> String {
        let (web_url, earlier) = (&web(), &[][..]);
        render(View {
            run,
            newer,
            web_url,
            earlier,
            told: None,
        })
    }

    fn web() -> Url {
        Url::parse("https://github.com").unwrap()
    }

    #[test]
    fn a_comment_says_what_was_found_what_was_not_looked_at_and_who_wrote_it() {
        let text = post(&run(vec![finding(Severity::Major, "Use `n`.")]), None);
        let a = "a".repeat(40);
        let wanted = format!(
            "### prwarden: review of pull request 7, round 3\n\n**1 major**\n\n\
             Commit `aaaaaaaaaa`: 1 commit, 2 files, 30 lines against `bbbbbbbbbb`.\n\n\
             **Assessment:** effort 2 of 5. Low. Ask &#64;mona.\n\n\
             Read first: `src/a.rs`.\n\n\
             #### Major (1)\n\n\
             **1. Off by &lt;one&gt;** ([`src/a (1).rs:3`](https://github.com/acme/widgets/blob/{a}/src/a%20%281%29.rs#L3))\n\n\
             Use `n`.\n\n\
             <details><summary>Not reviewed: 1 file</summary>\n\n\
             - `Cargo.lock` (lock file, vendored, generated or minified)\n\n\
             </details>\n\n\
             ---\n\
             *Written by a machine, which can be wrong: engine `claude`, model `m`, 12,345 tokens, asked \
             for correctness and security only, 1 remark about files that do not exist left out.*\n\n\
             <!-- prwarden:run f00d -->"
        );
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_comment_on_an_outdated_commit_says_so() {
        let newer = "c".repeat(40).parse().unwrap();
        let text = post(&run(vec![]), Some(&newer));
        assert!(text.contains("is at `cccccccccc` now; this describes `aaaaaaaaaa`"));
        assert!(text.contains("Nothing was found."));
    }

    #[test]
    fn a_long_comment_loses_its_least_severe_sections_first_and_says_so() {
        let long = "word ".repeat(1500);
        let mut findings: Vec<_> = (0..5).map(|_| finding(Severity::Blocker, &long)).collect();
        findings.extend((0..5).map(|_| finding(Severity::Nit, &long)));
        let text = post(&run(findings), None);
        assert!(text.len() <= LIMIT);
        assert!(text.contains("#### Blockers (5)"));
        assert!(text.contains("5 findings of severity nit left out"));
        assert!(text.ends_with("<!-- prwarden:run f00d -->"));
    }

    #[test]
    fn findings_are_cut_when_their_titles_alone_are_too_long() {
        let findings = (0..5000).map(|_| finding(Severity::Major, "why")).collect();
        let text = post(&run(findings), None);
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert!(text.contains("#### Major (5000)") && text.contains("**100. Off"));
        assert!(text.contains("findings of severity major left out"));
    }

    #[test]
    fn hostile_names_neither_burst_a_comment_nor_call_anybody() {
        for name in [
            "\u{e0001}".repeat(1300),
            "\u{202e}#1&<".repeat(400),
            "@prwarden/`@prwarden` review".repeat(60),
            "文".repeat(1300),
        ] {
            let mut findings: Vec<_> = (0..3).map(|_| finding(Severity::Blocker, &name)).collect();
            for finding in &mut findings {
                finding.path.clone_from(&name);
                finding.title.clone_from(&name);
            }
            let mut run = run(findings);
            run.omitted = (0..100)
                .map(|_| Omitted {
                    path: name.clone(),
                    reason: OmitReason::Other,
                })
                .collect();
            if let Some(assessment) = &mut run.assessment {
                assessment.risk.clone_from(&name);
                assessment.recommendation.clone_from(&name);
                assessment.priority_files = vec![name.clone(); 9];
            }
            let text = post(&run, None);
            assert!(text.len() <= LIMIT, "{} bytes", text.len());
            assert!(text.contains("#### Blockers (3)\n\n**1. "));
            assert!(text.ends_with("<!-- prwarden:run f00d -->"));
            assert_eq!(text.matches("<!--").count(), 1);
            let handle = crate::config::Handle::default();
            assert_eq!(crate::trigger::mentions::find(&text, &handle), None);
        }
    }

    #[test]
    fn a_path_with_an_at_sign_is_linked_without_one() {
        let mut scoped = finding(Severity::Nit, "");
        scoped.path = "packages/@mona/x.js".into();
        let text = post(&run(vec![scoped]), None);
        assert!(text.contains("[`packages/@mona/x.js:3`](https://github.com/acme/widgets/blob/"));
        assert!(text.contains("/packages/%40mona/x.js#L3)"));
    }

    #[test]
    fn a_path_that_would_fill_the_comment_is_shown_and_not_linked() {
        let mut long = finding(Severity::Nit, "");
        long.path = "文/".repeat(1000);
        let text = post(&run(vec![long]), None);
        assert!(text.contains("(`文/文/") && text.len() < 3000, "{text}");
    }

    #[test]
    fn prose_is_cut_when_one_section_alone_is_too_long() {
        let findings = (0..60)
            .map(|_| finding(Severity::Blocker, &"ü<".repeat(4000)))
            .collect();
        let text = post(&run(findings), None);
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert!(text.contains("#### Blockers (60)"));
        assert!(text.contains("Explanations are cut"));
    }
}
