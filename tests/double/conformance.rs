//! Every answer against GitHub's own API description.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prwarden::clock::Timestamp;
use prwarden::double::{Action, Matcher, RateLimit};
use serde_json::{Value, json};

use crate::support::{Place, REPO, pull};

#[test]
fn every_answer_conforms_to_githubs_description() {
    let root = std::env::var_os("PRWARDEN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let checker = root.join("github-api/check.py");
    let python = Command::new("python3")
        .args(["-c", "import jsonschema"])
        .output();
    if !checker.exists() || !python.is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: {} or python3 with jsonschema is not here",
            checker.display()
        );
        return;
    }
    let place = Place::new();
    everything(&place);
    let requests = place.double.requests();
    let known: Vec<_> = requests
        .iter()
        // A user by id is not in the subset; git is no API.
        .filter(|request| !request.path.starts_with("/user/") && !request.path.contains(".git/"))
        .map(|request| {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
            json!({
                "method": request.method, "path": request.path, "query": request.query,
                "request_body": parsed(&request.request_body), "status": request.status,
                "response_body": parsed(&request.response_body),
            })
            .to_string()
        })
        .collect();
    assert!(known.len() > 60, "{}", known.len());
    let file = place.dir.path().join("exchanges.jsonl");
    fs::write(&file, known.join("\n")).unwrap();
    let output = Command::new("python3")
        .arg(checker)
        .arg("--by-id")
        .arg(file)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Asks every endpoint, in every state that changes the answer's shape.
fn everything(place: &Place) {
    let double = &place.double;
    place.git.branch("three", "two").unwrap();
    place
        .git
        .commit("three", &[("new/ö.txt", "x\n")], "Three")
        .unwrap();
    let (open, merged) = (place.open(), double.open_pull(REPO, pull("three")));
    let issue = double.open_issue(REPO, "mona", "Broken", "");
    double.label(REPO, open, "wip");
    double.draft(REPO, open);
    let send = |path: String, body: Value| place.send("POST", &place.in_repo(&path), &body);
    let made = send(
        format!("/issues/{open}/comments"),
        json!({ "body": "hello" }),
    )
    .json();
    let made = format!("/issues/comments/{}", made["id"]);
    place.send(
        "PATCH",
        &place.in_repo(&made),
        &json!({ "body": "hello again" }),
    );
    send(format!("/issues/{issue}/comments"), json!({ "body": "hm" }));
    let remark = json!({ "path": "notes.txt", "line": 10, "side": "RIGHT", "body": "here" });
    send(
        format!("/pulls/{open}/reviews"),
        json!({ "event": "COMMENT", "body": "x", "comments": [remark] }),
    );
    send(
        format!("/pulls/{open}/reviews"),
        json!({ "event": "COMMENT", "body": "" }),
    );
    send(
        format!("/issues/{open}/comments"),
        json!({ "body": "x".repeat(70_000) }),
    );
    let on_line = double.review_comment(REPO, open, "mona", "notes.txt", 10, "there");
    for target in [
        format!("/issues/{open}"),
        made.clone(),
        format!("/pulls/comments/{on_line}"),
    ] {
        for _ in 0..2 {
            send(format!("{target}/reactions"), json!({ "content": "eyes" }));
        }
    }
    double.merge(REPO, merged, "mona");
    let by_id = format!("/repositories/{}", double.repo_id(REPO));
    let read_all = || {
        for path in [
            "",
            "/pulls",
            "/pulls?state=all&sort=updated&direction=desc&per_page=1&page=2",
            "/pulls/comments?sort=updated&direction=desc",
            "/issues/comments?sort=updated&direction=desc&per_page=100",
            "/pulls/1",
            "/pulls/2",
            "/pulls/9",
            "/pulls/1/reviews",
            "/pulls/1/commits",
            "/pulls/2/files",
            "/issues/1",
            "/issues/2",
            "/issues/3",
            "/issues/1/comments?per_page=1",
            "/branches/main",
            "/branches/none",
            made.as_str(),
        ] {
            let reply = place.get(&place.in_repo(path));
            let etag = reply.header("etag").unwrap_or("\"none\"").to_owned();
            place
                .ask("GET", &place.in_repo(path), &[("If-None-Match", &etag)], "")
                .unwrap();
        }
        place.get(&format!("{by_id}/pulls?per_page=1"));
        for path in ["/user", "/users/mona", "/rate_limit"] {
            place.get(path);
        }
    };
    read_all();
    place
        .ask("GET", "/user", &[("Authorization", "Bearer wrong")], "")
        .unwrap();
    place.fault(
        Matcher::get("/pulls"),
        Action::Redirect {
            code: 301,
            location: format!("{by_id}/pulls"),
        },
    );
    place.get(&place.in_repo("/pulls"));
    double.delete_user("mona");
    double.delete_fork(REPO, open);
    read_all();
    place.ask("DELETE", &place.in_repo(&made), &[], "").unwrap();
    let later = Timestamp::from(jiff::Timestamp::now()).unix() + 1000;
    double.set_rate_limit(RateLimit {
        limit: 60,
        remaining: 0,
        reset: later,
    });
    place.get("/user");
}
