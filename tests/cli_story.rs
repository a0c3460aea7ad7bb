//! The commands as an operator meets them: exit codes, and errors that name the place and the remedy.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use prwarden::double::sample::RepoBuilder;
use prwarden::double::{Action, Fault, Matcher};
use support::{MONA, TOKEN, World, eventually};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asserts an exit code and that stderr names each of `parts`.
fn fails(output: &Output, code: i32, parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!text.contains(TOKEN), "the token is in: {text}");
}

fn change_config(world: &World, from: &str, to: &str) {
    let path = world.path("prwarden.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_wrong_key_is_refused_with_its_line_and_the_nearest_name() {
    let world = World::new();
    change_config(&world, "allowlist", "allow_list");
    fails(
        &world.once_output(),
        78,
        &["prwarden.toml:7", "allow_list", "did you mean allowlist?"],
    );
}

#[test]
fn a_login_on_the_allowlist_is_refused_with_the_way_to_its_id() {
    let world = World::new();
    change_config(&world, "allowlist = [101]", "allowlist = [\"mona\"]");
    fails(
        &world.once_output(),
        78,
        &["prwarden.toml:7", "numeric id", "users/mona"],
    );
}

#[test]
fn an_amount_that_does_not_come_out_whole_is_refused() {
    let world = World::new();
    world.configure("[budget]\nsession_tokens = \"1.2345k\"\n");
    fails(
        &world.once_output(),
        78,
        &["session_tokens", "1.2345k", "whole number"],
    );
}

#[test]
fn a_missing_token_names_the_variable() {
    let world = World::new();
    let output = world
        .command(&["once"])
        .env_remove("GITHUB_TOKEN")
        .output()
        .unwrap();
    fails(&output, 78, &["GITHUB_TOKEN", "github.token_file"]);
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let world = World::new();
    let file = world.path("token");
    fs::write(&file, TOKEN).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let line = format!("[github]\ntoken_file = \"{}\"\n", file.display());
    change_config(&world, "[github]\n", &line);
    fails(&world.once_output(), 78, &["token", "644", "chmod"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let output = world
        .command(&["once"])
        .env_remove("GITHUB_TOKEN")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_store_that_is_no_store_is_named_and_left_alone() {
    let world = World::new();
    fs::write(world.store(), "a letter to my aunt, longer than a header").unwrap();
    fails(
        &world.once_output(),
        1,
        &["state.db", "not a SQLite database", "not changed"],
    );
    assert!(
        fs::read_to_string(world.store())
            .unwrap()
            .starts_with("a letter")
    );
}

#[test]
fn a_store_in_a_directory_that_does_not_exist_is_named() {
    let world = World::new();
    change_config(&world, "/state.db", "/nowhere/state.db");
    fails(&world.once_output(), 1, &["nowhere"]);
}

#[test]
fn no_git_and_an_old_git_are_named() {
    let world = World::new();
    let with_git = |git: &Path| {
        let world = &world;
        world.configure("");
        change_config(
            world,
            "[workspace]\n",
            &format!("[workspace]\ngit = \"{}\"\n", git.display()),
        );
        world.once_output()
    };
    fails(
        &with_git(Path::new("/nonexistent/git")),
        1,
        &["/nonexistent/git"],
    );
    let old = world.script("old-git", "#!/bin/sh\necho git version 2.31.9\n");
    fails(&with_git(&old), 1, &["2.31", "2.32"]);
}

#[test]
fn a_missing_engine_is_named_and_nothing_is_charged() {
    let world = World::new();
    world.once();
    world.configure(
        "[engine]\nkind = \"command\"\ncommand = [\"no-such-engine\"]\n\
         [budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\nmax_run_tokens = \"100k\"\n",
    );
    world.open_plain(MONA.1, "two");
    fails(&world.once_output(), 69, &["no-such-engine", "engine"]);
    assert_eq!(world.count("SELECT used_tokens FROM ledger"), 0);
    assert_eq!(
        world.count("SELECT stop_reason = 'engine_unavailable' FROM ledger"),
        1
    );
}

#[test]
fn a_repository_that_does_not_exist_and_a_wrong_token_are_named() {
    let world = World::new();
    change_config(&world, "acme/widgets", "acme/gone");
    fails(
        &world.once_output(),
        69,
        &["acme/gone", "404", "token may not see it"],
    );
    world.configure("");
    world.double.revoke_tokens();
    fails(
        &world.once_output(),
        69,
        &["401", "token is wrong or expired"],
    );
}

#[test]
fn html_instead_of_json_names_the_request() {
    let world = World::new();
    world.double.fault(Fault {
        matcher: Matcher::get("/pulls?"),
        times: 1,
        action: Action::Html,
    });
    fails(
        &world.once_output(),
        69,
        &["GET", "/repos/acme/widgets/pulls", "not valid JSON"],
    );
}

#[test]
fn a_second_instance_is_told_apart_from_a_failure() {
    let world = World::new();
    world.once();
    let hold = world
        .double
        .hold(Matcher::get("/pulls?"), prwarden::double::Moment::Before);
    let _first = world.start(&["once"]);
    assert!(hold.wait_until_parked(support::PATIENCE));
    let second = world.command(&["once"]).output().unwrap();
    assert_eq!(second.status.code(), Some(75));
    assert_eq!(stderr(&second), "", "cron does not mail");
    let daemon = world.command(&["run"]).output().unwrap();
    fails(&daemon, 75, &["another prwarden"]);
}

#[test]
fn the_daemon_reviews_and_stops_cleanly_on_sigterm() {
    use nix::sys::signal::{Signal, kill};
    let world = World::new();
    world.configure("[poll]\nfloor_seconds = 1\n");
    let mut daemon = world.start(&["run"]);
    eventually("the first poll", || {
        world
            .double
            .requests()
            .iter()
            .any(|request| request.path.ends_with("/pulls/comments"))
    });
    let number = world.open_plain(MONA.1, "two");
    eventually("the review", || world.reviews(number).len() == 1);
    kill(
        nix::unistd::Pid::from_raw(daemon.0.id() as i32),
        Signal::SIGTERM,
    )
    .unwrap();
    assert!(daemon.0.wait().unwrap().success());
    assert_eq!(world.processes(), Vec::<String>::new());
}

#[test]
fn a_stop_during_a_run_gives_the_row_back() {
    use nix::sys::signal::{Signal, kill};
    let world = World::new();
    let engine = world.script(
        "engine",
        "#!/bin/sh\ntouch \"$MARK\"\nsetsid sleep 600 &\nsleep 600\n",
    );
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\nenv = [\"MARK\"]\n\
         [budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\nmax_run_tokens = \"100k\"\n\
         [poll]\nfloor_seconds = 1\n",
        engine.display()
    ));
    let mark = world.path("started");
    let mut daemon = support::Running(world.command(&["run"]).env("MARK", &mark).spawn().unwrap());
    eventually("the first poll", || {
        world
            .double
            .requests()
            .iter()
            .any(|request| request.path.ends_with("/pulls/comments"))
    });
    world.open_plain(MONA.1, "two");
    eventually("the engine runs", || mark.exists());
    kill(
        nix::unistd::Pid::from_raw(daemon.0.id() as i32),
        Signal::SIGTERM,
    )
    .unwrap();
    assert!(daemon.0.wait().unwrap().success());
    assert_eq!(world.processes(), Vec::<String>::new());
    assert_eq!(world.count("SELECT status = 'pending' FROM queue"), 1);
    assert_eq!(
        world.count("SELECT count(*) FROM ledger WHERE settled_at IS NULL"),
        0
    );
    assert_eq!(world.leftovers(), Vec::<String>::new());
}

/// A clone with a base commit and a change on top of it.
fn clone_with(change: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let repo = RepoBuilder::create(&dir.path().join("origin.git")).unwrap();
    repo.commit("main", &[("a.txt", "one\n")], "Start").unwrap();
    repo.commit("main", change, "Change").unwrap();
    let cloned = Command::new("git")
        .current_dir(dir.path())
        .args(["clone", "--quiet", "origin.git", "clone"])
        .status()
        .unwrap();
    assert!(cloned.success());
    dir
}

fn review(dir: &tempfile::TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prwarden"))
        .args(["review", "--base", "HEAD~1"])
        .args(args)
        .current_dir(dir.path().join("clone"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap()
}

const CONFLICT: &str = "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n";

#[test]
fn a_local_review_needs_no_configuration_and_its_exit_code_tells() {
    let clean = clone_with(&[("b.txt", "two\n")]);
    let output = review(&clean, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("0 findings in 1 file"));
    let conflict = clone_with(&[("b.txt", CONFLICT)]);
    let output = review(&conflict, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("blocker: b.txt:1: "),
        "{}",
        stdout(&output)
    );
    assert_eq!(
        review(&conflict, &["--fail-on", "never"]).status.code(),
        Some(0)
    );
    assert_eq!(
        review(&conflict, &["--head", "HEAD~1"]).status.code(),
        Some(0)
    );
    assert_eq!(
        review(&conflict, &["--fail-on", "often"]).status.code(),
        Some(2)
    );
    let output = review(&conflict, &["--base", "no-such-branch"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_local_review_speaks_markdown_json_and_sarif() {
    let conflict = clone_with(&[("b dir/ü.txt", CONFLICT)]);
    let markdown = stdout(&review(&conflict, &["--format", "markdown"]));
    assert!(markdown.contains("#### Blockers (1)"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_slice(&review(&conflict, &["--format", "json"]).stdout).unwrap();
    assert_eq!(json["findings"][0]["path"], "b dir/ü.txt");
    assert_eq!(json["findings"][0]["rule"], "conflict-marker");
    let sarif: serde_json::Value =
        serde_json::from_slice(&review(&conflict, &["--format", "sarif"]).stdout).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "conflict-marker");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "b%20dir/%C3%BC.txt");
}

#[test]
fn a_local_review_outside_of_a_repository_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("clone")).unwrap();
    let output = review(&dir, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).is_empty());
}

#[test]
fn the_demo_shows_the_whole_chain_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_prwarden"))
        .arg("demo")
        .current_dir(home.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TMPDIR", home.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    for part in [
        "AWS access key",
        "conflict marker",
        "one step too far",
        "ledger row",
        "publish",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let quiet = text
        .lines()
        .find(|line| line.starts_with("Cycle 4:"))
        .unwrap();
    assert!(quiet.ends_with("GitHub answered 304, 304, 304."), "{quiet}");
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        0,
        "everything is removed"
    );
}

#[test]
fn the_store_can_be_checked_backed_up_and_migrated() {
    let world = World::new();
    world.once();
    let run = |args: &[&str]| world.command(args).output().unwrap();
    assert!(run(&["db", "check"]).status.success());
    assert!(run(&["db", "migrate"]).status.success());
    let copy = world.path("copy.db");
    let copy = copy.to_str().unwrap();
    assert!(run(&["db", "backup", copy]).status.success());
    assert!(run(&["db", "check", "--store", copy]).status.success());
    assert!(
        !run(&["db", "backup", copy]).status.success(),
        "nothing is overwritten"
    );
    let store = rusqlite::Connection::open(copy).unwrap();
    store
        .execute(
            "INSERT INTO queue (dedupe_key, kind, repo, pr_number, actor_id, status, enqueued_at) \
                   VALUES ('k', 'mention', 'a/b', 1, 1, 'claimed', '2026-01-01T00:00:00Z')",
            [],
        )
        .unwrap();
    let output = run(&["db", "check", "--store", copy]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("a claimed row has no lease: k"));
}

#[test]
fn the_doctor_says_what_is_right_and_what_to_do() {
    let world = World::new();
    let output = world.command(&["doctor"]).output().unwrap();
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(
        text.contains("PASS  acme/widgets: conditional requests"),
        "{text}"
    );
    world.double.fault(Fault {
        matcher: Matcher::get("/pulls?"),
        times: 2,
        action: Action::StripEtag,
    });
    let text = stdout(&world.command(&["doctor"]).output().unwrap());
    assert!(
        text.contains("WARN  acme/widgets: conditional requests"),
        "{text}"
    );
    world.double.revoke_tokens();
    let output = world.command(&["doctor"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("FAIL  acme/widgets: account"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn status_tells_the_windows_and_the_queue() {
    let world = World::new();
    world.configure(
        "[engine]\nkind = \"command\"\ncommand = [\"/bin/false\"]\n\
         [budget]\nsession_tokens = \"1m\"\nweekly_tokens = \"10m\"\nmax_run_tokens = \"100k\"\n",
    );
    let status = || world.command(&["status"]).output().unwrap();
    assert_eq!(status().status.code(), Some(1), "there is no store yet");
    world.once();
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let spent = "INSERT INTO ledger (dedupe_key, owner, actor_id, mode, reserved_tokens, used_tokens, \
                 reserved_at, settled_at, stop_reason) \
                 SELECT 'k', 'o', 1, 'full', 1, 250000, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'x', 'completed'";
    store.execute(spent, []).unwrap();
    let output = status();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "budget: focused reviews",
        "session (5 h)        [############--------]  62 %  250,000 of 400,000 tokens",
        "next requested review: fits now; next automatic one: fits now",
        "queue: 0 waiting, 0 in work",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
