//! What is told on a pull request when there is nothing to show: once, with the setting, in fixed words.

#![allow(clippy::unwrap_used)]

mod support;

use prwarden::double::{Action, Fault, Matcher, Moment};
use prwarden::report::sticky::{MARKER, State};
use support::{MONA, PATIENCE, REPO, World};

const BUDGET: &str = "[budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\n\
                      min_review_interval_seconds = 0\nmin_mention_interval_seconds = 0\n";

/// The only comment of ours.
fn told(world: &World, number: i64) -> String {
    let mut ours = world.reviews(number);
    assert_eq!(ours.len(), 1, "{ours:#?}");
    ours.remove(0)
}

fn ask_again(world: &World, number: i64) {
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
}

/// Reviews each new head, too.
fn review_pushes(world: &World) {
    let path = world.path("prwarden.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("[triggers]\n", "[triggers]\non_push = true\n");
    std::fs::write(path, text).unwrap();
}

fn hasten(world: &World) {
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store
        .execute("UPDATE queue SET not_before = NULL", [])
        .unwrap();
}

#[test]
fn a_change_that_is_too_large_is_told_with_its_numbers_and_settings() {
    let world = World::new();
    world.configure("[budget]\nmax_changed_lines = 10\n");
    world.once();
    let number = world.open("mona", "two", &[("src/two.rs", &"// more\n".repeat(11))]);
    world.once();
    let body = told(&world, number);
    assert!(body.starts_with(MARKER), "{body}");
    for part in [
        "was not reviewed",
        "1 file and 11 lines",
        "at most 100 files",
        "10 lines (`budget.max_changed_lines`)",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert_eq!(
        world.count("SELECT count(*) FROM queue WHERE status = 'abandoned'"),
        1
    );
    world.once();
    assert_eq!(world.count("SELECT count(*) FROM runs"), 1, "told once");
}

#[test]
fn far_too_large_a_change_is_told_before_anything_is_fetched() {
    let world = World::new();
    world.configure("[budget]\nmax_changed_lines = 10\n");
    world.once();
    let number = world.open("mona", "two", &[("src/two.rs", &"// more\n".repeat(101))]);
    world.double.clear_requests();
    world.once();
    assert!(told(&world, number).contains("1 file and 101 lines"));
    let requests = world.double.requests();
    assert!(requests.iter().all(|one| !one.path.contains("info/refs")));
}

#[test]
fn a_notice_stands_above_the_last_review_and_the_next_review_takes_its_place() {
    let world = World::new();
    world.configure("[budget]\nmax_changed_lines = 10\n");
    review_pushes(&world);
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    assert_eq!(world.round(number), 1);
    for (text, lines) in [("// more\n".repeat(20), 20), ("// more\n".repeat(30), 30)] {
        world
            .git
            .commit("two", &[("src/two.rs", &text)], "More")
            .unwrap();
        world.double.push(REPO, number);
        world.once();
        let body = told(&world, number);
        let notice = body.find(&format!("{lines} lines;"));
        let notice = notice.unwrap_or_else(|| panic!("{lines}: {body}"));
        let review = body.find("review of pull request 1, round 1").unwrap();
        assert!(notice < review, "{body}");
    }
    world
        .git
        .commit("two", &[("src/two.rs", "// less\n")], "Less")
        .unwrap();
    world.double.push(REPO, number);
    world.once();
    assert_eq!(world.round(number), 2);
    assert!(!told(&world, number).contains("was not reviewed"));
}

#[test]
fn a_comment_for_each_review_tells_an_automatic_refusal_once_and_answers_each_person() {
    let world = World::new();
    world.configure(
        "[publish]\nmode = \"per_review\"\n\
         [budget]\nmax_changed_lines = 10\nmin_mention_interval_seconds = 0\n",
    );
    review_pushes(&world);
    world.once();
    let number = world.open("mona", "two", &[("src/two.rs", &"// more\n".repeat(20))]);
    world.once();
    assert!(!told(&world, number).contains(MARKER));
    let text = "// more\n".repeat(30);
    world
        .git
        .commit("two", &[("src/two.rs", &text)], "More")
        .unwrap();
    world.double.push(REPO, number);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
    ask_again(&world, number);
    world.double.fault(Fault {
        matcher: Matcher::post(&format!("/issues/{number}/comments")),
        times: 1,
        action: Action::ResetAfter,
    });
    world.once();
    hasten(&world);
    world.once();
    let ours = world.reviews(number);
    assert_eq!(ours.len(), 2, "{ours:#?}");
    assert!(ours[1].contains("1 file and 30 lines"));
    assert_eq!(world.double.faults_left(), 0);
}

#[test]
fn nothing_to_look_at_is_told() {
    let world = World::new();
    world.once();
    let number = world.open("mona", "two", &[("Cargo.lock", "# nothing\n")]);
    world.once();
    assert!(told(&world, number).contains("`budget.default_exclusions`"));
}

#[test]
fn an_estimate_above_the_reservation_is_told() {
    let world = World::new();
    let engine = world.script("engine", "#!/bin/sh\nexit 1\n");
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\n{BUDGET}max_run_tokens = \"1k\"\n",
        engine.display()
    ));
    world.once();
    let number = world.open("mona", "two", &[("src/two.rs", &"// more\n".repeat(100))]);
    world.once();
    let body = told(&world, number);
    let wanted = "100 lines is estimated to need 4,000 tokens; 1,000 are reserved";
    assert!(body.contains(wanted), "{body}");
    assert!(body.contains("`budget.max_run_tokens`"), "{body}");
}

#[test]
fn only_the_last_failed_attempt_is_told_and_never_in_the_engines_words() {
    let world = World::new();
    let engine = world.script("engine", "#!/bin/sh\necho 'ask @mona to pay' >&2\nexit 1\n");
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\n[worker]\nmax_attempts = 2\n\
         {BUDGET}max_run_tokens = \"100k\"\n",
        engine.display()
    ));
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    assert!(world.reviews(number).is_empty());
    hasten(&world);
    world.once();
    let body = told(&world, number);
    assert!(
        body.contains("tried 2 times (`worker.max_attempts`)"),
        "{body}"
    );
    assert!(!body.contains("mona") && !body.contains("pay"), "{body}");
    assert_eq!(State::read(&body).unwrap().round, 0);
    assert_eq!(
        world.count("SELECT count(*) FROM queue WHERE status = 'abandoned'"),
        1
    );
}

#[test]
fn an_attempt_that_nobody_ended_is_told_when_it_was_the_last() {
    let world = World::new();
    world.configure("[worker]\nmax_attempts = 1\n");
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let hold = world
        .double
        .hold(Matcher::get("/info/refs"), Moment::Before);
    let mut process = world.start(&["once"]);
    assert!(hold.wait_until_parked(PATIENCE));
    process.kill();
    hold.release();
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let lapse = "UPDATE queue SET leased_until = enqueued_at WHERE status = 'claimed'";
    store.execute(lapse, []).unwrap();
    world.once();
    let body = told(&world, number);
    assert!(
        body.contains("prwarden was ended in the middle of it"),
        "{body}"
    );
}

#[test]
fn a_command_that_is_off_is_refused_in_a_comment_of_its_own() {
    let world = World::new();
    world.once();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden merge");
    world.once();
    let ours = world.reviews(number);
    assert_eq!(ours.len(), 2, "{ours:#?}");
    assert!(ours[1].contains("The command `merge` is not switched on here."));
    assert!(ours[0].starts_with(MARKER) && !ours[0].contains("switched"));
}
