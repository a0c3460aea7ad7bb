//! A process that is killed at any point of a cycle: after a restart the review is there exactly
//! once, and nothing is left behind.

#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::MetadataExt;

use prwarden::double::{Hold, Matcher, Moment};
use support::{MONA, PATIENCE, Running, World, eventually};

/// Kills a cycle while GitHub holds the request that `matcher` names at `moment`.
fn killed_while_held(name: &str, matcher: Matcher, moment: Moment) {
    let world = World::new();
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let hold: Hold = world.double.hold(matcher, moment);
    let mut running = world.start(&["once"]);
    assert!(
        hold.wait_until_parked(PATIENCE),
        "{name}: the request never came"
    );
    running.kill();
    hold.release();
    recovers(name, &world, number);
}

/// After the crash, restarts bring exactly one review and leave nothing behind.
fn recovers(name: &str, world: &World, number: i64) {
    eventually(
        &format!("{name}: processes of the dead cycle are gone"),
        || world.processes().is_empty(),
    );
    world.once();
    world.once();
    assert_eq!(world.reviews(number).len(), 1, "{name}: exactly one review");
    assert_eq!(world.leftovers(), Vec::<String>::new(), "{name}");
    assert_eq!(world.processes(), Vec::<String>::new(), "{name}");
    assert_eq!(
        world.count("SELECT count(*) FROM ledger WHERE settled_at IS NULL"),
        0,
        "{name}"
    );
    let completed = world.count("SELECT count(*) FROM ledger WHERE stop_reason = 'completed'");
    assert_eq!(completed, 1, "{name}: one run is paid");
    assert_eq!(
        world.count("SELECT count(*) FROM queue WHERE status IN ('pending', 'claimed')"),
        0
    );
    let output = world.command(&["db", "check"]).output().unwrap();
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn killed_during_the_poll() {
    killed_while_held("poll", Matcher::get("/pulls?"), Moment::Before);
}

#[test]
fn killed_while_the_reply_of_the_poll_is_on_its_way() {
    killed_while_held(
        "poll reply",
        Matcher::get("/issues/comments?"),
        Moment::AfterApplied,
    );
}

#[test]
fn killed_between_the_response_and_its_commit() {
    let world = World::new();
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.double.clear_requests();
    let lock = rusqlite::Connection::open(world.store()).unwrap();
    // start-up itself writes, so the lock is taken only once the first request is parked
    let hold = world.double.hold(Matcher::get("/pulls?"), Moment::Before);
    let mut running = world.start(&["once"]);
    assert!(hold.wait_until_parked(PATIENCE));
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    hold.release();
    eventually("the response was sent", || {
        !world.double.requests().is_empty()
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.kill();
    lock.execute_batch("ROLLBACK").unwrap();
    drop(lock);
    recovers("commit", &world, number);
}

#[test]
fn killed_right_after_the_claim() {
    killed_while_held("claim", Matcher::get("/pulls/1"), Moment::Before);
}

#[test]
fn killed_during_the_acknowledgement() {
    killed_while_held("reaction", Matcher::post("/reactions"), Moment::Before);
}

#[test]
fn killed_while_git_asks_for_refs() {
    killed_while_held("info/refs", Matcher::get("/info/refs"), Moment::Before);
}

#[test]
fn killed_while_git_fetches() {
    killed_while_held(
        "upload-pack",
        Matcher::post("/git-upload-pack"),
        Moment::Before,
    );
}

#[test]
fn killed_while_the_engine_runs() {
    let world = World::new();
    let engine = world.script(
        "engine",
        "#!/bin/sh\nif mkdir \"$MARK\" 2>/dev/null; then setsid sleep 600 & sleep 600; fi\n\
         exec \"$PRWARDEN\" sample-engine\n",
    );
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\nenv = [\"MARK\", \"PRWARDEN\"]\n\
         [budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\nmax_run_tokens = \"100k\"\n",
        engine.display()
    ));
    let mark = world.path("started");
    let start = |world: &World| {
        let mut command = world.command(&["once"]);
        command
            .env("MARK", &mark)
            .env("PRWARDEN", env!("CARGO_BIN_EXE_prwarden"));
        command
    };
    assert!(start(&world).status().unwrap().success());
    let number = world.open_plain(MONA.1, "two");
    let mut running = Running(start(&world).spawn().unwrap());
    eventually("the engine runs", || mark.exists());
    running.kill();
    eventually("nothing outlives the daemon", || {
        world.processes().is_empty()
    });
    assert!(start(&world).status().unwrap().success());
    assert!(start(&world).status().unwrap().success());
    assert_eq!(world.reviews(number).len(), 1);
    assert_eq!(world.leftovers(), Vec::<String>::new());
    // Two attempts reached the engine: the killed one stays charged in full.
    assert_eq!(world.count("SELECT count(*) FROM ledger"), 2);
    assert_eq!(
        world.count("SELECT used_tokens FROM ledger WHERE stop_reason = 'lost'"),
        100_000
    );
}

#[test]
fn killed_while_the_head_is_read_again() {
    killed_while_held("head", Matcher::get("/pulls/1").after(1), Moment::Before);
}

#[test]
fn killed_while_the_comment_is_on_its_way() {
    killed_while_held("post", Matcher::post("/issues/1/comments"), Moment::Before);
}

#[test]
fn killed_after_the_comment_was_accepted_and_before_its_reply() {
    killed_while_held(
        "reply",
        Matcher::post("/issues/1/comments"),
        Moment::AfterApplied,
    );
}

#[test]
fn the_store_is_readable_by_its_owner_only() {
    let world = World::new();
    world.once();
    for name in ["state.db", "state.db.lock"] {
        let mode = std::fs::metadata(world.path(name)).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}
