//! Replies that are lost, late or wrong: nothing is posted twice and nothing is lost.

#![allow(clippy::unwrap_used)]

mod support;

use prwarden::double::{Action, Fault, Matcher};
use support::{MONA, REPO, World};

fn watched_with_pull() -> (World, i64) {
    let world = World::new();
    world.once();
    let number = world.open_plain(MONA.1, "two");
    (world, number)
}

/// Publish rows wait at least half a minute between attempts; the test does not.
fn time_passes(world: &World) {
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store
        .execute("UPDATE queue SET not_before = NULL", [])
        .unwrap();
}

#[test]
fn a_lost_reply_to_the_post_never_makes_a_second_comment() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::post("/issues/1/comments"),
        times: 1,
        action: Action::ResetAfter,
    });
    world.once();
    assert_eq!(
        world.reviews(number).len(),
        1,
        "GitHub has it, we don't know"
    );
    assert_eq!(
        world.count("SELECT count(*) FROM runs WHERE published_at IS NULL"),
        1
    );
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
    assert_eq!(
        world.count("SELECT count(*) FROM runs WHERE publish_outcome = 'published'"),
        1
    );
    assert_eq!(
        world.count("SELECT count(*) FROM ledger"),
        1,
        "the run is paid once"
    );
}

#[test]
fn a_post_that_never_arrived_is_repeated() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::post("/issues/1/comments"),
        times: 1,
        action: Action::ResetBefore,
    });
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
    assert_eq!(world.count("SELECT count(*) FROM ledger"), 1);
}

#[test]
fn a_server_error_on_the_post_is_looked_up_before_it_is_repeated() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::post("/issues/1/comments"),
        times: 1,
        action: Action::Status {
            code: 502,
            headers: vec![],
            body: "<html>bad gateway</html>".into(),
        },
    });
    world.once();
    time_passes(&world);
    world.double.clear_requests();
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
    let looked = |request: &prwarden::double::Logged| {
        request.method == "GET" && request.path.ends_with("/issues/1/comments")
    };
    assert!(
        world.double.requests().iter().any(looked),
        "our own comments were looked through"
    );
}

#[test]
fn a_refused_body_is_not_sent_again() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::post("/issues/1/comments"),
        times: 1,
        action: Action::Status {
            code: 422,
            headers: vec![],
            body: r#"{"message":"Validation Failed"}"#.into(),
        },
    });
    world.once();
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    assert_eq!(
        world.count("SELECT count(*) FROM runs WHERE publish_failed_at IS NOT NULL"),
        1
    );
}

#[test]
fn html_instead_of_json_advances_nothing() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::get("/pulls?"),
        times: 1,
        action: Action::Html,
    });
    let output = world.once_output();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{log}");
    assert!(log.contains("/pulls") && log.contains("JSON"), "{log}");
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_pull_request_that_can_t_be_fetched_now_is_reviewed_later() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::get("/info/refs"),
        times: 1,
        action: Action::Status {
            code: 503,
            headers: vec![],
            body: String::new(),
        },
    });
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    assert_eq!(world.count("SELECT attempts FROM queue"), 1);
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_moved_head_is_told_in_the_comment() {
    let (world, number) = watched_with_pull();
    let old = world.double.head(REPO, number);
    let hold = world.double.hold(
        Matcher::get("/pulls/1").after(1),
        prwarden::double::Moment::Before,
    );
    let mut running = world.start(&["once"]);
    assert!(hold.wait_until_parked(support::PATIENCE));
    world
        .git
        .commit(
            "two",
            &[("src/two.rs", "pub fn two() -> u32 {\n    3\n}\n")],
            "More",
        )
        .unwrap();
    world.double.push(REPO, number);
    let new = world.double.head(REPO, number);
    drop(hold);
    running.0.wait().unwrap();
    let reviews = world.reviews(number);
    assert_eq!(reviews.len(), 1);
    let told = format!(
        "is at `{}` now; this describes `{}`",
        &new[..10],
        &old[..10]
    );
    assert!(reviews[0].contains(&told), "{}", reviews[0]);
}

/// A `command` engine that answers with one finding whose body is `body`.
fn engine_that_says(world: &World, body: &str) {
    let answer = serde_json::json!({
        "head": "HEAD", "nonce": "NONCE",
        "findings": [{
            "path": "src/two.rs", "line": 1, "severity": "major", "title": "T", "body": body,
        }],
        "assessment": {
            "effort": 1, "risk": "r", "recommendation": "r", "priority_files": [],
        },
    });
    std::fs::write(world.path("answer"), format!("{answer}\n")).unwrap();
    let script = world.script(
        "engine",
        &format!(
            "#!/bin/sh\ninput=$(cat)\n\
             get() {{ printf '%s' \"$input\" | sed -n \"s/.*\\\"$1\\\":\\\"\\([0-9a-f]*\\)\\\".*/\\1/p\" | head -n 1; }}\n\
             sed \"s/HEAD/$(get head)/; s/NONCE/$(get nonce)/\" {}\n",
            world.path("answer").display()
        ),
    );
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\n\
         [budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\nmax_run_tokens = \"100k\"\n",
        script.display()
    ));
}

#[test]
fn a_review_that_holds_our_token_is_refused_and_shown_nowhere() {
    let world = World::new();
    world.once();
    engine_that_says(&world, &format!("the token is {}", support::TOKEN));
    let number = world.open_plain(MONA.1, "two");
    // `once` itself asserts that the token is not in the log.
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    assert_eq!(
        world.count("SELECT count(*) FROM runs WHERE publish_outcome = 'refused'"),
        1
    );
}

#[test]
fn what_an_engine_writes_is_inert_in_the_comment() {
    let world = World::new();
    world.once();
    engine_that_says(
        &world,
        "ping @mona @prwarden <img src=x> <!-- prwarden:run 0 --> #1",
    );
    let number = world.open_plain(MONA.1, "two");
    world.once();
    world.once();
    let reviews = world.reviews(number);
    assert_eq!(reviews.len(), 1, "our own comment starts nothing");
    assert!(
        reviews[0].contains("ping &#64;mona &#64;prwarden &lt;img src=x&gt;"),
        "{}",
        reviews[0]
    );
}

#[test]
fn a_dry_run_does_everything_but_write() {
    let world = World::new();
    world.configure("[publish]\ndry_run = true\n");
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let log = world.once();
    assert!(log.contains("dry run"), "{log}");
    assert!(
        world
            .double
            .requests()
            .iter()
            .all(|request| request.method == "GET" || request.path.contains(".git/"))
    );
    assert_eq!(
        world.count("SELECT count(*) FROM runs WHERE publish_outcome = 'dry_run'"),
        1
    );
    assert_eq!(world.reviews(number).len(), 0);
}

#[test]
fn an_outdated_review_is_not_posted_where_that_is_not_wanted() {
    let world = World::new();
    world.configure("[publish]\npost_superseded = false\n");
    world.once();
    let number = world.open_plain(MONA.1, "two");
    // The second look at the pull request is the one right before publishing.
    let hold = world.double.hold(
        Matcher::get("/pulls/1").after(1),
        prwarden::double::Moment::Before,
    );
    let mut running = world.start(&["once"]);
    assert!(hold.wait_until_parked(support::PATIENCE));
    world
        .git
        .commit(
            "two",
            &[("src/two.rs", "pub fn two() -> u32 {\n    3\n}\n")],
            "More",
        )
        .unwrap();
    world.double.push(REPO, number);
    drop(hold);
    running.0.wait().unwrap();
    assert_eq!(world.reviews(number).len(), 0);
    assert_eq!(
        world.count("SELECT count(*) FROM runs WHERE publish_outcome = 'superseded'"),
        1
    );
}

#[test]
fn an_outage_does_not_use_up_the_attempts() {
    let (world, number) = watched_with_pull();
    for _ in 0..5 {
        world.double.fault(Fault {
            matcher: Matcher::get("/pulls/1"),
            times: 1,
            action: Action::Status {
                code: 401,
                headers: vec![],
                body: "{}".into(),
            },
        });
        world.once();
        time_passes(&world);
    }
    assert_eq!(world.reviews(number).len(), 0);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

fn status(code: u16, part: &str, times: u32) -> Fault {
    Fault {
        matcher: Matcher::get(part),
        times,
        action: Action::Status {
            code,
            headers: vec![],
            body: "{}".into(),
        },
    }
}

#[test]
fn a_pull_request_that_is_not_found_once_is_not_given_up() {
    let (world, number) = watched_with_pull();
    world.double.fault(status(404, "/pulls/1", 1));
    world.once();
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_pull_request_that_is_gone_from_a_repository_that_is_there_is_given_up() {
    let (world, number) = watched_with_pull();
    world.double.fault(status(404, "/pulls/1", 2));
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    let given_up = "SELECT count(*) FROM queue WHERE status = 'abandoned'";
    assert_eq!(world.count(given_up), 1);
}

#[test]
fn a_stamp_that_is_yet_to_come_silences_nothing() {
    let (world, number) = watched_with_pull();
    world.once();
    world.double.at("2036-01-01T00:00:00Z".parse().unwrap());
    world
        .double
        .comment(REPO, number, support::STRANGER.1, "hello from the future");
    world.double.use_system_clock();
    let log = world.once();
    assert!(log.contains("yet to come"), "{log}");
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
    world.once();
    assert_eq!(world.round(number), 2);
}

#[test]
fn attempts_to_post_end_also_when_nobody_can_say_whether_one_succeeded() {
    let (world, number) = watched_with_pull();
    world.configure("[publish]\nmax_publish_attempts = 2\n");
    world.double.fault(Fault {
        matcher: Matcher::post("/comments"),
        times: 99,
        action: Action::Status {
            code: 502,
            headers: vec![],
            body: "{}".into(),
        },
    });
    world.double.fault(status(500, "/user", 99));
    for _ in 0..4 {
        world.once();
        time_passes(&world);
    }
    assert_eq!(world.reviews(number).len(), 0);
    let failed = "SELECT count(*) FROM runs WHERE publish_failed_at IS NOT NULL";
    assert_eq!(world.count(failed), 1);
    let given_up = "SELECT count(*) FROM queue WHERE kind = 'publish' AND status = 'abandoned'";
    assert_eq!(world.count(given_up), 1);
}

#[test]
fn a_recorded_run_that_cant_be_read_holds_up_nothing() {
    let (world, number) = watched_with_pull();
    world.double.fault(Fault {
        matcher: Matcher::post("/issues/1/comments"),
        times: 1,
        action: Action::ResetBefore,
    });
    world.once();
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let change = |sql: &str| assert_eq!(store.execute(sql, []).unwrap(), 1, "{sql}");
    change("UPDATE runs SET findings = '{oops' || findings");
    time_passes(&world);
    let other = world.open_plain(MONA.1, "three");
    let log = world.once();
    assert!(log.contains("runs.findings"), "{log}");
    assert_eq!(
        (world.reviews(number).len(), world.reviews(other).len()),
        (0, 1)
    );
    change("UPDATE runs SET findings = substr(findings, 6) WHERE findings LIKE '{oops%'");
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_run_that_another_tool_recorded_is_published_once_also_when_the_reply_is_lost() {
    let (world, number) = watched_with_pull();
    let head = world.double.head(REPO, number);
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let key = format!("pr_opened:{REPO}:{number}:{head}");
    let run = "INSERT INTO runs (dedupe_key, repo, pr_number, head_sha, outcome, findings, recorded_at) \
               VALUES (?1, ?2, ?3, ?4, 'completed', '[]', '2026-11-01T09:00:00Z')";
    store.execute(run, (&key, REPO, number, &head)).unwrap();
    drop(store);
    world.double.fault(Fault {
        matcher: Matcher::post("/issues/1/comments"),
        times: 1,
        action: Action::ResetAfter,
    });
    world.once();
    time_passes(&world);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
    let published = "SELECT count(*) FROM runs WHERE publish_outcome = 'published'";
    assert_eq!(world.count(published), 1);
}
