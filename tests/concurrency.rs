//! Many threads of many processes on one store, some of them killed: the budget holds, nothing is
//! claimed twice, and contention is no failure.
//!
//! Runs for a few seconds; `PRWARDEN_SOAK_SECONDS=60 cargo test --test concurrency` runs for longer.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use prwarden::budget::{self, Charges, ClaimOutcome, ClaimRequest, Work};
use prwarden::clock::{Clock, SystemClock, Timestamp};
use prwarden::config::{BudgetConfig, Pacing, PlanBudget, Pool, RoleShares, WhenExhausted};
use prwarden::ids::{CommentRef, CommentSource, DedupeKey, OwnerName, RepoName, Tokens, nonce};
use prwarden::process;
use prwarden::store::ledger::{Confidence, Settlement, StopReason};
use prwarden::store::queue::{self, Command as Asked, Kind, NewTrigger};
use prwarden::store::{Store, StoreError, owners};

const PROCESSES: usize = 4;
const THREADS: usize = 8;
const RUN: u64 = 1_000;

/// SQLite waits for the lock for 5 s.
const LONGEST_WAIT: Duration = Duration::from_secs(6);

/// Of every run a tenth is used, so the session holds about 500 runs, and then it is full.
const SESSION: u64 = 50 * RUN;

fn repo() -> RepoName {
    "acme/widgets".parse().unwrap()
}

fn budget() -> BudgetConfig {
    BudgetConfig {
        enabled: true,
        pool: Pool::Alone,
        shares: RoleShares::default(),
        plan: Some(PlanBudget {
            session_tokens: Tokens(SESSION),
            weekly_tokens: Tokens(SESSION * 1_000),
            max_run_tokens: Tokens(RUN),
            max_ask_tokens: None,
            reviewer_share_pct: 100,
            per_contributor_pct: None,
            money: None,
        }),
        pacing: Pacing {
            review_interval: Duration::ZERO,
            mention_interval: Duration::ZERO,
            max_reviews: None,
        },
        when_exhausted: WhenExhausted::Wait,
    }
}

fn enqueue(store: &mut Store, number: i64) {
    let comment = CommentRef {
        source: CommentSource::Issue,
        id: number.try_into().unwrap(),
    };
    let pr = number.try_into().unwrap();
    let new = NewTrigger {
        key: DedupeKey::mention(&repo(), pr, comment),
        kind: Kind::Mention,
        repo: repo(),
        pr,
        head: None,
        actor: 1.try_into().unwrap(),
        comment: Some(comment),
        command: Asked::Review,
    };
    let now = SystemClock.now();
    assert!(
        store
            .write_patiently(|txn| queue::enqueue(txn, &new, now))
            .unwrap()
    );
}

#[test]
fn many_threads_of_many_processes_never_overspend_and_never_share_a_row() {
    let seconds = std::env::var("PRWARDEN_SOAK_SECONDS").map_or(4, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = Store::open(&path).unwrap();
    let mut number = 0;
    let mut more = |store: &mut Store, count: i64| {
        for _ in 0..count {
            number += 1;
            enqueue(store, number);
        }
    };
    more(&mut store, 100);
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| start(&path)).collect();
    let begin = Instant::now();
    let mut victim = 0;
    while begin.elapsed() < Duration::from_secs(seconds) {
        thread::sleep(Duration::from_millis(300));
        for child in &mut children {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("a process ended by itself: {status}");
            }
        }
        victim = (victim + 1) % PROCESSES;
        children[victim].kill().unwrap();
        children[victim].wait().unwrap();
        let host = process::identity().unwrap().host;
        let freed = store.write_patiently(|txn| owners::free_dead(txn, &host, &process::is_alive));
        freed.unwrap();
        children[victim] = start(&path);
        more(&mut store, 40);
    }
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(store.check().unwrap(), []);
    let runs = check_admissions(&path);
    assert!(runs > 50, "only {runs} runs were admitted");
}

/// Replays the ledger: at each admission, what was charged by then and the new reservation fit.
fn check_admissions(path: &Path) -> usize {
    let store = rusqlite::Connection::open(path).unwrap();
    let sql =
        "SELECT reserved_tokens, used_tokens, reserved_at, settled_at FROM ledger ORDER BY id";
    let mut statement = store.prepare(sql).unwrap();
    let time = |text: String| text.parse::<Timestamp>().unwrap();
    let rows: Vec<(u64, u64, Timestamp, Option<Timestamp>)> = statement
        .query_map([], |row| {
            let (reserved, used): (i64, Option<i64>) = (row.get(0)?, row.get(1)?);
            let settled: Option<String> = row.get(3)?;
            let reserved = u64::try_from(reserved).unwrap();
            let used = used.map_or(reserved, |used| u64::try_from(used).unwrap());
            Ok((reserved, used, time(row.get(2)?), settled.map(time)))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (index, (reserved, _, at, _)) in rows.iter().enumerate() {
        // Stamps are taken before the lock is waited for, so a settlement stamped shortly after may have
        // been first; one that came later than any wait was not.
        let charged: u64 = rows[..index]
            .iter()
            .map(|(reserved, used, _, settled)| match settled {
                Some(settled) if *settled <= at.plus(LONGEST_WAIT) => *used,
                _ => *reserved,
            })
            .sum();
        assert!(
            charged + reserved <= SESSION,
            "admission {index} exceeds the window"
        );
    }
    rows.len()
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "one_process_of_workers",
        ])
        .env("STORE", path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "a process that the test above starts and kills"]
fn one_process_of_workers() {
    let path = PathBuf::from(std::env::var_os("STORE").unwrap());
    let start = nonce().unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (path, name) = (&path, OwnerName(format!("{start}/{number}")));
            scope.spawn(move || {
                // A panicking thread ends the process, which the test notices.
                if std::panic::catch_unwind(|| work(path, &name)).is_err() {
                    std::process::exit(1);
                }
            });
        }
    });
}

fn work(path: &Path, name: &OwnerName) {
    let mut store = Store::open_existing(path).unwrap();
    let identity = process::identity().unwrap();
    store
        .write_patiently(|txn| owners::register(txn, name, &identity, SystemClock.now()))
        .unwrap();
    let mut charges = Charges::default();
    loop {
        let outcome = budget::claim(
            &mut store,
            &mut charges,
            ClaimRequest {
                owner: name,
                repos: &[repo()],
                spends: &|_| true,
                budget: &budget(),
                lease: Duration::from_secs(1800),
                max_attempts: 100,
                now: SystemClock.now(),
            },
        );
        let claim = match outcome {
            Ok(ClaimOutcome::Claimed(claim)) => claim,
            // Others were busy for five seconds, or there is nothing: both are no failure.
            Ok(ClaimOutcome::Idle { .. }) | Err(StoreError::Busy { .. }) => {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let Work::Run(reservation) = claim.work else {
            panic!("nothing is to be published")
        };
        thread::sleep(Duration::from_millis(5));
        let settlement = Settlement {
            used: Tokens(RUN / 10),
            money: None,
            confidence: Confidence::Exact,
            engine: None,
            model: None,
            lines: None,
            reason: StopReason::Completed,
            at: SystemClock.now(),
        };
        let key = claim.trigger.key;
        let (settled, completed) = store
            .write_patiently(|txn| {
                let settled = budget::settle(txn, reservation, &settlement)?;
                Ok::<_, StoreError>((settled, queue::complete(txn, &key, name)?))
            })
            .unwrap();
        assert!(
            settled && completed,
            "{key} was taken from a worker that lives"
        );
    }
}
