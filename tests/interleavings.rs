//! Pushes, reviews, publications and faults in random order: the one comment ends at the newest review,
//! never shows an older one over a newer, and every run is accounted for.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use prwarden::double::{Action, Fault, Matcher};
use prwarden::report::sticky::State;
use support::{BOT, MONA, REPO, World};

/// Rounds of one run; `PRWARDEN_ROUNDS` asks for more.
const ROUNDS: u64 = 80;

/// A small generator, so that a failing schedule can be had again by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64 (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What the comment shows: the round, if there is a comment.
fn shown(world: &World, number: i64) -> Option<u32> {
    let comments = world.double.comments(REPO, number);
    let ours: Vec<_> = comments.iter().filter(|c| c.author == BOT.1).collect();
    assert!(ours.len() <= 1, "{ours:#?}");
    let state = ours.first().map(|comment| State::read(&comment.body));
    state.map(|state| state.unwrap().round)
}

fn fault(random: &mut Random) -> Fault {
    let matcher = match random.below(4) {
        0 => Matcher::post("/issues/1/comments"),
        1 => Matcher::patch("/issues/comments/"),
        2 => Matcher::get("/issues/comments/"),
        _ => Matcher::get("/pulls/1"),
    };
    let status = |code| Action::Status {
        code,
        headers: Vec::new(),
        body: "{\"message\":\"no\"}".to_owned(),
    };
    let action = match random.below(6) {
        0 => Action::ResetBefore,
        1 => Action::ResetAfter,
        2 => Action::TruncateBody,
        3 => status(502),
        4 => status(403),
        _ => Action::BadJson,
    };
    let times = 1 + u32::try_from(random.below(2)).unwrap();
    Fault {
        matcher,
        times,
        action,
    }
}

#[test]
fn the_comment_ends_at_the_newest_review_and_every_run_is_accounted_for() {
    let seed = std::env::var("PRWARDEN_SEED").ok();
    let seed = seed.map_or_else(
        || u64::from(std::process::id()) << 20 | 1,
        |text| text.parse().unwrap(),
    );
    let rounds = std::env::var("PRWARDEN_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    println!("PRWARDEN_SEED={seed}");
    let mut random = Random(seed);
    let world = World::new();
    world.configure(
        "[publish]\nmax_publish_attempts = 3\n\
         [budget]\nmin_review_interval_seconds = 0\nmin_mention_interval_seconds = 0\n",
    );
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let (mut newest, mut pushes) = (None, 0);
    for step in 0..rounds {
        match random.below(5) {
            0 => {
                pushes += 1;
                let text = format!("pub fn two() -> u32 {{\n    {pushes}\n}}\n");
                world
                    .git
                    .commit("two", &[("src/two.rs", &text)], "More")
                    .unwrap();
                world.double.push(REPO, number);
            }
            1 => {
                world
                    .double
                    .comment(REPO, number, MONA.1, "@prwarden review");
            }
            2 => world.double.fault(fault(&mut random)),
            3 => {
                let store = rusqlite::Connection::open(world.store()).unwrap();
                let hasten = "UPDATE queue SET not_before = NULL";
                store.execute(hasten, []).unwrap();
            }
            _ => {
                world.once_output();
            }
        }
        let now = shown(&world, number);
        assert!(now >= newest, "step {step}: {now:?} over {newest:?}");
        newest = now;
    }
    world.double.clear_faults();
    for _ in 0..4 {
        let store = rusqlite::Connection::open(world.store()).unwrap();
        store
            .execute("UPDATE queue SET not_before = NULL", [])
            .unwrap();
        drop(store);
        world.once();
    }
    let reviews = "outcome IN ('completed', 'truncated')";
    let unaccounted = format!(
        "SELECT count(*) FROM runs WHERE {reviews} AND publish_outcome IS NULL \
         AND publish_failed_at IS NULL"
    );
    assert_eq!(world.count(&unaccounted), 0);
    let last = format!(
        "SELECT coalesce(max(json_extract(provenance, '$.round')), 0) FROM runs \
         WHERE {reviews} AND publish_outcome = 'published'"
    );
    let last = u32::try_from(world.count(&last)).unwrap();
    assert_eq!(shown(&world, number).unwrap_or(0), last);
    let runs = world.count(&format!("SELECT count(*) FROM runs WHERE {reviews}"));
    println!("{rounds} steps, {pushes} pushes, {runs} reviews, the comment shows round {last}");
}
