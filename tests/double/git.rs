//! Git over HTTP, and what the API tells of commits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prwarden::double::sample::{self, Entry, RepoBuilder};
use prwarden::double::{Double, NewPull};
use serde_json::json;

use crate::support::{Place, REPO, TOKEN, ok, pull};

#[test]
fn commits_files_and_branches_are_read_from_git() {
    let place = Place::new();
    let entries = [
        Entry::File {
            path: "tools/run \"me\".sh",
            content: b"#!/bin/sh\n\0\xff",
            executable: true,
        },
        Entry::Link {
            path: "latest",
            target: "notes.txt",
        },
        Entry::Removed("notes.txt"),
    ];
    place.git.branch("feature/x", "main").unwrap();
    let tip = place
        .git
        .commit_entries("feature/x", &entries, "Rearrange")
        .unwrap();
    place.double.open_pull(REPO, pull("feature/x"));
    let files = place.get(&place.in_repo("/pulls/1/files"));
    assert_eq!(
        files.each("filename"),
        ["latest", "notes.txt", "tools/run \"me\".sh"]
    );
    assert_eq!(files.each("status"), ["added", "removed", "added"]);
    assert_eq!(files.each("deletions"), [0, 20, 0]);
    let whole = place.get(&place.in_repo("/pulls/1")).json();
    assert_eq!(
        (&whole["changed_files"], &whole["commits"]),
        (&json!(3), &json!(1))
    );
    let commits = place.get(&place.in_repo("/pulls/1/commits"));
    assert_eq!(commits.each("sha"), [tip.as_str()]);
    for name in ["feature/x", "feature%2Fx"] {
        let branch = place
            .get(&place.in_repo(&format!("/branches/{name}")))
            .json();
        assert_eq!(branch["commit"]["sha"], tip, "{name}");
    }
    assert_eq!(place.get(&place.in_repo("/branches/none")).status, 404);
}

#[test]
fn git_fetches_pull_requests_also_partially_and_by_a_commit_that_no_branch_has() {
    let place = Place::new();
    let number = place.open();
    let old = place.double.head(REPO, number);
    place.git.branch("two", "main").unwrap();
    place
        .git
        .commit("two", &[("notes.txt", "forced\n")], "Force")
        .unwrap();
    place.double.push(REPO, number);
    let new = place.double.head(REPO, number);
    assert_ne!(old, new);

    let remote = place.remote();
    ok(&place.client(None, &["init", "--quiet", "--bare", "c.git"]));
    let fetch = |what: &str| {
        place.client(
            None,
            &[
                "-C",
                "c.git",
                "fetch",
                "--quiet",
                "--filter=blob:none",
                &remote,
                what,
            ],
        )
    };
    ok(&fetch("refs/pull/1/head"));
    assert_eq!(
        ok(&place.client(None, &["-C", "c.git", "rev-parse", "FETCH_HEAD"])),
        new
    );
    // The first version of the protocol refuses such a commit unless the server allows it.
    ok(&place.client(None, &["init", "--quiet", "--bare", "first.git"]));
    let first = [
        "-c",
        "protocol.version=0",
        "-C",
        "first.git",
        "fetch",
        &remote,
        &old,
    ];
    ok(&place.client(None, &first));
    ok(&fetch(&old));
    assert_eq!(
        ok(&place.client(None, &["-C", "c.git", "rev-parse", "FETCH_HEAD"])),
        old
    );
    let objects = ok(&place.client(
        None,
        &[
            "-C",
            "c.git",
            "cat-file",
            "--batch-all-objects",
            "--batch-check",
        ],
    ));
    assert!(!objects.contains(" blob "), "the filter works: {objects}");
    let pushed = place.client(
        Some(TOKEN),
        &["-C", "c.git", "push", &remote, "FETCH_HEAD:refs/heads/evil"],
    );
    assert!(!pushed.status.success(), "nobody can push");
    let paths: Vec<String> = place
        .double
        .requests()
        .into_iter()
        .map(|r| r.path)
        .collect();
    assert!(
        paths.contains(&format!("/{REPO}.git/git-upload-pack")),
        "{paths:?}"
    );
}

#[test]
fn large_histories_are_negotiated_with_compressed_bodies() {
    let place = Place::new();
    ok(&place.cloned(None, "c.git"));
    // Git compresses a body of more than 1024 bytes: some forty commits that the server lacks.
    let clone = place.dir.path().join("c.git");
    let ours = RepoBuilder::create(&clone).unwrap();
    for n in 0..60 {
        ours.commit("main", &[("own.txt", &n.to_string())], "Ours")
            .unwrap();
    }
    place
        .git
        .commit("main", &[("own.txt", "theirs")], "Theirs")
        .unwrap();
    ok(&place.client(
        None,
        &[
            "-C",
            "c.git",
            "fetch",
            "--quiet",
            &place.remote(),
            "refs/heads/main",
        ],
    ));
    let compressed =
        place.double.requests().into_iter().any(|request| {
            request.header("content-encoding") == Some("gzip") && request.status == 200
        });
    assert!(compressed);
}

#[test]
fn a_private_repository_is_hidden_from_whoever_has_no_token() {
    let place = Place::new();
    place.double.make_private(REPO);
    assert!(!place.cloned(None, "a.git").status.success());
    assert!(!place.cloned(Some("wrong"), "b.git").status.success());
    ok(&place.cloned(Some(TOKEN), "c.git"));
    place.double.revoke_tokens();
    assert!(
        !place.cloned(Some(TOKEN), "d.git").status.success(),
        "a revoked token"
    );
    let log = format!("{:?}", place.double.requests());
    assert!(
        !log.contains("Authorization") && !log.contains("authorization"),
        "{log}"
    );
}

#[test]
fn a_merge_moves_the_base_branch_and_closes_the_pull_request() {
    let place = Place::new();
    let number = place.open();
    place
        .git
        .commit("main", &[("other.txt", "x\n")], "Meanwhile")
        .unwrap();
    place.double.merge(REPO, number, "mona");
    let merged = place.get(&place.in_repo("/pulls/1")).json();
    assert_eq!(
        (&merged["merged"], &merged["state"]),
        (&json!(true), &json!("closed"))
    );
    let main = place.get(&place.in_repo("/branches/main")).json();
    assert_eq!(main["commit"]["sha"], merged["merge_commit_sha"]);
    ok(&place.cloned(None, "c.git"));
    let text = ok(&place.client(None, &["-C", "c.git", "show", "main:notes.txt"]));
    assert!(text.contains("line ten"), "{text}");
    ok(&place.client(None, &["-C", "c.git", "show", "main:other.txt"]));
}

#[test]
fn the_sample_is_the_same_everywhere_and_holds_its_three_faults() {
    let dir = tempfile::tempdir().unwrap();
    let tips: Vec<String> = ["a", "b"]
        .map(|name| {
            let sample = sample::build(&dir.path().join(name), Path::new("git")).unwrap();
            let double = Double::start().unwrap();
            double.add_repo(REPO, &sample.bare);
            let (head_ref, base_ref) = (sample.head_branch, sample.base_branch);
            let number = double.open_pull(
                REPO,
                NewPull {
                    head_ref,
                    base_ref,
                    ..pull("")
                },
            );
            double.head(REPO, number)
        })
        .to_vec();
    assert_eq!(tips[0], tips[1]);
    let show = |path: &str| {
        let bare: PathBuf = dir.path().join("a/widgets.git");
        let object = format!("{}:{path}", tips[0]);
        ok(&Command::new("git")
            .arg("--git-dir")
            .arg(bare)
            .args(["show", &object])
            .output()
            .unwrap())
    };
    assert!(show("src/total.rs").contains("0..=widths.len()"));
    assert!(show("NOTES.md").lines().any(|line| line == "=".repeat(7)));
    assert!(show("deploy/settings.ini").contains("access_key = AKIA"));
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/double/sample.rs")).unwrap();
    assert!(!source.contains("AKIA"), "no key in the source");
}
