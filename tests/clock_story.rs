//! A clock that is set while the daemon runs: back by an hour, ahead by a day.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use prwarden::clock::{Clock, Stop, SystemClock, TestClock};
use prwarden::config::Config;
use prwarden::daemon::poller::{Poller, Start};
use prwarden::daemon::startup::start;
use support::{MONA, TOKEN, World, eventually};

const HOUR: Duration = Duration::from_secs(3600);

/// What was logged by this process.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        LINES.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn polls_go_on_watermarks_stay_and_the_log_says_it() {
    log::set_logger(&Lines).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let world = World::new();
    world.configure("[poll]\nfloor_seconds = 10\nceiling_seconds = 20\n");
    let env = |name: &str| (name == "GITHUB_TOKEN").then(|| TOKEN.to_owned());
    let (config, _) = Config::load(&world.path("prwarden.toml"), &env).unwrap();
    let clock = TestClock::at(SystemClock.now());
    let drain = Stop::new();
    let started = start(
        config,
        Arc::new(clock.clone()),
        drain.clone(),
        Stop::new(),
        &env,
    )
    .unwrap();
    let (context, path) = (Arc::clone(&started.context), world.store());
    let poller = std::thread::spawn(move || Poller::new(&context, Start::Daemon).run(&path));
    let polls = || world.double.requests().len();
    let queued = || world.count("SELECT count(*) FROM queue");
    let marks = || {
        let store = rusqlite::Connection::open(world.store()).unwrap();
        let mut marks = store
            .prepare("SELECT name, at FROM watermarks ORDER BY name")
            .unwrap();
        let rows = marks.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    eventually("the first poll", || polls() >= 3);
    world.open_plain(MONA.1, "two");
    eventually("the first trigger", || queued() == 1);
    let before = marks();
    assert!(!before.is_empty());
    let back = clock.now().minus(HOUR);
    clock.set(back);
    let count = polls();
    eventually("polls go on", || polls() >= count + 6);
    assert!(
        clock.now().since(back) < HOUR,
        "no poll waited for the old time to come again"
    );
    assert_eq!(marks(), before, "watermarks follow GitHub's stamps alone");
    clock.set(clock.now().plus(24 * HOUR));
    let count = polls();
    eventually("polls still go on", || polls() >= count + 6);
    assert_eq!(marks(), before);
    world.open_plain(MONA.1, "three");
    eventually("what happens is still heard", || queued() == 2);
    drain.set();
    poller.join().unwrap().unwrap();
    let lines = LINES.lock().unwrap();
    let told = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!(told("the clock was set back by "), 1, "{lines:?}");
    assert_eq!(told("the clock was set ahead by "), 1, "{lines:?}");
}
