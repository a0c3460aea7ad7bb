//! What is sent and what the double answers, checked against GitHub's own API description.

#![allow(clippy::unwrap_used)]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{MONA, REPO, STRANGER, World, shared};

#[test]
fn every_exchange_of_a_whole_review_conforms() {
    let Some(checker) = shared("github-api/check.py") else {
        return;
    };
    let has_jsonschema = Command::new("python3")
        .args(["-c", "import jsonschema"])
        .status();
    if !has_jsonschema.is_ok_and(|status| status.success()) {
        println!("skipped: python3 with jsonschema is not here");
        return;
    }
    let world = World::new();
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.double.label(REPO, number, "wip");
    world.double.comment(REPO, number, STRANGER.1, "hello");
    world.once();
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
    world
        .double
        .review_comment(REPO, number, MONA.1, "src/two.rs", 1, "@prwarden");
    world.once();
    world.once();
    world.double.close(REPO, number);
    world.once();
    assert!(
        world
            .command(&["doctor"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let exchanges: String = world
        .double
        .requests()
        .iter()
        .filter(|request| !request.path.contains(".git/"))
        .map(|request| {
            let exchange = json!({
                "method": request.method, "path": request.path, "query": request.query,
                "request_body": parsed(&request.request_body), "status": request.status,
                "response_body": parsed(&request.response_body),
            });
            format!("{exchange}\n")
        })
        .collect();
    let file = world.path("exchanges.jsonl");
    std::fs::write(&file, exchanges).unwrap();
    let output = Command::new("python3")
        .arg(checker)
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
