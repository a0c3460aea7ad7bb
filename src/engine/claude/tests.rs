use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::engine::failure::FailureClass;
use crate::ids::{CommitSha, Tokens};
use crate::process::Ended;

const HEAD: &str = "0123456789abcdef0123456789abcdef01234567";

fn ended(stdout: &[u8], code: Option<i32>, signal: Option<i32>) -> Finished {
    Finished {
        code,
        signal,
        stdout: stdout.to_vec(),
        stderr: Vec::new(),
        ended: Ended::Itself,
        elapsed: Duration::ZERO,
    }
}

fn read_output(stdout: &[u8], code: i32) -> Outcome {
    let head: CommitSha = HEAD.parse().unwrap();
    let expected = Expected {
        task: Task::Review,
        head: &head,
        nonce: "n0nce",
        root: Path::new("/checkout"),
        known: &|_| true,
    };
    read(&ended(stdout, Some(code), None), &expected)
}

fn good_answer() -> Value {
    json!({"head": HEAD, "nonce": "n0nce", "findings": [], "assessment":
        {"effort": 1, "risk": "none", "recommendation": "merge", "priority_files": []}})
}

/// An envelope as the tool writes one after two turns.
fn envelope() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "api_error_status": null,
        "num_turns": 2, "result": "", "stop_reason": "tool_use", "total_cost_usd": 0.01234,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 30, "output_tokens": 40},
        "modelUsage": {"small": {"inputTokens": 1, "outputTokens": 1},
            "large": {"inputTokens": 100, "outputTokens": 20, "cacheReadInputTokens": 3,
                "cacheCreationInputTokens": 4}},
        "structured_output": good_answer(), "terminal_reason": "completed"})
}

fn read_envelope(envelope: &Value) -> Outcome {
    read_output(envelope.to_string().as_bytes(), 0)
}

/// A failure of the service as the tool reports it.
fn http_error(status: Value, text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": status,
        "num_turns": 1, "result": text, "stop_reason": "stop_sequence", "total_cost_usd": 0,
        "usage": {"input_tokens": 0, "output_tokens": 0}, "modelUsage": {}})
}

/// A short word for what a run was taken for.
fn verdict(outcome: &Outcome) -> String {
    match &outcome.result {
        Ok(_) => "answer".into(),
        Err(EngineFailure::Error { kind, .. }) => format!("{kind:?}"),
        Err(failure) => failure.stop_reason().as_str().into(),
    }
}

#[test]
fn a_complete_run_is_an_answer_with_its_usage() {
    let outcome = read_envelope(&envelope());
    assert_eq!(verdict(&outcome), "answer");
    assert_eq!(outcome.model.as_deref(), Some("large"));
    // modelUsage counts turns that usage misses.
    assert_eq!(outcome.usage.tokens, Some(Tokens(129)));
    assert_eq!(outcome.usage.cost_microusd, Some(12_340));
}

#[test]
fn an_exit_code_of_zero_proves_nothing() {
    for (what, change) in [
        ("no structured output", ("structured_output", Value::Null)),
        ("error flag", ("is_error", json!(true))),
        ("no error flag", ("is_error", Value::Null)),
        (
            "another subtype",
            ("subtype", json!("error_during_execution")),
        ),
        ("another type", ("type", json!("system"))),
        (
            "text instead of structure",
            ("structured_output", json!("none")),
        ),
    ] {
        let mut changed = envelope();
        changed[change.0] = change.1;
        assert!(read_envelope(&changed).result.is_err(), "{what}");
    }
    assert_eq!(verdict(&read_output(b"", 0)), "Crashed");
    assert_eq!(verdict(&read_output(b"Done! No findings.", 0)), "Crashed");
}

#[test]
fn a_success_envelope_with_a_failing_exit_is_not_believed() {
    let outcome = read_output(envelope().to_string().as_bytes(), 1);
    assert_eq!(verdict(&outcome), "Crashed");
    assert_eq!(outcome.usage.tokens, Some(Tokens(129)));
}

#[test]
fn an_answer_without_this_requests_nonce_is_not_believed() {
    let mut changed = envelope();
    changed["structured_output"]["nonce"] = json!("another");
    let outcome = read_envelope(&changed);
    assert_eq!(verdict(&outcome), "Answer");
    assert_eq!(outcome.usage.tokens, Some(Tokens(129)), "it was paid for");
}

#[test]
fn a_model_that_writes_about_usage_limits_is_no_usage_limit() {
    let mut changed = envelope();
    changed["result"] = json!("You have reached your usage limit. Weekly limit, session limit.");
    assert_eq!(verdict(&read_envelope(&changed)), "answer");
    changed["structured_output"] = Value::Null;
    assert_eq!(verdict(&read_envelope(&changed)), "Answer");
    // Another end than success, nothing measured, and still the model's text.
    let mut unmeasured = changed.clone();
    unmeasured["subtype"] = json!("error_during_execution");
    unmeasured["modelUsage"] = json!({});
    unmeasured["usage"] = json!({});
    assert_eq!(verdict(&read_envelope(&unmeasured)), "Crashed");
    unmeasured["api_error_status"] = json!(429);
    assert_eq!(verdict(&read_envelope(&unmeasured)), "Service");
    // A run that failed after the model spoke, its text in the result.
    changed["is_error"] = json!(true);
    assert_eq!(verdict(&read_envelope(&changed)), "Crashed");
}

#[test]
fn usage_limits_are_known_by_the_tools_own_error() {
    for (status, text) in [
        (
            json!(429),
            "You have reached your specified API usage limits.",
        ),
        (
            json!(400),
            "You have reached your specified API usage limits.",
        ),
        (json!(429), "You've hit your limit · resets 3pm (UTC)"),
        (
            json!(429),
            "You've hit your session limit · resets 3pm (UTC)",
        ),
        (json!(null), "Claude AI usage limit reached|1766502000"),
    ] {
        let outcome = read_output(http_error(status, text).to_string().as_bytes(), 1);
        assert_eq!(verdict(&outcome), "usage_limit", "{text}");
        assert_eq!(outcome.usage.tokens, Some(Tokens::ZERO));
        let failure = outcome.result.unwrap_err();
        assert_eq!(failure.class(), FailureClass::AccountLimit);
    }
    let rate = http_error(json!(429), "This request would exceed your rate limit.");
    let outcome = read_output(rate.to_string().as_bytes(), 1);
    assert_eq!(verdict(&outcome), "Service");
}

#[test]
fn a_key_that_fails_after_tokens_were_used_is_not_settled_at_zero() {
    let mut late = http_error(json!(401), "Invalid API key");
    late["modelUsage"] = json!({"m": {"inputTokens": 9}});
    let outcome = read_output(late.to_string().as_bytes(), 1);
    assert_eq!(verdict(&outcome), "Rejected");
    assert_eq!(outcome.usage.tokens, Some(Tokens(9)));
}

#[test]
fn zero_tokens_are_believed_only_of_a_request_that_was_turned_away() {
    for (status, tokens) in [
        (json!(401), Some(Tokens::ZERO)),
        (json!(429), Some(Tokens::ZERO)),
        (json!(529), Some(Tokens::ZERO)),
        (json!(500), None),
        (json!(null), None),
    ] {
        let failed = http_error(status.clone(), "x");
        let outcome = read_output(failed.to_string().as_bytes(), 1);
        assert_eq!(outcome.usage.tokens, tokens, "{status}");
    }
}

#[test]
fn the_last_event_of_a_stream_is_the_envelope() {
    let stream = format!("{{\"type\":\"system\"}}\n{}\n", envelope());
    assert_eq!(verdict(&read_output(stream.as_bytes(), 0)), "answer");
    let cut = format!("{}\n{{\"type\":\"system\"}}\n", envelope());
    assert_eq!(verdict(&read_output(cut.as_bytes(), 0)), "Crashed");
}

#[test]
fn our_flags_come_after_the_operators() {
    let mut config = crate::engine::tests::config(crate::config::EngineKind::Claude);
    config.args = vec!["--tools".into(), "Bash".into()];
    config.model = Some("some-model".into());
    assert!(!args(&config, Task::Review, MicroUsd::ZERO).contains(&"--max-budget-usd".into()));
    let args = args(&config, Task::Review, MicroUsd(500_000));
    assert_eq!(args[args.len() - 2..], ["--max-budget-usd", "0.50"]);
    let last = args.iter().rposition(|arg| arg == "--tools").unwrap();
    assert_eq!(args[last + 1], "Read,Grep,Glob");
    let model = args.iter().position(|arg| arg == "--model").unwrap();
    assert_eq!(args[model + 1], "some-model");
    for flag in CONTAINMENT {
        assert!(args.iter().any(|arg| arg == flag), "{flag}");
    }
    let schema = args.iter().position(|arg| arg == "--json-schema").unwrap();
    let schema: Value = serde_json::from_str(args[schema + 1].to_str().unwrap()).unwrap();
    assert_eq!(schema, answer::schema(Task::Review));
}

#[test]
fn with_a_key_the_home_is_private_and_without_one_the_daemons_login_is_used() {
    fn home(lookup: &Lookup) -> OsString {
        let environment = environment(lookup, "/scratch".as_ref(), &[], &[]);
        let variables = environment.to_vec();
        let home = variables.iter().find(|(name, _)| name == "HOME");
        home.unwrap().1.clone()
    }
    let with_key = |name: &str| match name {
        "HOME" => Some(OsString::from("/home/daemon")),
        "ANTHROPIC_API_KEY" => Some(OsString::from("sk-1")),
        _ => None,
    };
    let without = |name: &str| (name == "HOME").then(|| OsString::from("/home/daemon"));
    assert_eq!(home(&with_key), "/scratch");
    assert_eq!(home(&without), "/home/daemon");
}

/// File, exit code (negative: a signal), what it is, tokens.
const CAPTURES: [(&str, i32, &str, Option<u64>); 24] = [
    ("claude-success.json", 0, "Answer", Some(1592)),
    ("claude-401.json", 1, "engine_unavailable", Some(0)),
    ("claude-403.json", 1, "engine_unavailable", Some(0)),
    ("claude-404-model.json", 1, "engine_unavailable", Some(0)),
    (
        "claude-400-prompt-too-long.json",
        1,
        "PromptTooLong",
        Some(0),
    ),
    ("claude-400-credit.json", 1, "engine_unavailable", Some(0)),
    ("claude-429.json", 1, "Service", Some(0)),
    ("claude-429-no-retry.json", 1, "Service", Some(0)),
    ("claude-429-usage-limit.json", 1, "usage_limit", Some(0)),
    ("claude-529.json", 1, "Service", Some(0)),
    ("claude-500.json", 1, "Service", None),
    (
        "claude-not-logged-in.json",
        1,
        "engine_unavailable",
        Some(0),
    ),
    ("claude-max-turns.json", 1, "ToolLimit", Some(3184)),
    ("claude-invalid-structured.json", 1, "Answer", Some(6368)),
    ("claude-invalid-then-ok.json", 0, "Answer", Some(3184)),
    ("claude-no-structured.json", 0, "Answer", Some(3184)),
    ("claude-refusal.json", 1, "Refusal", Some(1592)),
    ("claude-max-tokens.json", 1, "OutputTooLong", Some(6368)),
    ("claude-permission-denied.json", 0, "Answer", Some(4776)),
    ("claude-sigterm.json", 143, "Crashed", None),
    ("claude-sigint.json", 0, "Crashed", None),
    ("claude-sigkill.json", 137, "Crashed", None),
    ("claude-stream-success.jsonl", 0, "Answer", Some(3184)),
    ("claude-stream-429.jsonl", 1, "Service", Some(0)),
];

/// Output recorded from the real tool. Its answers have another form than ours and no nonce, so the
/// good ones are refused as answers, while their usage counts.
#[test]
fn recorded_runs_of_the_real_tool_are_told_apart() {
    let shared = std::env::var_os("PRWARDEN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = shared.join("engine-captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not there", folder.display());
        return;
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("claude-"))
        .collect();
    names.sort();
    let mut listed: Vec<_> = CAPTURES.iter().map(|(name, ..)| *name).collect();
    listed.sort_unstable();
    assert_eq!(names, listed);
    for (name, code, wanted, tokens) in CAPTURES {
        let stdout = std::fs::read(folder.join(name)).unwrap();
        let outcome = read_output(&stdout, code);
        assert_eq!(verdict(&outcome), wanted, "{name}");
        assert_eq!(outcome.usage.tokens, tokens.map(Tokens), "{name}");
    }
}

proptest::proptest! {
    #[test]
    fn no_output_makes_the_reader_panic(
        text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100),
        tokens in proptest::prelude::any::<u64>(),
        cost in proptest::prelude::any::<f64>(),
        status in proptest::prelude::any::<u16>(),
    ) {
        read_output(&text, 0);
        let mut odd = envelope();
        odd["usage"]["input_tokens"] = json!(tokens);
        odd["total_cost_usd"] = json!(cost);
        odd["api_error_status"] = json!(status);
        odd["is_error"] = json!(true);
        proptest::prop_assert!(read_envelope(&odd).result.is_err());
        proptest::prop_assert!(read_envelope(&odd).usage.tokens >= Some(Tokens(tokens)));
    }
}
