//! One comment per pull request: races, faults and people, each against the real program, a real store
//! and the GitHub double. Every story ends with one comment of ours and nobody else's touched.

#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use prwarden::double::{Action, Fault, Matcher, Moment, UserKind};
use prwarden::report::sticky::{MARKER, State, ViewOption, ticked};
use support::{BOT, MONA, PATIENCE, REPO, ROBOT, STRANGER, TOKEN, World, eventually};

const PATCH: &str = "PATCH";

/// A world that was polled once, so that what comes now is new.
fn watched() -> World {
    let world = World::new();
    world.once();
    world
}

/// A pull request with a finding of the built-in checks, reviewed once.
fn reviewed() -> (World, i64) {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    assert_eq!(world.round(number), 1);
    (world, number)
}

fn ask_again(world: &World, number: i64) {
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
}

/// The id of the one comment of ours.
fn ours(world: &World, number: i64) -> i64 {
    let comments = world.double.comments(REPO, number);
    let mut ours = comments.iter().filter(|comment| comment.author == BOT.1);
    let id = ours.next().unwrap().id;
    assert!(ours.next().is_none(), "{comments:#?}");
    id
}

fn body(world: &World, number: i64, id: i64) -> String {
    let comments = world.double.comments(REPO, number);
    comments.into_iter().find(|c| c.id == id).unwrap().body
}

/// Lets a publication that waits for its next attempt be tried now.
fn hasten(world: &World) {
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let sql = "UPDATE queue SET not_before = NULL WHERE kind IN ('publish', 'render')";
    store.execute(sql, []).unwrap();
}

#[test]
fn each_review_rewrites_the_same_comment() {
    let (world, number) = reviewed();
    let first = ours(&world, number);
    ask_again(&world, number);
    world.once();
    assert_eq!((ours(&world, number), world.round(number)), (first, 2));
    let body = body(&world, number, first);
    assert!(body.starts_with(MARKER), "{body}");
    assert!(State::read(&body).is_some(), "{body}");
}

#[test]
fn where_it_is_asked_for_each_review_gets_a_comment_of_its_own() {
    let world = World::new();
    world.configure("[publish]\nmode = \"per_review\"\n");
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    ask_again(&world, number);
    world.double.fault(Fault {
        matcher: Matcher::post(&format!("/issues/{number}/comments")),
        times: 1,
        action: Action::ResetAfter,
    });
    world.once();
    hasten(&world);
    world.once();
    let reviews = world.reviews(number);
    assert_eq!(reviews.len(), 2, "{reviews:#?}");
    assert!(reviews.iter().all(|body| !body.contains(MARKER)));
    assert_eq!(world.double.faults_left(), 0);
}

#[test]
fn a_create_whose_reply_is_lost_is_found_again() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    for action in [Action::ResetAfter, Action::TruncateBody] {
        world.double.fault(Fault {
            matcher: Matcher::post(&format!("/issues/{number}/comments")),
            times: 1,
            action,
        });
    }
    world.once();
    hasten(&world);
    world.once();
    assert_eq!(world.round(number), 1);
    let sql = "SELECT count(*) FROM runs WHERE publish_outcome = 'published'";
    assert_eq!(world.count(sql), 1);
}

#[test]
fn a_create_whose_process_dies_is_found_again() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    let hold = world.double.hold(
        Matcher::post(&format!("/issues/{number}/comments")),
        Moment::AfterApplied,
    );
    let mut process = world.start(&["once"]);
    assert!(hold.wait_until_parked(PATIENCE));
    process.kill();
    hold.release();
    world.once();
    assert_eq!(world.round(number), 1);
    assert_eq!(world.count("SELECT count(*) FROM ledger"), 1, "paid once");
}

#[test]
fn a_deleted_comment_is_made_again_by_the_next_review() {
    let (world, number) = reviewed();
    world.double.delete_comment(REPO, ours(&world, number));
    ask_again(&world, number);
    world.once();
    assert_eq!(world.round(number), 2);
}

#[test]
fn a_comment_that_a_person_edits_is_still_ours_and_is_rewritten() {
    let (world, number) = reviewed();
    let id = ours(&world, number);
    let edited = format!("A remark on top.\n\n{}", body(&world, number, id));
    world.double.edit_comment(REPO, id, &edited);
    ask_again(&world, number);
    world.once();
    assert_eq!((ours(&world, number), world.round(number)), (id, 2));
    assert!(!body(&world, number, id).contains("A remark on top."));
}

#[test]
fn what_others_quote_or_forge_is_never_touched() {
    let (world, number) = reviewed();
    let real = body(&world, number, ours(&world, number));
    world.double.delete_comment(REPO, ours(&world, number));
    let quoted = real
        .lines()
        .map(|line| format!("> {line}\n"))
        .collect::<String>();
    let mut others = Vec::new();
    for (author, text) in [
        (STRANGER.1, &real),
        (ROBOT.1, &real),
        (MONA.1, &quoted),
        (BOT.1, &quoted),
    ] {
        others.push((world.double.comment(REPO, number, author, text), text));
    }
    ask_again(&world, number);
    world.once();
    for (id, text) in others {
        assert_eq!(body(&world, number, id), **text);
    }
    let marked: Vec<_> = world
        .reviews(number)
        .into_iter()
        .filter(|body| body.starts_with(MARKER))
        .collect();
    assert_eq!(marked.len(), 1);
}

#[test]
fn a_hint_that_leads_to_somebody_elses_comment_is_forgotten() {
    let (world, number) = reviewed();
    let mine = ours(&world, number);
    let text = "mine, not yours";
    let theirs = world.double.comment(REPO, number, STRANGER.1, text);
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store
        .execute("UPDATE sticky_comments SET comment_id = ?1", [theirs])
        .unwrap();
    drop(store);
    ask_again(&world, number);
    world.once();
    assert_eq!((ours(&world, number), world.round(number)), (mine, 2));
    assert_eq!(body(&world, number, theirs), text);
    let sql = "SELECT comment_id FROM sticky_comments";
    assert_eq!(world.count(sql), mine, "the hint is right again");
}

#[test]
fn a_renamed_account_still_owns_its_comment() {
    let (world, number) = reviewed();
    let id = ours(&world, number);
    world.double.rename_user(BOT.1, "renamed-bot");
    ask_again(&world, number);
    world.once();
    let comments = world.double.comments(REPO, number);
    let marked: Vec<_> = comments
        .iter()
        .filter(|c| c.body.contains(MARKER))
        .collect();
    assert_eq!(marked.len(), 1, "{comments:#?}");
    assert_eq!(marked[0].id, id);
    assert_eq!(State::read(&marked[0].body).unwrap().round, 2);
}

#[test]
fn a_comment_behind_more_than_a_page_of_others_is_found() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    for n in 0..120 {
        let text = format!("comment {n}");
        world.double.comment(REPO, number, STRANGER.1, &text);
    }
    world.once();
    let id = ours(&world, number);
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store.execute("DELETE FROM sticky_comments", []).unwrap();
    drop(store);
    ask_again(&world, number);
    world.once();
    assert_eq!((ours(&world, number), world.round(number)), (id, 2));
    assert_eq!(world.double.comments(REPO, number).len(), 122);
}

#[test]
fn two_daemons_on_two_stores_end_with_one_comment() {
    for moment in [Moment::Before, Moment::AfterApplied] {
        let world = watched();
        let other = world.path("other.db");
        std::fs::copy(world.store(), &other).unwrap();
        let number = world.open_plain(MONA.1, "two");
        // Both find nothing; one's create is held until the other has created its own.
        let hold = world
            .double
            .hold(Matcher::post(&format!("/issues/{number}/comments")), moment);
        let config = std::fs::read_to_string(world.path("prwarden.toml")).unwrap();
        let mut first = world.start(&["once"]);
        assert!(hold.wait_until_parked(PATIENCE));
        let second = config
            .replace("state.db", "other.db")
            .replace("/cache\"", "/cache-2\"");
        std::fs::write(world.path("prwarden.toml"), second).unwrap();
        world.once();
        hold.release();
        assert!(first.0.wait().unwrap().success());
        assert_eq!(world.round(number), 1, "{moment:?}");
    }
}

#[test]
fn a_lease_that_lapses_during_a_slow_look_up_creates_nothing_twice() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    let hold = world.double.hold(
        Matcher::get(&format!("/issues/{number}/comments")).after(1),
        Moment::Before,
    );
    let mut process = world.start(&["once"]);
    assert!(hold.wait_until_parked(PATIENCE));
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let stolen = "UPDATE creation_leases SET token = 'another'";
    assert_eq!(store.execute(stolen, []).unwrap(), 1);
    drop(store);
    hold.release();
    process.0.wait().unwrap();
    assert!(
        world.reviews(number).is_empty(),
        "it does not write without"
    );
    let kept = "SELECT count(*) FROM creation_leases WHERE token = 'another'";
    assert_eq!(world.count(kept), 1, "another's lease is not given back");
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let lapsed = "UPDATE creation_leases SET expires_at = '2020-01-01T00:00:00.000000+00:00'";
    store.execute(lapsed, []).unwrap();
    drop(store);
    hasten(&world);
    world.once();
    assert_eq!(world.round(number), 1);
}

#[test]
fn an_older_review_never_overwrites_a_newer_one() {
    let (world, number) = reviewed();
    let first = ours(&world, number);
    // The older review's publication comes back after the newer one is visible.
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let key: String = store
        .query_row("SELECT dedupe_key FROM runs", [], |row| row.get(0))
        .unwrap();
    ask_again(&world, number);
    world.once();
    let newer = body(&world, number, first);
    store
        .execute_batch(&format!(
            "UPDATE runs SET published_at = NULL, publish_outcome = NULL WHERE dedupe_key = '{key}';
             UPDATE queue SET status = 'pending' WHERE dedupe_key = 'publish:{key}'"
        ))
        .unwrap();
    drop(store);
    world.once();
    assert_eq!(body(&world, number, first), newer);
    let sql = "SELECT count(*) FROM runs WHERE publish_outcome = 'superseded'";
    assert_eq!(world.count(sql), 1);
}

#[test]
fn ticking_a_box_shows_the_stored_review_otherwise_and_asks_no_engine() {
    let world = watched();
    let files = [(
        "notes.txt",
        "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n",
    )];
    let number = world.open(MONA.1, "conflict", &files);
    world.once();
    let id = ours(&world, number);
    let before = body(&world, number, id);
    assert!(!before.contains("[x]"), "{before}");
    let spent = world.count("SELECT count(*) FROM ledger");
    let box_of = "- [ ] <!-- prwarden:option brief -->";
    assert!(before.contains(box_of), "{before}");
    let ticked_box = box_of.replace("[ ]", "[x]");
    world
        .double
        .edit_comment(REPO, id, &before.replace(box_of, &ticked_box));
    world.double.clear_requests();
    world.once();
    let after = body(&world, number, id);
    assert!(ticked(&after).contains(&ViewOption::Brief), "{after}");
    assert!(after.len() < before.len(), "explanations are gone: {after}");
    let state = State::read(&after).unwrap();
    assert!(state.options.contains(&ViewOption::Brief));
    assert_eq!(world.count("SELECT count(*) FROM ledger"), spent);
    let patches = || {
        let requests = world.double.requests();
        requests.iter().filter(|r| r.method == PATCH).count()
    };
    assert_eq!(patches(), 1);
    world.once();
    world.once();
    assert_eq!(patches(), 1, "our own edit is no tick");
    // The choice outlives the next review.
    ask_again(&world, number);
    world.once();
    let body = body(&world, number, id);
    assert_eq!(State::read(&body).unwrap().round, 2);
    assert!(ticked(&body).contains(&ViewOption::Brief));
}

#[test]
fn a_finding_keeps_its_number_over_rounds_and_what_is_gone_can_be_shown() {
    let world = World::new();
    world.configure("");
    let conflict = "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n";
    world.once();
    let files = [("a.txt", conflict), ("b.txt", conflict)];
    let number = world.open(MONA.1, "conflict", &files);
    world.once();
    let id = ours(&world, number);
    let second = |text: &str| {
        let lines = text.lines().filter(|line| line.contains("b.txt"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = second(&body(&world, number, id));
    world
        .git
        .commit("conflict", &[("a.txt", "one\n")], "Mend")
        .unwrap();
    world.double.push(REPO, number);
    ask_again(&world, number);
    world.once();
    let text = body(&world, number, id);
    let number_of = |lines: &[String]| lines[0].split('.').next().unwrap().to_owned();
    assert_eq!(number_of(&second(&text)), number_of(&first), "{text}");
    assert!(text.contains("of earlier rounds that are gone"), "{text}");
    assert!(!text.contains("a.txt"), "{text}");
    let box_of = "- [ ] <!-- prwarden:option gone -->";
    world.double.edit_comment(
        REPO,
        id,
        &text.replace(box_of, &box_of.replace("[ ]", "[x]")),
    );
    world.once();
    let text = body(&world, number, id);
    assert!(text.contains("a.txt"), "{text}");
}

#[test]
fn every_refusal_to_post_ends_as_designed() {
    for (status, text, given_up) in [
        (
            403,
            "Unable to create comment because issue is locked.",
            false,
        ),
        (404, "Not Found", true),
        (410, "Gone", true),
        (422, "Validation Failed", true),
        (502, "Bad Gateway", false),
    ] {
        let world = watched();
        let number = world.open_plain(MONA.1, "two");
        world.double.fault(Fault {
            matcher: Matcher::post(&format!("/issues/{number}/comments")),
            times: 1,
            action: Action::Status {
                code: status,
                headers: Vec::new(),
                body: format!("{{\"message\":\"{text}\"}}"),
            },
        });
        world.once();
        assert_eq!(world.double.faults_left(), 0, "{status}");
        let failed = "SELECT count(*) FROM runs WHERE publish_failed_at IS NOT NULL";
        assert_eq!(world.count(failed), i64::from(given_up), "{status}");
        let counted = "SELECT publish_attempts FROM runs";
        assert_eq!(world.count(counted), i64::from(!given_up), "{status}");
        assert!(world.reviews(number).is_empty(), "{status}");
        let run = |args: &[&str]| {
            let output = world.command(args).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let screen = run(&["status"]);
        assert_eq!(screen.contains("queue publish"), given_up, "{screen}");
        if given_up {
            let list = run(&["queue", "list"]);
            let key = list
                .lines()
                .find(|line| line.contains("unpublished"))
                .and_then(|line| line.split_whitespace().next())
                .unwrap_or_else(|| panic!("{list}"));
            run(&["queue", "publish", key]);
        } else {
            hasten(&world);
        }
        world.once();
        assert_eq!(world.round(number), 1, "{status}");
        assert_eq!(world.count("SELECT count(*) FROM ledger"), 1, "paid once");
    }
}

#[test]
fn attempts_that_are_used_up_end_in_the_status_and_can_be_put_back() {
    let world = World::new();
    world.configure("[publish]\nmax_publish_attempts = 2\n");
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.double.fault(Fault {
        matcher: Matcher::post(&format!("/issues/{number}/comments")),
        times: 3,
        action: Action::ResetBefore,
    });
    for _ in 0..3 {
        world.once();
        hasten(&world);
    }
    let failed = "SELECT count(*) FROM runs WHERE publish_failed_at IS NOT NULL";
    assert_eq!(world.count(failed), 1);
    world.double.clear_faults();
    let missing = world
        .command(&["queue", "publish", "no-such-key"])
        .output()
        .unwrap();
    assert!(!missing.status.success());
    let key = "SELECT 1 FROM runs";
    assert_eq!(world.count(key), 1);
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let key: String = store
        .query_row("SELECT dedupe_key FROM runs", [], |row| row.get(0))
        .unwrap();
    drop(store);
    let output = world.command(&["queue", "publish", &key]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    world.once();
    assert_eq!(world.round(number), 1);
}

#[test]
fn sighup_puts_changed_rules_of_publishing_in_force() {
    use nix::sys::signal::{Signal, kill};
    let world = World::new();
    let rest = "[poll]\nfloor_seconds = 1\nceiling_seconds = 1\n";
    world.configure(&format!("{rest}[publish]\ndry_run = true\n"));
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let daemon = world.start(&["run"]);
    let dry = "SELECT count(*) FROM runs WHERE publish_outcome = 'dry_run'";
    eventually("the dry run", || world.count(dry) == 1);
    world.configure(rest);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(daemon.0.id()).unwrap());
    kill(pid, Signal::SIGHUP).unwrap();
    let log = || std::fs::read_to_string(world.path("background.log")).unwrap();
    eventually("the reload", || log().contains("were reloaded"));
    assert!(!log().contains("needs a restart"), "{}", log());
    assert!(world.reviews(number).is_empty());
    ask_again(&world, number);
    eventually("the comment", || !world.reviews(number).is_empty());
    assert_eq!(world.round(number), 2);
}

#[test]
fn two_workers_of_one_daemon_make_one_comment() {
    let world = World::new();
    world.configure("[worker]\ncount = 8\n[budget]\nmin_mention_interval_seconds = 0\n");
    world.once();
    let number = world.open_plain(MONA.1, "two");
    for _ in 0..6 {
        ask_again(&world, number);
    }
    let _daemon = world.start(&["run"]);
    let waiting = "SELECT count(*) FROM queue WHERE status IN ('pending', 'claimed')";
    eventually("the queue is empty", || {
        std::thread::sleep(Duration::from_millis(200));
        !world.reviews(number).is_empty() && world.count(waiting) == 0
    });
    world.round(number);
}

#[test]
fn an_app_that_may_not_ask_who_it_is_touches_no_other_bots_comment() {
    let world = World::new();
    world.double.add_user(955, "warden[bot]", UserKind::Bot);
    world.double.set_token(TOKEN, "warden[bot]");
    world.double.fault(Fault {
        matcher: Matcher::get("/user"),
        times: 1000,
        action: Action::Status {
            code: 403,
            headers: Vec::new(),
            body: "{\"message\":\"Resource not accessible by integration\"}".to_owned(),
        },
    });
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let text = format!("{MARKER}\nanother robot's");
    let theirs = world.double.comment(REPO, number, ROBOT.1, &text);
    world.once();
    ask_again(&world, number);
    world.once();
    let comments = world.double.comments(REPO, number);
    let mut of_app = comments.iter().filter(|c| c.author == "warden[bot]");
    let own = of_app.next().unwrap();
    assert!(of_app.next().is_none(), "{comments:#?}");
    assert_eq!(State::read(&own.body).unwrap().round, 2);
    assert_eq!(body(&world, number, theirs), text);
}
