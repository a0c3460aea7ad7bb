//! From a pull request on GitHub to one comment under it, through the real program.

#![allow(clippy::unwrap_used)]

mod support;

use support::{BOT, MONA, REPO, ROBOT, STRANGER, World, pull};

/// A world whose streams were seeded by a first, empty cycle.
fn watched() -> World {
    let world = World::new();
    world.once();
    world.double.clear_requests();
    world
}

#[test]
fn a_new_pull_request_gets_one_reaction_and_one_comment() {
    let world = watched();
    let number = world.open(
        MONA.1,
        "leak",
        &[("notes.md", "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n")],
    );
    world.once();
    let reviews = world.reviews(number);
    assert_eq!(reviews.len(), 1, "{reviews:?}");
    assert!(reviews[0].contains("onflict marker"), "{}", reviews[0]);
    assert_eq!(
        world.double.pull_reactions(REPO, number),
        [(BOT.1.to_owned(), "eyes".to_owned())]
    );
    assert_eq!(
        world.count("SELECT count(*) FROM ledger WHERE stop_reason = 'completed'"),
        1
    );
}

#[test]
fn a_second_cycle_makes_three_304s_and_nothing_else() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    // Our own comment is new to the poller once.
    world.once();
    world.double.clear_requests();
    world.once();
    let requests = world.double.requests();
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [304, 304, 304], "{requests:#?}");
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_mention_gets_a_second_review() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    let comment = world
        .double
        .comment(REPO, number, MONA.1, "Thanks. @prwarden review please");
    world.once();
    assert_eq!(world.round(number), 2);
    assert_eq!(
        world.double.comment_reactions(REPO, comment),
        [(BOT.1.to_owned(), "eyes".to_owned())]
    );
}

#[test]
fn a_mention_in_a_review_comment_is_heard() {
    let world = watched();
    let number = world.open_plain(STRANGER.1, "two");
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    world.double.review_comment(
        REPO,
        number,
        MONA.1,
        "src/two.rs",
        1,
        "@prwarden what about this?",
    );
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn what_is_no_request_gets_no_review_and_the_log_says_why() {
    for (author, body, reason) in [
        (MONA.1, "```\n@prwarden review\n```", "no_mention"),
        (MONA.1, "> @prwarden review", "no_mention"),
        (MONA.1, "ask `@prwarden` yourself", "no_mention"),
        (MONA.1, "mail me at me@prwarden.example", "no_mention"),
        (STRANGER.1, "@prwarden review", "commenter_not_allowlisted"),
        (ROBOT.1, "@prwarden review", "bot_commenter"),
    ] {
        let world = watched();
        let number = world.open_plain(STRANGER.1, "two");
        world.double.comment(REPO, number, author, body);
        let log = world.once();
        assert!(
            log.contains(reason),
            "{reason} for {body:?} is not in the log:\n{log}"
        );
        assert_eq!(world.reviews(number).len(), 0, "{body:?} by {author}");
        assert_eq!(world.count("SELECT count(*) FROM ledger"), 0);
    }
}

#[test]
fn a_stranger_s_pull_request_is_not_reviewed_and_the_log_says_why() {
    let world = watched();
    let number = world.open_plain(STRANGER.1, "two");
    let log = world.once();
    assert!(log.contains("author_not_allowlisted"), "{log}");
    assert_eq!(world.reviews(number).len(), 0);
}

#[test]
fn a_mention_on_a_closed_pull_request_costs_nothing() {
    let world = watched();
    let number = world.open_plain(STRANGER.1, "two");
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
    world.double.close(REPO, number);
    let log = world.once();
    assert!(
        log.contains("pr_not_open") || log.contains("closed"),
        "{log}"
    );
    assert_eq!(world.reviews(number).len(), 0);
    assert_eq!(
        world.count("SELECT coalesce(sum(used_tokens), 0) FROM ledger"),
        0
    );
}

#[test]
fn a_draft_is_reviewed_when_it_becomes_ready() {
    let world = watched();
    world.branch("two", &[("two.txt", "two\n")]);
    let mut draft = pull(MONA.1, "two");
    draft.draft = true;
    let number = world.double.open_pull(REPO, draft);
    let log = world.once();
    assert!(log.contains("draft"), "{log}");
    assert_eq!(world.reviews(number).len(), 0);
    world.double.ready(REPO, number);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_burst_of_250_comments_hides_no_mention() {
    let world = watched();
    let number = world.open_plain(STRANGER.1, "two");
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
    for n in 0..249 {
        world
            .double
            .comment(REPO, number, STRANGER.1, &format!("me too {n}"));
    }
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_mention_on_the_oldest_of_130_open_pull_requests_is_heard() {
    let world = watched();
    world.branch("two", &[("two.txt", "two\n")]);
    let oldest = world.double.open_pull(REPO, pull(STRANGER.1, "two"));
    for _ in 0..129 {
        world.double.open_pull(REPO, pull(STRANGER.1, "two"));
    }
    world.once();
    world
        .double
        .comment(REPO, oldest, MONA.1, "@prwarden review");
    world.once();
    assert_eq!(world.reviews(oldest).len(), 1);
}

#[test]
fn a_push_to_the_newest_pull_request_is_not_a_new_pull_request() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    world
        .git
        .commit(
            "two",
            &[("src/two.rs", "pub fn two() -> u32 {\n    3\n}\n")],
            "More",
        )
        .unwrap();
    world.double.push(REPO, number);
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn with_on_push_each_new_head_is_reviewed() {
    let world = watched();
    let text = std::fs::read_to_string(world.path("prwarden.toml")).unwrap();
    std::fs::write(
        world.path("prwarden.toml"),
        text.replace("[triggers]\n", "[triggers]\non_push = true\n"),
    )
    .unwrap();
    let number = world.open_plain(MONA.1, "two");
    world.once();
    world
        .git
        .commit(
            "two",
            &[("src/two.rs", "pub fn two() -> u32 {\n    3\n}\n")],
            "More",
        )
        .unwrap();
    world.double.push(REPO, number);
    world.once();
    assert_eq!(world.round(number), 2);
}

#[test]
fn a_branch_that_is_set_back_to_a_head_that_gave_way_is_reviewed() {
    let world = watched();
    let on_push = |more: &str| {
        world.configure(&format!("[budget]\nenabled = {more}\n"));
        let text = std::fs::read_to_string(world.path("prwarden.toml")).unwrap();
        let text = text.replace("[triggers]\n", "[triggers]\non_push = true\n");
        std::fs::write(world.path("prwarden.toml"), text).unwrap();
    };
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let output = git
            .arg("--git-dir")
            .arg(world.git.path())
            .args(args)
            .output();
        String::from_utf8(output.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    };
    on_push("false");
    let number = world.open_plain(MONA.1, "two");
    let first = git(&["rev-parse", "refs/heads/two"]);
    world.once();
    let more = [("src/two.rs", "pub fn two() -> u32 {\n    3\n}\n")];
    world.git.commit("two", &more, "More").unwrap();
    world.double.push(REPO, number);
    world.once();
    git(&["update-ref", "refs/heads/two", &first]);
    world.double.push(REPO, number);
    on_push("true");
    world.once();
    let reviews = world.reviews(number);
    assert_eq!(reviews.len(), 1);
    assert!(reviews[0].contains(&first[..10]), "{}", reviews[0]);
}

#[test]
fn nothing_older_than_the_first_start_is_bought() {
    let world = World::new();
    let long_ago = "2026-01-01T00:00:00Z".parse().unwrap();
    world.double.at(long_ago);
    let number = world.open_plain(MONA.1, "two");
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden review");
    world.double.use_system_clock();
    world.once();
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
}

#[test]
fn a_queued_request_of_an_account_that_is_no_longer_allowed_starts_nothing() {
    let world = watched();
    let number = world.open_plain(MONA.1, "two");
    let store = rusqlite::Connection::open(world.store()).unwrap();
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
    store
        .execute_batch(
            "UPDATE queue SET status = 'pending', dedupe_key = 'mention:acme/widgets:1:9', kind = 'mention', \
             comment_id = 9, comment_source = 'issue', actor_id = 666 WHERE kind = 'pr_opened'",
        )
        .unwrap();
    let log = world.once();
    assert!(log.contains("not on triggers.allowlist any more"), "{log}");
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_command_that_is_off_costs_nothing() {
    let world = watched();
    let number = world.open_plain(STRANGER.1, "two");
    world
        .double
        .comment(REPO, number, MONA.1, "@prwarden merge");
    let log = world.once();
    assert!(log.contains("not switched on"), "{log}");
    assert_eq!(world.reviews(number).len(), 1, "the refusal");
    assert_eq!(world.count("SELECT sum(used_tokens) FROM ledger"), 0);
}

#[test]
fn an_account_that_is_gone_stops_nobody_else() {
    let world = watched();
    let ghost = world.open_plain(STRANGER.1, "ghost");
    world
        .double
        .comment(REPO, ghost, STRANGER.1, "@prwarden review");
    world.double.delete_user(STRANGER.1);
    let number = world.open_plain(MONA.1, "two");
    let log = world.once();
    assert!(log.contains("author_not_allowlisted"), "{log}");
    assert_eq!(world.reviews(ghost).len(), 0);
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn a_name_that_another_repository_took_over_is_not_polled_any_more() {
    let world = watched();
    world.open_plain(MONA.1, "two");
    world.once();
    world.double.replace_repo(REPO);
    world.open_plain(MONA.1, "three");
    let output = world.once_output();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{log}");
    assert!(log.contains("is now another repository"), "{log}");
    assert_eq!(world.reviews(2).len(), 0);
}
