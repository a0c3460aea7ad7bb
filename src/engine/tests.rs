//! Engines that are shell scripts, run without a supervisor; `tests/process.rs` has the supervisor.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tempfile::TempDir;

use super::answer::Finding;
use super::*;
use crate::config::ReviewConfig;
use crate::ids::{CommitSha, PrNumber, RepoName, Tokens};
use crate::workspace::{AddedLine, Change, FileChange, FileStatus, RepoPath, Standard};

const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

/// Everything that a request borrows.
pub(super) struct Subject {
    pub(super) title: String,
    pub(super) change: Change,
    pub(super) earlier: Vec<Finding>,
    pub(super) standards: Vec<Standard>,
    pub(super) review: ReviewConfig,
    repo: RepoName,
    tree: TempDir,
    scratch: TempDir,
}

impl Subject {
    pub(super) fn new() -> Self {
        let head: CommitSha = HEAD.parse().unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("src")).unwrap();
        fs::write(tree.path().join("src/other.rs"), "fn other() {}\n").unwrap();
        Self {
            title: "Skip the last item".into(),
            change: Change {
                base: head.clone(),
                head,
                commits: 1,
                files: vec![FileChange {
                    path: RepoPath(b"src/a.rs".to_vec()),
                    old_path: None,
                    status: FileStatus::Modified,
                    old_mode: 0o100_644,
                    new_mode: 0o100_644,
                    binary: false,
                    size: Some(10),
                    added: vec![AddedLine {
                        number: 3,
                        text: b"    for i in 0..len - 1 {".to_vec(),
                    }],
                    deleted: 1,
                    symlink_target: None,
                }],
                patch: b"+    for i in 0..len - 1 {\n".to_vec(),
                lines: 2,
                omitted: Vec::new(),
            },
            earlier: Vec::new(),
            standards: Vec::new(),
            review: ReviewConfig::default(),
            repo: "acme/widgets".parse().unwrap(),
            tree,
            scratch: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn request(&self) -> EngineRequest<'_> {
        EngineRequest {
            task: Task::Review,
            repo: Some(&self.repo),
            pr: PrNumber::try_from(12).ok(),
            title: &self.title,
            author: "octocat",
            base_ref: "main",
            change: &self.change,
            tree: self.tree.path(),
            earlier: &self.earlier,
            standards: &self.standards,
            review: &self.review,
            nonce: "n0nce",
            scratch: self.scratch.path(),
        }
    }
}

pub(super) fn config(kind: EngineKind) -> EngineConfig {
    EngineConfig {
        kind,
        binary: None,
        command: Vec::new(),
        args: Vec::new(),
        model: None,
        expected_version: None,
        timeout: Duration::from_secs(60),
        env: Vec::new(),
        standards_paths: Vec::new(),
    }
}

fn engine(config: &EngineConfig) -> Engine {
    let mut engine = Engine::new(config, Path::new("unused"));
    engine.supervisor = None;
    engine.grace = Duration::from_millis(200);
    engine.lookup = Box::new(|name| match name {
        "PATH" => Some("/usr/bin:/bin".into()),
        "GITHUB_TOKEN" => Some("ghs_very_secret".into()),
        "ENGINE_KEY" => Some("key-0123456789".into()),
        _ => None,
    });
    engine
}

/// A `command` engine that is a shell script.
fn command(script: &str) -> EngineConfig {
    let mut config = config(EngineKind::Command);
    config.command = vec!["sh".into(), "-c".into(), script.into()];
    config
}

fn terms(mode: Mode) -> Terms {
    Terms {
        mode,
        money: MicroUsd::ZERO,
    }
}

fn review_with(config: &EngineConfig, subject: &Subject) -> EngineRun {
    engine(config).answer(terms(Mode::Full), &subject.request(), &Stop::new())
}

fn review(script: &str) -> EngineRun {
    review_with(&command(script), &Subject::new())
}

/// What a run was taken for.
fn verdict(run: &EngineRun) -> String {
    match &run.outcome {
        Ok(_) => "answer".into(),
        Err(EngineFailure::Error { kind, .. }) => format!("{kind:?}"),
        Err(failure) => failure.stop_reason().as_str().into(),
    }
}

fn findings(run: &EngineRun) -> Vec<Finding> {
    match &run.outcome {
        Ok(Answer::Review(review)) => review.findings.clone(),
        other => panic!("{other:?}"),
    }
}

fn message(run: &EngineRun) -> String {
    run.outcome.as_ref().unwrap_err().to_string()
}

/// An answer with one finding; `more` are further fields.
fn answer(path: &str, more: &str) -> String {
    format!(
        r#"{{"head":"{HEAD}","nonce":"n0nce","findings":[{{"path":"{path}","line":3,
        "severity":"major","title":"Off by one","body":"The last item is skipped."}}],
        "assessment":{{"effort":1,"risk":"r","recommendation":"x","priority_files":[]}}{more}}}"#
    )
}

#[test]
fn a_program_that_answers_is_a_review() {
    let usage = r#","usage":{"input_tokens":100,"output_tokens":20,"cache_read_tokens":3,
        "cache_write_tokens":4,"cost_usd":0.5},"model":"m1""#;
    let run = review(&format!(
        "cat >/dev/null; echo '{}'",
        answer("src/a.rs", usage)
    ));
    let found = findings(&run);
    assert_eq!(found[0].path, "src/a.rs");
    assert_eq!(run.usage.tokens, Some(Tokens(127)));
    assert_eq!(run.usage.cost_microusd, Some(500_000));
    assert_eq!(
        (run.engine.as_str(), run.model.as_deref()),
        ("sh", Some("m1"))
    );
}

#[test]
fn a_usage_without_counts_is_no_measurement() {
    for usage in [r#","usage":{}"#, r#","usage":{"cost_usd":0.5}"#] {
        let text = answer("src/a.rs", usage);
        let run = review(&format!("cat >/dev/null; echo '{text}'"));
        assert!(run.outcome.is_ok());
        assert_eq!(run.usage.tokens, None, "{usage}");
    }
}

#[test]
fn without_reported_usage_nothing_is_claimed_about_it() {
    let run = review(&format!("echo '{}'", answer("src/a.rs", "")));
    assert_eq!(verdict(&run), "answer");
    assert_eq!(run.usage, Usage::UNKNOWN);
}

#[test]
fn the_program_reads_the_whole_request_and_runs_in_the_checkout() {
    let subject = Subject::new();
    let script = r#"cat > "$TMPDIR/input"; pwd > "$TMPDIR/place"; env > "$TMPDIR/env"; exit 9"#;
    let mut config = command(script);
    config.env = vec!["GITHUB_TOKEN".into(), "ENGINE_KEY".into()];
    assert_eq!(verdict(&review_with(&config, &subject)), "Crashed");
    let file = |name: &str| fs::read_to_string(subject.scratch.path().join(name)).unwrap();
    let input: Value = serde_json::from_str(&file("input")).unwrap();
    for (field, wanted) in [
        ("version", "1"),
        ("repo", r#""acme/widgets""#),
        ("pr", "12"),
        ("head", &format!("{HEAD:?}")),
        ("nonce", r#""n0nce""#),
        ("mode", r#""full""#),
    ] {
        assert_eq!(input[field].to_string(), wanted, "{field}");
    }
    assert_eq!(input["files"][0]["path"], "src/a.rs");
    assert!(input["diff"].as_str().unwrap().contains("0..len - 1"));
    assert!(input["prompt"].as_str().unwrap().contains("n0nce"));
    assert_eq!(input["schema"], answer::schema(Task::Review));
    assert_eq!(Path::new(file("place").trim()), subject.tree.path());
    let environment = file("env");
    assert!(environment.contains("ENGINE_KEY=key-0123456789"));
    assert!(!environment.contains("GITHUB_TOKEN") && !environment.contains("ghs_"));
}

#[test]
fn an_empty_or_foreign_answer_is_never_an_empty_review() {
    for (script, wanted) in [
        ("exit 0", "Crashed"),
        ("echo", "Crashed"),
        ("echo 'All good, no findings!'", "Crashed"),
        ("echo '[]'", "Crashed"),
        ("echo '{}'", "Answer"),
        ("head -c 100000 /dev/urandom", "Crashed"),
        ("kill -SEGV $$", "Crashed"),
        ("kill -KILL $$", "Crashed"),
    ] {
        assert_eq!(verdict(&review(script)), wanted, "{script}");
    }
    let stale = answer("src/a.rs", "").replace("n0nce", "older");
    assert_eq!(verdict(&review(&format!("echo '{stale}'"))), "Answer");
    let failed = format!("echo '{}'; exit 1", answer("src/a.rs", ""));
    assert_eq!(verdict(&review(&failed)), "Crashed");
}

#[test]
fn a_failed_program_can_say_why() {
    for (kind, usage, wanted) in [
        ("usage_limit", "", "usage_limit"),
        ("unavailable", "", "engine_unavailable"),
        ("unavailable", r#","usage":{"input_tokens":5}"#, "Service"),
        ("transient", "", "Service"),
        ("permanent", "", "Rejected"),
        ("odd", "", "Answer"),
    ] {
        let said = format!(r#"{{"error":{{"kind":"{kind}","message":"why"}}{usage}}}"#);
        let run = review(&format!("echo '{said}'; exit 3"));
        assert_eq!(verdict(&run), wanted, "{kind}");
    }
}

#[test]
fn the_last_line_of_standard_error_is_told_without_the_key() {
    let mut config = command("echo first >&2; echo \"bad $ENGINE_KEY\" >&2; exit 2");
    config.env = vec!["ENGINE_KEY".into()];
    let text = message(&review_with(&config, &Subject::new()));
    assert!(text.contains("exit code 2"), "{text}");
    assert!(text.ends_with("it said: bad [...]"), "{text}");
}

#[test]
fn a_key_does_not_get_into_a_finding() {
    let text = answer("src/a.rs", "").replace("The last item", "'\"$ENGINE_KEY\"'");
    let mut config = command(&format!("echo '{text}'"));
    config.env = vec!["ENGINE_KEY".into()];
    let run = review_with(&config, &Subject::new());
    assert_eq!(findings(&run)[0].body, "[...] is skipped.");
}

#[test]
fn findings_are_kept_for_files_of_the_head_only() {
    let subject = Subject::new();
    let tree = subject.tree.path();
    std::os::unix::fs::symlink("/etc", tree.join("etc")).unwrap();
    for (path, kept) in [
        ("src/a.rs", true),
        ("src/other.rs", true),
        ("./src/other.rs", true),
        ("src", false),
        ("src/none.rs", false),
        ("src/other.rs/x", false),
        ("etc/hostname", false),
        ("etc/passwd", false),
        ("../src/a.rs", false),
        ("/etc/passwd", false),
        ("", false),
    ] {
        let config = command(&format!("echo '{}'", answer(path, "")));
        let run = review_with(&config, &subject);
        assert_eq!(run.dropped, u32::from(!kept), "{path}");
        assert_eq!(findings(&run).len(), usize::from(kept), "{path}");
    }
}

#[test]
fn the_time_out_ends_an_engine_whatever_it_printed() {
    let mut config = command(&format!("echo '{}'; exec sleep 60", answer("src/a.rs", "")));
    config.timeout = Duration::from_millis(300);
    let run = review_with(&config, &Subject::new());
    assert_eq!(verdict(&run), "timeout");
}

#[test]
fn a_stop_is_no_failure_of_the_engine() {
    let stop = Stop::new();
    stop.set();
    let run =
        engine(&command("sleep 60")).answer(terms(Mode::Full), &Subject::new().request(), &stop);
    assert_eq!(run.outcome.unwrap_err().class(), FailureClass::Stopped);
}

#[test]
fn endless_output_ends_the_engine() {
    let run = review("yes");
    assert_eq!(verdict(&run), "Crashed");
    assert!(message(&run).contains("16 MiB"));
}

#[test]
fn a_missing_program_is_unavailable_and_costs_nothing() {
    let mut missing = config(EngineKind::Command);
    missing.command = vec!["no-such-engine".into()];
    let run = review_with(&missing, &Subject::new());
    assert_eq!(verdict(&run), "engine_unavailable");
    assert_eq!(run.usage, Usage::NOTHING);
    let text = message(&run);
    assert!(
        text.contains("no-such-engine") && text.contains("[engine]"),
        "{text}"
    );
    missing.command.clear();
    assert_eq!(
        verdict(&review_with(&missing, &Subject::new())),
        "engine_unavailable"
    );
}

/// A stand-in for the real tool: answers `--version` and `--help`, else runs `script`.
fn claude(folder: &Path, help: &str, script: &str) -> EngineConfig {
    let path = folder.join("claude");
    let text = format!(
        "#!/bin/sh\necho \"$1\" >> {}/calls\ncase \"$1\" in\n--version) echo '2.1.197 (Claude Code)';;\n\
         --help) cat <<'END'\n{help}\nEND\n;;\n*) {script}\n;;\nesac\n",
        folder.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut config = config(EngineKind::Claude);
    config.binary = Some(path);
    config
}

fn full_help() -> String {
    claude::CONTAINMENT.join(" <value>\n  ")
}

#[test]
fn a_tool_is_asked_for_its_flags_once_until_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let envelope = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":"","usage":{{
        "input_tokens":7}},"structured_output":{}}}"#,
        answer("src/a.rs", "")
    );
    let script = format!("cat >/dev/null; cat <<'END'\n{envelope}\nEND\n");
    let config = claude(folder.path(), &full_help(), &script);
    let engine = engine(&config);
    let subject = Subject::new();
    for _ in 0..2 {
        let run = engine.answer(terms(Mode::Full), &subject.request(), &Stop::new());
        assert_eq!(verdict(&run), "answer");
        assert_eq!(run.usage.tokens, Some(Tokens(7)));
        assert_eq!(run.version.as_deref(), Some("2.1.197 (Claude Code)"));
    }
    let calls = || fs::read_to_string(folder.path().join("calls")).unwrap();
    assert_eq!(calls(), "--version\n--help\n--print\n--print\n");
    let newer = std::time::SystemTime::now() + Duration::from_secs(60);
    let file = fs::File::options()
        .append(true)
        .open(config.binary.unwrap())
        .unwrap();
    file.set_modified(newer).unwrap();
    drop(file);
    engine
        .preflight(subject.scratch.path(), &Stop::new())
        .unwrap();
    assert!(calls().ends_with("--print\n--version\n--help\n"));
}

#[test]
fn a_tool_that_lost_a_containment_flag_is_not_started() {
    for flag in claude::CONTAINMENT {
        let folder = tempfile::tempdir().unwrap();
        // A longer flag that begins alike doesn't stand in for it.
        let help = full_help().replace(flag, &format!("{flag}-x"));
        let config = claude(folder.path(), &help, "exit 0");
        let run = review_with(&config, &Subject::new());
        assert_eq!(verdict(&run), "engine_unavailable", "{flag}");
        assert!(message(&run).contains(flag));
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        assert_eq!(calls, "--version\n--help\n");
    }
}

#[test]
fn the_built_in_engine_spends_nothing_and_starts_nothing() {
    let engine = engine(&config(EngineKind::Builtin));
    assert!(!engine.spends());
    let run = engine.answer(terms(Mode::Full), &Subject::new().request(), &Stop::new());
    assert_eq!(verdict(&run), "answer");
    assert_eq!(run.usage, Usage::NOTHING);
    assert_eq!(run.engine, "builtin");
}

/// A subject whose change adds a credential, and the credential.
fn leaking() -> (Subject, String) {
    let token = format!("{}{}", "ghp_", "q7Rk2Zt9Wm4Xc8Vb3Nf6Hj1Gd5Lp0SyUoIeA");
    let line = format!("key = '{token}'");
    let mut subject = Subject::new();
    subject.change.patch = format!("+++ b/src/a.rs\n@@ -3 +3 @@\n+{line}\n").into_bytes();
    subject.change.files[0].added[0].text = line.into_bytes();
    (subject, token)
}

#[test]
fn the_built_in_findings_stand_in_front_of_a_models() {
    let (subject, _) = leaking();
    let config = command(&format!("echo '{}'", answer("src/other.rs", "")));
    let found = findings(&review_with(&config, &subject));
    let rules: Vec<_> = found.iter().map(|finding| finding.rule.is_some()).collect();
    assert_eq!(rules, [true, false]);
}

#[test]
fn without_tokens_the_built_in_checks_review_alone() {
    let (subject, _) = leaking();
    let stop = Stop::new();
    let engine = engine(&command("echo a model was asked; exit 1"));
    let run = engine.answer(terms(Mode::Exhausted), &subject.request(), &stop);
    assert_eq!(
        (run.engine.as_str(), run.usage),
        ("builtin", Usage::NOTHING)
    );
    assert_eq!(findings(&run).len(), 1);
}

#[test]
fn a_credential_of_the_change_is_not_in_what_an_engine_reads() {
    let (subject, token) = leaking();
    let config = command(r#"cat > "$TMPDIR/input"; exit 1"#);
    review_with(&config, &subject);
    let input = fs::read_to_string(subject.scratch.path().join("input")).unwrap();
    assert!(input.contains("[hidden: a GitHub token]"));
    assert!(!input.contains(&token));
}
