//! Eight workers, money for three runs.

#![allow(clippy::unwrap_used)]

mod support;

use support::{MONA, Running, World, eventually};

#[test]
fn eight_workers_with_budget_for_three_runs_run_three() {
    let world = World::new();
    let engine = world.script("engine", "#!/bin/sh\nexec \"$PRWARDEN\" sample-engine\n");
    // 40 % of 1,000,000 is 400,000: three runs of 130,000 fit, a fourth does not.
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\nenv = [\"PRWARDEN\"]\n\
         [worker]\ncount = 8\n\
         [budget]\nsession_tokens = \"1m\"\nweekly_tokens = \"100m\"\nmax_run_tokens = \"130k\"\n",
        world
            .script(
                "unmeasured",
                &format!(
                    "#!/bin/sh\n{} | sed 's/\"usage\":{{[^}}]*}}/\"usage\":null/'\n",
                    engine.display()
                )
            )
            .display()
    ));
    let once = |world: &World| {
        let mut command = world.command(&["once", "--log", "debug"]);
        command
            .env("PRWARDEN", env!("CARGO_BIN_EXE_prwarden"))
            .output()
            .unwrap()
    };
    once(&world);
    let numbers: Vec<i64> = (0..8)
        .map(|n| world.open_plain(MONA.1, &format!("branch-{n}")))
        .collect();
    let output = once(&world);
    let log = String::from_utf8_lossy(&output.stderr);
    let reviewed = numbers
        .iter()
        .filter(|&&number| world.reviews(number).len() == 1)
        .count();
    assert_eq!(reviewed, 3, "{log}");
    assert_eq!(world.count("SELECT count(*) FROM ledger"), 3);
    let charged = world.count("SELECT sum(coalesce(used_tokens, reserved_tokens)) FROM ledger");
    assert!(charged <= 400_000, "{charged}");
    assert_eq!(
        world.count("SELECT count(*) FROM queue WHERE status = 'pending'"),
        5
    );
    assert!(
        log.contains("session"),
        "the refusal names its window:\n{log}"
    );
}

#[test]
fn a_run_whose_lease_was_lost_finishes_nothing() {
    let world = World::new();
    let engine = world.script("engine", "#!/bin/sh\ntouch \"$MARK\"\nexec sleep 600\n");
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\nenv = [\"MARK\"]\ntimeout_seconds = 1000\n\
         [worker]\ncount = 1\nlease_seconds = 1400\n\
         [budget]\nsession_tokens = \"1m\"\nweekly_tokens = \"100m\"\nmax_run_tokens = \"130k\"\n",
        engine.display()
    ));
    let mark = world.path("started");
    world.once();
    world.open_plain(MONA.1, "two");
    let mut running = Running(world.command(&["once"]).env("MARK", &mark).spawn().unwrap());
    eventually("the engine runs", || mark.exists());
    // Somebody else takes the row, as after a lease that lapsed.
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store.busy_timeout(support::PATIENCE).unwrap();
    store
        .execute(
            "UPDATE queue SET owner = 'another' WHERE status = 'claimed'",
            [],
        )
        .unwrap();
    for line in world.processes() {
        if line.contains("sleep 600") {
            let pid = line.split(' ').next().unwrap().parse().unwrap();
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGKILL,
            )
            .unwrap();
        }
    }
    running.0.wait().unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM queue WHERE owner = 'another'"),
        1,
        "not ours to finish"
    );
    assert_eq!(world.count("SELECT count(*) FROM runs"), 0);
}

/// A world whose engine is this shell script.
fn with_engine(script: &str, more: &str) -> World {
    let world = World::new();
    let engine = world.script("engine", script);
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\n{more}\
         [budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\nmax_run_tokens = \"100k\"\n",
        engine.display()
    ));
    world.once();
    world
}

#[test]
fn what_would_fail_again_is_paid_once() {
    let world = with_engine(
        "#!/bin/sh\necho '{\"error\": {\"kind\": \"permanent\", \"message\": \"no\"}, \
         \"usage\": {\"input_tokens\": 90000}}'\n",
        "",
    );
    world.open_plain(MONA.1, "two");
    world.once();
    let given_up = "SELECT count(*) FROM queue WHERE status = 'abandoned' AND attempts = 1";
    assert_eq!(world.count(given_up), 1);
    assert_eq!(world.count("SELECT sum(used_tokens) FROM ledger"), 90_000);
}

#[test]
fn a_token_that_an_engine_got_hold_of_is_neither_logged_nor_stored_nor_posted() {
    let token = support::TOKEN;
    let answer = format!(
        r#"{{\"head\":\"$HEAD\",\"nonce\":\"$NONCE\",\"findings\":[{{\"path\":\"src/two.rs\",\"line\":1,\"severity\":\"major\",
        \"title\":\"{token}\",\"body\":\"{}\"}}],\"assessment\":{{\"effort\":1,\"risk\":\"r\",\"recommendation\":\"x\",\"priority_files\":[]}}}}"#,
        token.replace('-', "\\\\u002d")
    );
    let world = with_engine(
        &format!(
            "#!/bin/sh\nread -r input\n\
             HEAD=$(printf %s \"$input\" | sed 's/.*\"head\":\"\\([0-9a-f]*\\)\".*/\\1/')\n\
             NONCE=$(printf %s \"$input\" | sed 's/.*\"nonce\":\"\\([0-9a-f]*\\)\".*/\\1/')\n\
             if [ -e \"$0.fails\" ]; then echo \"bad {token}\" >&2; exit 3; fi\n\
             printf '%s' \"{answer}\"\n"
        ),
        "",
    );
    let number = world.open_plain(MONA.1, "two");
    world.once();
    assert_eq!(world.reviews(number).len(), 0);
    let findings = "SELECT count(*) FROM runs \
                    WHERE findings LIKE '%[...]%' AND publish_outcome = 'refused'";
    assert_eq!(world.count(findings), 1);
    std::fs::write(world.path("engine.fails"), "").unwrap();
    world.open_plain(MONA.1, "three");
    // `once` holds the log against the token.
    let log = world.once();
    assert!(log.contains("it said: bad [...]"), "{log}");
    for file in ["state.db", "state.db-wal"] {
        let bytes = std::fs::read(world.path(file)).unwrap_or_default();
        let found = bytes
            .windows(token.len())
            .any(|window| window == token.as_bytes());
        assert!(!found, "the token is in {file}");
    }
}

#[test]
fn an_engine_that_kills_its_supervisor_leaves_nothing_behind() {
    let world = with_engine(
        "#!/bin/sh\nsetsid sh -c 'setsid sleep 4711 & sleep 4711' &\n\
         sleep 0.5\nkill -9 $PPID\nexit 1\n",
        "",
    );
    world.open_plain(MONA.1, "two");
    world.once();
    let left = world.processes();
    assert!(!left.iter().any(|line| line.contains("4711")), "{left:?}");
}

#[test]
fn an_earlier_round_that_cant_be_read_costs_nothing() {
    let world = with_engine("#!/bin/sh\nexit 1\n", "");
    let number = world.open_plain(MONA.1, "two");
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let row = "INSERT INTO runs (dedupe_key, repo, pr_number, head_sha, outcome, findings, recorded_at) \
               VALUES ('k', 'acme/widgets', ?1, 'b', 'completed', '{oops', '2026-11-01T09:00:00Z')";
    store.execute(row, [number]).unwrap();
    drop(store);
    let log = world.once();
    assert!(log.contains("runs") && log.contains("findings"), "{log}");
    assert_eq!(world.count("SELECT sum(used_tokens) FROM ledger"), 0);
    let open = "SELECT count(*) FROM ledger WHERE settled_at IS NULL";
    assert_eq!(world.count(open), 0);
    let waiting = "SELECT count(*) FROM queue WHERE status = 'pending'";
    assert_eq!(world.count(waiting), 1);
}

#[test]
fn a_lease_that_is_lost_during_the_checkout_starts_no_engine() {
    let world = with_engine(
        "#!/bin/sh\ntouch \"$0.ran\"\nexit 1\n",
        "[worker]\ncount = 1\n",
    );
    world.open_plain(MONA.1, "two");
    let git = world.script(
        "slow-git",
        "#!/bin/sh\ncase \"$*\" in *fetch*) touch \"${0%/*}/fetching\"; sleep 2;; esac\nexec git \"$@\"\n",
    );
    let file = world.path("prwarden.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace(
        "[workspace]\n",
        &format!("[workspace]\ngit = \"{}\"\n", git.display()),
    );
    let text = text.replace("[worker]\n", "[worker]\nlease_seconds = 330\n");
    let text = text.replace("[engine]\n", "[engine]\ntimeout_seconds = 1\n");
    std::fs::write(&file, text).unwrap();
    let mut running = Running(world.command(&["once"]).spawn().unwrap());
    let fetching = world.path("fetching");
    eventually("the fetch", || fetching.exists());
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store.busy_timeout(support::PATIENCE).unwrap();
    let taken = "UPDATE queue SET owner = 'another' WHERE status = 'claimed'";
    assert_eq!(store.execute(taken, []).unwrap(), 1);
    running.0.wait().unwrap();
    assert!(!world.path("engine.ran").exists(), "the engine was asked");
}

#[test]
fn a_usage_limit_stops_everything_that_spends_and_is_told_once() {
    let world = World::new();
    let engine = world.script(
        "engine",
        "#!/bin/sh\necho '{\"error\": {\"kind\": \"usage_limit\", \"message\": \"used up\"}}'\n",
    );
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\n[worker]\ncount = 1\n\
         [budget]\nsession_tokens = \"2m\"\nweekly_tokens = \"20m\"\nmax_run_tokens = \"100k\"\n",
        engine.display()
    ));
    world.once();
    let number = world.open_plain(MONA.1, "two");
    let log = world.once();
    assert_eq!(
        log.matches("has met its own usage limit: nothing that spends starts")
            .count(),
        1,
        "{log}"
    );
    assert_eq!(
        world.count("SELECT count(*) FROM ledger WHERE stop_reason = 'usage_limit'"),
        1
    );
    assert_eq!(
        world.count("SELECT attempts FROM queue"),
        0,
        "the request was not at fault"
    );
    world.open_plain(MONA.1, "three");
    world.once();
    assert_eq!(
        world.count("SELECT count(*) FROM ledger"),
        1,
        "nothing starts"
    );
    let store = rusqlite::Connection::open(world.store()).unwrap();
    store
        .execute(
            "UPDATE budget_state SET value = '2026-01-01T00:00:00Z' WHERE key = 'tripped_until'",
            [],
        )
        .unwrap();
    world.configure("");
    world.once();
    assert_eq!(world.reviews(number).len(), 1);
}

#[test]
fn an_exhausted_budget_may_still_post_the_built_in_findings() {
    let world = World::new();
    let engine = world.script("engine", "#!/bin/sh\necho never; exit 1\n");
    world.configure(&format!(
        "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\n\
         [budget]\nsession_tokens = \"1m\"\nweekly_tokens = \"100m\"\nmax_run_tokens = \"400k\"\n\
         when_exhausted = \"gate\"\n",
        engine.display()
    ));
    world.once();
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let spent = "INSERT INTO ledger (dedupe_key, owner, actor_id, mode, reserved_tokens, used_tokens, \
                 reserved_at, settled_at, stop_reason) \
                 SELECT 'k', 'o', 1, 'full', 1, 400000, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'x', 'completed'";
    store.execute(spent, []).unwrap();
    let number = world.open(
        MONA.1,
        "leak",
        &[("a.md", "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n")],
    );
    world.once();
    let reviews = world.reviews(number);
    assert_eq!(reviews.len(), 1);
    assert!(reviews[0].contains("onflict marker"), "{}", reviews[0]);
    assert!(
        reviews[0].contains("the model was not asked"),
        "{}",
        reviews[0]
    );
    assert_eq!(
        world.count("SELECT used_tokens FROM ledger WHERE mode = 'exhausted'"),
        0
    );
}

#[test]
fn sighup_puts_a_changed_budget_in_force_and_a_broken_file_changes_nothing() {
    use nix::sys::signal::{Signal, kill};
    let world = World::new();
    world.configure("[poll]\nfloor_seconds = 1\n[budget]\nenabled = false\n");
    let daemon = world.start(&["run"]);
    let hang_up = || {
        kill(
            nix::unistd::Pid::from_raw(daemon.0.id() as i32),
            Signal::SIGHUP,
        )
        .unwrap()
    };
    let log = || std::fs::read_to_string(world.path("background.log")).unwrap();
    eventually("the first poll", || {
        world
            .double
            .requests()
            .iter()
            .any(|request| request.path.ends_with("/pulls/comments"))
    });
    let number = world.open_plain(MONA.1, "two");
    eventually("the brake is told", || {
        log().contains("budget.enabled is false")
    });
    std::fs::write(world.path("prwarden.toml"), "[budget]\nenabled = maybe\n").unwrap();
    hang_up();
    eventually("the broken file is told", || log().contains("not reloaded"));
    assert_eq!(world.reviews(number).len(), 0);
    world.configure("[poll]\nfloor_seconds = 2\n");
    hang_up();
    eventually("the rest is told", || log().contains("needs a restart"));
    eventually("the review", || world.reviews(number).len() == 1);
}

/// Charges `tokens` to the session, as a run that ended now would.
fn spend(world: &World, tokens: u32) {
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let spent = "INSERT INTO ledger (dedupe_key, owner, actor_id, mode, reserved_tokens, used_tokens, \
                 reserved_at, settled_at, stop_reason) \
                 SELECT 'k', 'o', 1, 'full', 1, ?1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'x', 'completed'";
    store.execute(spent, [tokens]).unwrap();
}

#[test]
fn from_60_percent_on_the_engine_is_asked_for_correctness_and_security_only() {
    let world = with_engine("#!/bin/sh\ncat >> \"$0.asked\"\nexit 1\n", "");
    let asked = || std::fs::read_to_string(world.path("engine.asked")).unwrap();
    world.open_plain(MONA.1, "two");
    world.once();
    assert!(asked().contains(r#""mode":"full""#), "{}", asked());
    // The failed run above is charged 100,000 of the session's 800,000.
    spend(&world, 400_000);
    world.open_plain(MONA.1, "three");
    world.once();
    assert!(asked().contains(r#""mode":"focused""#), "{}", asked());
}

#[test]
fn a_mention_is_served_before_an_automatic_review_that_waits_above_85_percent() {
    let world = with_engine("#!/bin/sh\nexit 1\n", "");
    spend(&world, 690_000);
    let automatic = world.open_plain(MONA.1, "two");
    let log = world.once();
    assert!(log.contains("automatic reviews wait: the session"), "{log}");
    assert_eq!(
        world.count("SELECT count(*) FROM ledger WHERE actor_id = 101"),
        0
    );
    let asked = world.open_plain(support::STRANGER.1, "three");
    world
        .double
        .comment(support::REPO, asked, MONA.1, "@prwarden review");
    let log = world.once();
    let keys = "SELECT count(*) FROM ledger WHERE mode = 'mention_only' AND pr_number = ";
    assert_eq!(world.count(&format!("{keys}{asked}")), 1, "{log}");
    assert_eq!(world.count(&format!("{keys}{automatic}")), 0);
    assert!(
        !log.contains("automatic reviews wait"),
        "told by the cycle before:\n{log}"
    );
}

#[test]
fn five_hundred_rows_that_wait_are_told_in_one_line() {
    let world = with_engine(
        "#!/bin/sh\nexit 1\n",
        "[worker]\ncount = 8\n[poll]\nfloor_seconds = 1\nceiling_seconds = 1\n",
    );
    spend(&world, 800_000);
    let store = rusqlite::Connection::open(world.store()).unwrap();
    let rows = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 500) \
                INSERT INTO queue (dedupe_key, kind, repo, pr_number, actor_id, status, enqueued_at, \
                    comment_id, comment_source) \
                SELECT 'mention:acme/widgets:' || n || ':' || n, 'mention', 'acme/widgets', n, 101, \
                    'pending', '2026-11-01T09:00:00Z', n, 'issue' FROM number";
    store.execute(rows, []).unwrap();
    let daemon = world.start(&["run"]);
    let log = || std::fs::read_to_string(world.path("background.log")).unwrap();
    eventually("the line", || log().contains("nothing that spends starts"));
    // Each reload wakes all eight workers to look again.
    for count in 1..=3 {
        let pid = nix::unistd::Pid::from_raw(daemon.0.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
        eventually("the reload", || {
            log().matches("were reloaded").count() == count
        });
    }
    let polls = world.double.requests().len();
    eventually("two more polls", || {
        world.double.requests().len() >= polls + 6
    });
    drop(daemon);
    let told = log();
    assert_eq!(
        told.matches("nothing that spends starts").count(),
        1,
        "{told}"
    );
    assert_eq!(told.matches("waits").count(), 0, "{told}");
    assert_eq!(world.count("SELECT sum(attempts) FROM queue"), 0);
    let log = world.once();
    assert_eq!(
        log.matches("nothing that spends starts").count(),
        1,
        "{log}"
    );
    let log = world.once();
    assert_eq!(
        log.matches("nothing that spends starts").count(),
        0,
        "{log}"
    );
}
