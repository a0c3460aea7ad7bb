//! What a run costs in the store: a whole cycle against bare commits on the same disk, and against the
//! same cycle over a long history.
//!
//! `cargo bench --bench store` prints the ratios and nothing is asserted, because disks differ. The
//! store is made in the target directory; `PRWARDEN_BENCH_DIR` names another place.

#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout)] // The figures are its result.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prwarden::budget::{self, Charges, ClaimOutcome, ClaimRequest, Work};
use prwarden::clock::{Clock, SystemClock};
use prwarden::config::{BudgetConfig, Pacing, PlanBudget, Pool, RoleShares, WhenExhausted};
use prwarden::findings::Assessment;
use prwarden::ids::{CommentRef, CommentSource, DedupeKey, OwnerName, RepoName, Tokens};
use prwarden::store::ledger::{Confidence, Settlement, StopReason};
use prwarden::store::queue::{self, Command, Kind, NewTrigger};
use prwarden::store::runs::{self, Outcome, Publication, Run};
use prwarden::store::{Store, StoreError};

/// Cycles of one measurement.
const CYCLES: u32 = 200;

/// Measurements; the median counts.
const ROUNDS: usize = 5;

/// Rows of a long history, over a year.
const HISTORY: u32 = 1_000_000;

fn main() {
    let place = std::env::var_os("PRWARDEN_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let dir = tempfile::tempdir_in(place).unwrap();
    println!(
        "fsync of 4 KiB appended to a file: {:.0} a second",
        fsyncs(dir.path())
    );
    let mut empty = Bench::new(&dir.path().join("empty.db"), 0);
    let mut long = Bench::new(&dir.path().join("long.db"), HISTORY);
    println!(
        "history of the second store: {HISTORY} settled ledger rows and {HISTORY} finished queue rows \
         over a year, of them {} in the last 7 days; {:.0} MiB",
        HISTORY / 52,
        std::fs::metadata(dir.path().join("long.db")).unwrap().len() as f64 / f64::from(1 << 20)
    );
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        // One after the other, so that what else the machine does meets all three alike.
        rounds.push([bare_commits(&mut empty), empty.cycles(), long.cycles()]);
    }
    let median = |which: usize| {
        let mut times: Vec<Duration> = rounds.iter().map(|round| round[which]).collect();
        times.sort();
        times[times.len() / 2]
    };
    let [bare, cycle, with_history] = [0, 1, 2].map(median);
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    println!(
        "two bare one-row commits, synchronous=FULL:    {bare:>9.1?}  ({:.0} commits a second)",
        2.0 / bare.as_secs_f64()
    );
    println!(
        "claim + settle, record, complete (2 commits):  {cycle:>9.1?}  {:.2} x the bare commits (aim: at most 1.5)",
        ratio(cycle, bare)
    );
    println!(
        "the same with a long history:                  {with_history:>9.1?}  {:.2} x the one without (aim: at most 1.3)",
        ratio(with_history, cycle)
    );
    storm(&dir.path().join("storm.db"));
}

/// How many times a second the disk makes 4 KiB durable.
fn fsyncs(dir: &Path) -> f64 {
    let mut file = File::create(dir.join("fsync")).unwrap();
    let start = Instant::now();
    for _ in 0..CYCLES {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
    }
    f64::from(CYCLES) / start.elapsed().as_secs_f64()
}

fn bare_commits(bench: &mut Bench) -> Duration {
    bench
        .store
        .write(|txn| {
            let table = "CREATE TABLE IF NOT EXISTS bare (n INTEGER PRIMARY KEY, t TEXT)";
            Ok::<_, StoreError>(txn.execute_batch(table)?)
        })
        .unwrap();
    let start = Instant::now();
    for _ in 0..2 * CYCLES {
        let row = "INSERT INTO bare (t) VALUES ('one row')";
        let done = bench.store.write(|txn| {
            let mut statement = txn.prepare_cached(row)?;
            Ok::<_, StoreError>(statement.execute([])?)
        });
        done.unwrap();
    }
    start.elapsed() / CYCLES
}

fn repo() -> RepoName {
    "acme/widgets".parse().unwrap()
}

fn budget(session: u64) -> BudgetConfig {
    BudgetConfig {
        enabled: true,
        pool: Pool::Alone,
        plan: Some(PlanBudget {
            session_tokens: Tokens(session),
            weekly_tokens: Tokens(session * 100),
            max_run_tokens: Tokens(100_000),
            max_ask_tokens: None,
            reviewer_share_pct: 100,
            per_contributor_pct: Some(50),
            money: None,
        }),
        shares: RoleShares::default(),
        pacing: Pacing::default(),
        when_exhausted: WhenExhausted::Wait,
    }
}

struct Bench {
    store: Store,
    charges: Charges,
    budget: BudgetConfig,
    next: i64,
}

impl Bench {
    fn new(path: &Path, history: u32) -> Self {
        let mut store = Store::open(path).unwrap();
        if history > 0 {
            store
                .write(|txn| Ok::<_, StoreError>(fill(txn, history)?))
                .unwrap();
        }
        Self {
            store,
            charges: Charges::default(),
            budget: budget(1_000_000_000_000),
            next: 10_000_000,
        }
    }

    fn enqueue(&mut self, count: u32) {
        let now = SystemClock.now();
        let next = &mut self.next;
        let queued = self.store.write(|txn| {
            for _ in 0..count {
                *next += 1;
                let comment = CommentRef {
                    source: CommentSource::Issue,
                    id: (*next).try_into().unwrap(),
                };
                let pr = (*next).try_into().unwrap();
                let new = NewTrigger {
                    key: DedupeKey::mention(&repo(), pr, comment),
                    kind: Kind::Mention,
                    repo: repo(),
                    pr,
                    head: None,
                    actor: 7.try_into().unwrap(),
                    comment: Some(comment),
                    command: Command::Review,
                };
                queue::enqueue(txn, &new, now)?;
            }
            Ok::<_, StoreError>(())
        });
        queued.unwrap();
    }

    fn claim(&mut self) -> ClaimOutcome {
        let owner = OwnerName("bench/1/w1".to_owned());
        let request = ClaimRequest {
            owner: &owner,
            repos: &[repo()],
            spends: &|_| true,
            budget: &self.budget,
            lease: Duration::from_secs(1800),
            max_attempts: 3,
            now: SystemClock.now(),
        };
        budget::claim(&mut self.store, &mut self.charges, request).unwrap()
    }

    /// The mean time of a cycle: a claim with its reservation, then settlement, record and completion
    /// in one transaction, as a worker makes them.
    fn cycles(&mut self) -> Duration {
        let mut total = Duration::ZERO;
        for _ in 0..CYCLES {
            // What waits when a worker looks: a handful.
            self.enqueue(1);
            let start = Instant::now();
            let ClaimOutcome::Claimed(claim) = self.claim() else {
                panic!("nothing was claimed");
            };
            let Work::Run(reservation) = claim.work else {
                panic!("nothing was reserved");
            };
            let (row, now) = (claim.trigger, SystemClock.now());
            let settlement = Settlement {
                used: Tokens(20_000),
                money: None,
                confidence: Confidence::Exact,
                engine: Some("claude".to_owned()),
                model: Some("a-model".to_owned()),
                lines: Some(200),
                reason: StopReason::Completed,
                at: now,
            };
            let run = Run {
                key: row.key.clone(),
                repo: row.repo.clone(),
                pr: row.pr,
                head: "a".repeat(40).parse().unwrap(),
                outcome: Outcome::Completed,
                findings: Vec::new(),
                omitted: Vec::new(),
                assessment: None::<Assessment>,
                provenance: None,
                command: prwarden::store::queue::Command::Review,
                reply: None,
                notice: None,
                nonce: None,
                recorded_at: now,
                publication: Publication::default(),
            };
            let owner = OwnerName("bench/1/w1".to_owned());
            let done = self.store.write(|txn| {
                let settled = budget::settle(txn, reservation, &settlement)?;
                runs::record(txn, &run)?;
                Ok::<_, StoreError>(settled && queue::complete(txn, &row.key, &owner)?)
            });
            assert!(done.unwrap());
            total += start.elapsed();
        }
        total / CYCLES
    }
}

/// `rows` settled ledger rows and as many finished queue rows, evenly over the last year.
fn fill(txn: &prwarden::store::Txn<'_>, rows: u32) -> rusqlite::Result<()> {
    txn.execute_batch(&format!(
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {rows})
         INSERT INTO ledger (dedupe_key, owner, actor_id, mode, reserved_tokens, used_tokens,
             usage_confidence, engine, model, reserved_at, settled_at, reviewed_lines, stop_reason, repo,
             pr_number)
         SELECT 'mention:acme/widgets:' || n || ':' || n, 'old/1/w1', 1 + n % 20, 'full', 100000, 20000,
             'exact', 'claude', 'a-model', at, at, 200, 'completed', 'acme/widgets', n
         FROM (SELECT n, strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now',
                   '-' || ((({rows} - n) * 31536000.0) / {rows}) || ' seconds') AS at FROM number);
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {rows})
         INSERT INTO queue (dedupe_key, kind, repo, pr_number, actor_id, status, attempts, enqueued_at,
             comment_id, comment_source, command)
         SELECT 'mention:acme/widgets:' || n || ':' || n, 'mention', 'acme/widgets', n, 1 + n % 20, 'done',
             1, '2026-01-01T00:00:00.000000+00:00', n, 'issue', 'review'
         FROM number;"
    ))
}

/// What a look at a queue costs in which everything waits for tokens.
fn storm(path: &Path) {
    let mut bench = Bench::new(path, 0);
    bench.budget = budget(100_000);
    bench.enqueue(501);
    assert!(matches!(bench.claim(), ClaimOutcome::Claimed(_)));
    let start = Instant::now();
    for _ in 0..CYCLES {
        let ClaimOutcome::Idle { refused } = bench.claim() else {
            panic!("there was room");
        };
        assert_eq!(refused.len(), 1);
    }
    println!(
        "a look at 500 waiting rows without tokens:     {:>9.1?}  (each idle worker makes one in 30 s)",
        start.elapsed() / CYCLES
    );
}
