use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::clock::Timestamp;
use crate::config::{BudgetConfig, Pacing, PlanBudget, Pool, RoleShares, WhenExhausted};
use crate::ids::{
    CommentRef, CommentSource, CommitSha, DedupeKey, MicroUsd, OwnerName, PrNumber, RepoName,
    Tokens, UserId,
};
use crate::store::ledger::{self, Confidence, Cost, Settlement, StopReason};
use crate::store::queue::{self, Command, Kind, NewTrigger};
use crate::store::runs::{self, Outcome, Publication, Run};
use crate::store::{Store, StoreError};

mod charges;
mod gate;
mod money;
mod outlook;
mod pacing;
mod schedules;
mod shares;
mod sharing;
mod tripped;

const RUN: u64 = 100;
const ATTEMPTS: u32 = 3;
const LEASE: Duration = Duration::from_secs(1_800);
const HOUR: Duration = Duration::from_secs(3_600);

fn start() -> Timestamp {
    "2026-11-01T09:00:00Z".parse().unwrap()
}

fn repo() -> RepoName {
    "acme/widgets".parse().unwrap()
}

fn user(id: i64) -> UserId {
    id.try_into().unwrap()
}

fn owner(name: &str) -> OwnerName {
    OwnerName(name.to_owned())
}

/// Windows that hold `session` and, in a day, `weekly / 7` tokens.
fn budget(session: u64, weekly: u64) -> BudgetConfig {
    BudgetConfig {
        enabled: true,
        pool: Pool::Alone,
        shares: RoleShares::default(),
        plan: Some(PlanBudget {
            session_tokens: Tokens(session),
            weekly_tokens: Tokens(weekly),
            max_run_tokens: Tokens(RUN),
            max_ask_tokens: None,
            reviewer_share_pct: 100,
            per_contributor_pct: None,
            money: None,
        }),
        // A pull request stands for a run here, so none is slowed down.
        pacing: Pacing {
            review_interval: Duration::ZERO,
            mention_interval: Duration::ZERO,
            max_reviews: None,
        },
        when_exhausted: WhenExhausted::Wait,
    }
}

/// A session of `runs` runs and plenty of days.
fn session_of(runs: u64) -> BudgetConfig {
    budget(runs * RUN, 1_000 * RUN)
}

struct Bench {
    dir: TempDir,
    store: Store,
    charges: Charges,
    now: Timestamp,
    budget: BudgetConfig,
    spends: bool,
}

impl Bench {
    fn new(budget: BudgetConfig) -> Self {
        let dir = TempDir::new().unwrap();
        let store = Store::open(&dir.path().join("state.db")).unwrap();
        Self {
            dir,
            store,
            charges: Charges::default(),
            now: start(),
            budget,
            spends: true,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("state.db")
    }

    fn opened(&mut self, pr: i64, actor: i64) -> DedupeKey {
        let pr: PrNumber = pr.try_into().unwrap();
        let head: CommitSha = "a".repeat(40).parse().unwrap();
        let key = DedupeKey::automatic(&repo(), pr, &head);
        self.enqueue(Kind::PrOpened, key, pr, Some(head), actor, None)
    }

    fn mention(&mut self, pr: i64, actor: i64) -> DedupeKey {
        let pr: PrNumber = pr.try_into().unwrap();
        let comment = CommentRef {
            source: CommentSource::Issue,
            id: pr.get().try_into().unwrap(),
        };
        let key = DedupeKey::mention(&repo(), pr, comment);
        self.enqueue(Kind::Mention, key, pr, None, actor, Some(comment))
    }

    fn enqueue(
        &mut self,
        kind: Kind,
        key: DedupeKey,
        pr: PrNumber,
        head: Option<CommitSha>,
        actor: i64,
        comment: Option<CommentRef>,
    ) -> DedupeKey {
        let row = NewTrigger {
            key: key.clone(),
            kind,
            repo: repo(),
            pr,
            head,
            actor: user(actor),
            comment,
            command: Command::Review,
        };
        let now = self.now;
        let new = self.store.write(|txn| queue::enqueue(txn, &row, now));
        assert!(new.unwrap());
        key
    }

    fn claim_as(&mut self, name: &str) -> ClaimOutcome {
        let spends = self.spends;
        let request = ClaimRequest {
            owner: &owner(name),
            repos: &[repo()],
            spends: &|_| spends,
            budget: &self.budget,
            lease: LEASE,
            max_attempts: ATTEMPTS,
            now: self.now,
        };
        claim(&mut self.store, &mut self.charges, request).unwrap()
    }

    fn claimed(&mut self) -> Claim {
        match self.claim_as("w1") {
            ClaimOutcome::Claimed(claim) => *claim,
            ClaimOutcome::Idle { refused } => panic!("refused: {refused:?}"),
        }
    }

    fn run(&mut self) -> (DedupeKey, Reservation) {
        let claim = self.claimed();
        match claim.work {
            Work::Run(reservation) => (claim.trigger.key, reservation),
            Work::Publish => panic!("nothing reserved"),
        }
    }

    fn refused(&mut self) -> Vec<Refusal> {
        match self.claim_as("w1") {
            ClaimOutcome::Idle { refused } => refused,
            ClaimOutcome::Claimed(claim) => panic!("claimed {}", claim.trigger.key),
        }
    }

    fn settle(&mut self, reservation: Reservation, used: u64) -> bool {
        let settlement = settlement(used, StopReason::Completed, self.now);
        self.settle_as(reservation, &settlement)
    }

    fn settle_as(&mut self, reservation: Reservation, settlement: &Settlement) -> bool {
        let settled = self.store.write(|txn| settle(txn, reservation, settlement));
        settled.unwrap()
    }

    fn complete(&mut self, key: &DedupeKey) -> bool {
        let done = self
            .store
            .write(|txn| queue::complete(txn, key, &owner("w1")));
        done.unwrap()
    }

    /// What the ledger holds of the last `span`.
    fn sum(&mut self, span: Duration) -> Cost {
        sum(&mut self.store, self.now.minus(span))
    }

    fn charged(&mut self) -> u64 {
        self.sum(5 * HOUR).tokens.0
    }
}

fn sum(store: &mut Store, since: Timestamp) -> Cost {
    let charges = store.read(|txn| ledger::charges(txn, since)).unwrap();
    charges.iter().fold(Cost::ZERO, |sum, charge| Cost {
        tokens: sum.tokens.plus(charge.cost.tokens),
        money: MicroUsd(sum.money.0 + charge.cost.money.0),
    })
}

fn settlement(used: u64, reason: StopReason, at: Timestamp) -> Settlement {
    Settlement {
        used: Tokens(used),
        money: None,
        confidence: Confidence::Exact,
        engine: Some("test".to_owned()),
        model: None,
        lines: Some(10),
        reason,
        at,
    }
}

#[test]
fn a_run_is_reserved_in_full_and_charged_what_it_used() {
    let mut bench = Bench::new(session_of(4));
    let key = bench.opened(1, 7);
    let claim = bench.claimed();
    assert_eq!(claim.trigger.key, key);
    assert_eq!(claim.at, start());
    let Work::Run(reservation) = claim.work else {
        panic!("nothing reserved");
    };
    assert_eq!(reservation.tokens(), Tokens(RUN));
    assert_eq!(reservation.mode(), Mode::Full);
    assert_eq!(reservation.key(), &key);
    assert_eq!(bench.charged(), RUN);
    assert!(bench.settle(reservation, 30));
    assert_eq!(bench.charged(), 30);
}

#[test]
fn nothing_is_refused_when_nothing_waits() {
    assert_eq!(Bench::new(session_of(0)).refused(), []);
}

#[test]
fn a_clock_set_back_holds_no_lease_and_no_pause_for_longer_than_usual() {
    let mut bench = Bench::new(session_of(9));
    bench.mention(1, 7);
    let paused = bench.mention(2, 7);
    bench.run();
    bench.run();
    let (now, name) = (bench.now, owner("w1"));
    bench
        .store
        .write(|txn| queue::release(txn, &paused, &name, now.plus(HOUR)))
        .unwrap();
    bench.now = start().minus(24 * HOUR);
    assert_eq!(bench.refused(), []);
    bench.now = bench.now.plus(LEASE).plus(Duration::from_secs(60));
    let (leased, _) = bench.run();
    assert_ne!(leased, paused);
    assert!(bench.complete(&leased));
    bench.now = start().minus(24 * HOUR).plus(queue::LONGEST_PAUSE);
    let (key, _) = bench.run();
    assert_eq!(key, paused);
}

#[test]
fn an_absurd_usage_fills_the_windows_and_breaks_no_sum() {
    let mut bench = Bench::new(session_of(9));
    for pr in 1..=4 {
        bench.mention(pr, 7);
    }
    let runs: Vec<Reservation> = (0..3).map(|_| bench.run().1).collect();
    for reservation in runs {
        let absurd = Settlement {
            money: Some(MicroUsd(u64::MAX)),
            ..settlement(u64::MAX, StopReason::Completed, bench.now)
        };
        assert!(bench.settle_as(reservation, &absurd));
    }
    let told = bench.refused()[0].to_string();
    assert!(told.contains("has 0 tokens left"), "{told}");
    assert_eq!(bench.charged(), 3 * Tokens::MOST.0);
    bench.now = start().plus(7 * 24 * HOUR);
    bench.run();
}

#[test]
fn a_row_that_cant_be_read_is_named_and_holds_up_nobody() {
    let mut bench = Bench::new(session_of(9));
    let strange = bench.mention(1, 7);
    let sane = bench.mention(2, 7);
    bench
        .store
        .write(|txn| {
            let sql = "UPDATE queue SET command = 'summarize' WHERE dedupe_key = ?1";
            Ok::<_, StoreError>(txn.execute(sql, [strange.as_str()])?)
        })
        .unwrap();
    assert_eq!(bench.run().0, sane);
    let refused = bench.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].scope, Scope::Row(strange));
    assert_eq!(refused[0].level(), log::Level::Error);
    assert!(
        refused[0].to_string().contains("summarize"),
        "{}",
        refused[0]
    );
}

#[test]
fn a_full_window_refuses_everything_and_says_when_it_may_pass() {
    let mut bench = Bench::new(session_of(2));
    for pr in 1..=5 {
        bench.opened(pr, 7);
    }
    let (_, first) = bench.run();
    bench.settle(first, RUN);
    bench.now = bench.now.plus(HOUR);
    let (_, second) = bench.run();
    bench.settle(second, RUN);
    let refused = bench.refused();
    let wanted = Refusal {
        scope: Scope::All,
        reason: Reason::NoRoom {
            window: WindowKind::Session,
            left: 0,
            needed: RUN,
        },
        until: Some(start().plus(5 * HOUR)),
    };
    assert_eq!(refused, [wanted], "told once, not for each row");
    bench.now = start().plus(5 * HOUR).minus(Duration::from_micros(1));
    bench.refused();
    bench.now = start().plus(5 * HOUR);
    bench.run();
    bench.refused();
}

#[test]
fn the_window_that_lasts_longest_names_the_moment() {
    // The session and the day are full at once.
    let mut bench = Bench::new(budget(RUN, 7 * RUN));
    bench.opened(1, 7);
    bench.opened(2, 7);
    let (_, reservation) = bench.run();
    bench.settle(reservation, RUN);
    assert_eq!(bench.refused()[0].until, Some(start().plus(24 * HOUR)));
    bench.now = start().plus(24 * HOUR);
    bench.run();
}

#[test]
fn a_limit_below_one_run_never_passes() {
    let mut bench = Bench::new(budget(RUN - 1, 1_000 * RUN));
    bench.opened(1, 7);
    let refused = bench.refused();
    assert_eq!(refused[0].until, None);
}

#[test]
fn the_ladder_is_climbed_down_as_the_session_fills() {
    let mut bench = Bench::new(session_of(10));
    let mut modes = Vec::new();
    for pr in 1..=10 {
        bench.mention(pr, 7);
        let (_, reservation) = bench.run();
        modes.push(reservation.mode());
        bench.settle(reservation, RUN);
    }
    use Mode::{Focused, Full, MentionOnly};
    let wanted = [
        Full,
        Full,
        Full,
        Full,
        Full,
        Full,
        Focused,
        Focused,
        Focused,
        MentionOnly,
    ];
    assert_eq!(modes, wanted);
    let rows = bench.store.read(|txn| {
        let mut rows = txn.prepare("SELECT mode FROM ledger ORDER BY id")?;
        let rows = rows.query_map([], |row| row.get::<_, String>(0))?;
        Ok(rows.collect::<Result<Vec<_>, _>>()?)
    });
    let written: Vec<String> = wanted.iter().map(|mode| mode.as_str().to_owned()).collect();
    assert_eq!(rows.unwrap(), written);
}

#[test]
fn above_85_percent_a_mention_behind_automatic_rows_is_served() {
    let mut bench = Bench::new(session_of(10));
    bench.opened(1, 7);
    let (key, reservation) = bench.run();
    bench.settle(reservation, 860);
    assert!(bench.complete(&key));
    bench.opened(2, 7);
    // By now the automatic row is as urgent as a mention, and older.
    bench.now = bench.now.plus(HOUR);
    let mention = bench.mention(3, 7);
    let (key, reservation) = bench.run();
    assert_eq!(key, mention);
    assert_eq!(reservation.mode(), Mode::MentionOnly);
    bench.settle(reservation, 0);
    let refused = bench.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].scope, Scope::Automatic);
    let reason = &refused[0].reason;
    assert!(matches!(reason, Reason::MentionOnly { .. }), "{reason:?}");
    assert_eq!(refused[0].until, Some(start().plus(5 * HOUR)));
}

#[test]
fn an_automatic_row_waits_for_every_window_above_85_percent() {
    // The day holds 96 of 110 parts and loses ten in an hour; the session holds 86 of 100.
    let mut bench = Bench::new(budget(10 * RUN, 7 * 11 * RUN));
    bench.opened(1, 7);
    let (_, reservation) = bench.run();
    bench.settle(reservation, RUN);
    bench.now = start().plus(22 * HOUR);
    bench.opened(2, 7);
    let (_, reservation) = bench.run();
    bench.settle(reservation, 860);
    bench.now = start().plus(23 * HOUR);
    bench.opened(3, 7);
    let refused = bench.refused();
    assert_eq!(refused[0].until, Some(start().plus(27 * HOUR)));
    bench.now = start().plus(27 * HOUR);
    bench.run();
}

#[test]
fn a_recorded_run_is_published_without_a_reservation() {
    let mut bench = Bench::new(session_of(1));
    let key = bench.mention(1, 7);
    let (_, reservation) = bench.run();
    bench.settle(reservation, RUN);
    let run = Run {
        key: key.clone(),
        repo: repo(),
        pr: 1.try_into().unwrap(),
        head: "a".repeat(40).parse().unwrap(),
        outcome: Outcome::Completed,
        findings: Vec::new(),
        omitted: Vec::new(),
        assessment: None,
        provenance: None,
        command: crate::store::queue::Command::Review,
        reply: None,
        notice: None,
        nonce: None,
        recorded_at: bench.now,
        publication: Publication::default(),
    };
    bench.store.write(|txn| runs::record(txn, &run)).unwrap();
    let waits = bench.mention(2, 7);
    bench.now = bench.now.plus(LEASE);
    let claim = bench.claimed();
    assert_eq!(claim.trigger.key, key, "behind a full window");
    assert!(matches!(claim.work, Work::Publish));
    assert_eq!(bench.charged(), RUN);
    let refused = bench.refused();
    assert_eq!(refused.len(), 1, "{waits} is still refused: {refused:?}");
}

#[test]
fn an_account_that_used_up_its_share_delays_nobody_else() {
    let mut bench = Bench::new(session_of(100));
    if let Some(plan) = &mut bench.budget.plan {
        plan.weekly_tokens = Tokens(10 * 7 * RUN);
        plan.per_contributor_pct = Some(2); // 140 tokens
    }
    bench.mention(1, 7);
    let (_, reservation) = bench.run();
    bench.settle(reservation, 60);
    bench.mention(2, 7);
    let modest = bench.mention(3, 8);
    let (key, reservation) = bench.run();
    assert_eq!(key, modest);
    bench.settle(reservation, 1);
    let refused = bench.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].scope, Scope::Account(user(7)));
    assert_eq!(refused[0].until, Some(start().plus(7 * 24 * HOUR)));
    let told = refused[0].to_string();
    assert!(
        told.contains("account 7 (7 d) window has 80 tokens left"),
        "{told}"
    );
}

#[test]
fn an_engine_that_spends_nothing_runs_whatever_the_windows_hold() {
    let mut bench = Bench::new(session_of(0));
    bench.opened(1, 7);
    assert_eq!(bench.refused().len(), 1);
    bench.spends = false;
    bench.budget.plan = None;
    let (_, reservation) = bench.run();
    assert_eq!(reservation.tokens(), Tokens::ZERO);
    assert_eq!(reservation.mode(), Mode::Full);
    assert!(reservation.ledger_id.is_some(), "it has a ledger row");
    assert!(bench.settle(reservation, 0));
}

#[test]
fn a_model_engine_without_a_plan_is_refused() {
    let mut bench = Bench::new(session_of(1));
    bench.budget.plan = None;
    bench.opened(1, 7);
    bench.opened(2, 7);
    let refused = bench.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason, Reason::NoPlan);
}

#[test]
fn a_budget_that_is_switched_off_stops_every_claim() {
    let mut bench = Bench::new(session_of(1));
    bench.budget.enabled = false;
    bench.opened(1, 7);
    for spends in [true, false] {
        bench.spends = spends;
        assert_eq!(bench.refused()[0].reason, Reason::SwitchedOff);
    }
}

#[test]
fn a_refused_row_keeps_its_attempts() {
    let mut bench = Bench::new(session_of(1));
    bench.opened(1, 7);
    bench.budget.plan.as_mut().unwrap().session_tokens = Tokens::ZERO;
    for _ in 0..10 {
        bench.refused();
    }
    bench.budget = session_of(1);
    bench.run();
}

#[test]
fn a_crashed_run_stays_charged_and_its_next_attempt_closes_it_as_lost() {
    let mut bench = Bench::new(session_of(3));
    let key = bench.opened(1, 7);
    let (_, dead) = bench.run();
    bench.now = bench.now.plus(LEASE).plus(Duration::from_secs(1));
    assert_eq!(bench.charged(), RUN);
    let ClaimOutcome::Claimed(claim) = bench.claim_as("w2") else {
        panic!("not claimed");
    };
    assert_eq!(claim.trigger.key, key);
    assert_eq!(bench.charged(), 2 * RUN, "both are charged");
    let now = bench.now;
    let late = settlement(1, StopReason::Completed, now);
    assert!(
        !bench.settle_as(dead, &late),
        "it is not the dead worker's any more"
    );
    assert_eq!(bench.charged(), 2 * RUN);
    let rows = bench.store.read(|txn| {
        let mut rows = txn
            .prepare("SELECT stop_reason, used_tokens, usage_confidence FROM ledger ORDER BY id")?;
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<Vec<(Option<String>, Option<i64>, Option<String>)>, _>>()?)
    });
    let lost = (
        Some("lost".to_owned()),
        Some(RUN as i64),
        Some("unavailable".to_owned()),
    );
    assert_eq!(rows.unwrap(), [lost, (None, None, None)]);
}

#[test]
fn only_its_owner_settles_a_reservation() {
    let mut bench = Bench::new(session_of(3));
    bench.opened(1, 7);
    let (_, mut reservation) = bench.run();
    reservation.owner = owner("somebody else");
    assert!(!bench.settle(reservation, 0));
    assert_eq!(bench.charged(), RUN);
}

#[test]
fn the_reason_decides_what_a_run_is_charged() {
    for (reason, confidence, charged) in [
        (StopReason::Completed, Confidence::Exact, 30),
        (StopReason::Failed, Confidence::Estimated, 30),
        (StopReason::Timeout, Confidence::Unavailable, RUN),
        (StopReason::Lost, Confidence::Exact, RUN),
        (StopReason::Refused, Confidence::Unavailable, 0),
        (StopReason::EngineUnavailable, Confidence::Unavailable, 0),
        (StopReason::Closed, Confidence::Exact, 0),
    ] {
        let mut bench = Bench::new(session_of(1));
        bench.opened(1, 7);
        let (_, reservation) = bench.run();
        let settlement = Settlement {
            confidence,
            ..settlement(30, reason, start())
        };
        assert!(bench.settle_as(reservation, &settlement));
        assert_eq!(bench.charged(), charged, "{reason:?}");
    }
}

#[test]
fn a_change_that_is_too_large_does_not_fit_its_reservation() {
    let mut bench = Bench::new(session_of(1));
    bench.opened(1, 7);
    let (_, reservation) = bench.run();
    let fits = |bench: &mut Bench, lines, bytes| {
        let fits = bench
            .store
            .read(|txn| preflight(txn, &reservation, lines, bytes));
        fits.unwrap()
    };
    assert_eq!(fits(&mut bench, 2, 4 * RUN), Ok(()));
    let wanted = TooLarge {
        lines: 3,
        bytes: 60,
        estimate: Tokens(120),
        reserved: Tokens(RUN),
    };
    assert_eq!(fits(&mut bench, 3, 60), Err(wanted));
    let one_long_line = TooLarge {
        lines: 1,
        bytes: 9_000_000,
        estimate: Tokens(2_250_000),
        reserved: Tokens(RUN),
    };
    assert_eq!(fits(&mut bench, 1, 9_000_000), Err(one_long_line));
}

#[test]
fn an_operators_own_run_has_nothing_to_settle() {
    let mut bench = Bench::new(session_of(1));
    let reservation = Reservation::operator_run(Tokens(5));
    assert_eq!(reservation.tokens(), Tokens(5));
    bench.settle(reservation, 5);
    assert_eq!(bench.charged(), 0);
}

#[test]
fn eight_workers_on_one_file_never_overspend() {
    let mut bench = Bench::new(session_of(3));
    for pr in 1..=16 {
        bench.opened(pr, 7);
    }
    let (path, budget) = (bench.path(), &bench.budget);
    let barrier = Barrier::new(8);
    let worker = |number: usize| {
        let mut store = Store::open_existing(&path).unwrap();
        let owner = owner(&format!("w{number}"));
        barrier.wait();
        let mut claims = Vec::new();
        // The lock may be lost to others; that is no answer.
        let mut answers = 0;
        let mut charges = Charges::default();
        while answers < 4 {
            let request = ClaimRequest {
                owner: &owner,
                repos: &[repo()],
                spends: &|_| true,
                budget,
                lease: LEASE,
                max_attempts: ATTEMPTS,
                now: start(),
            };
            match claim(&mut store, &mut charges, request) {
                Ok(ClaimOutcome::Claimed(claim)) => claims.push(claim.trigger.key),
                Ok(ClaimOutcome::Idle { .. }) => answers += 1,
                Err(StoreError::Busy { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            let charged = sum(&mut store, start().minus(5 * HOUR));
            assert!(charged.tokens <= Tokens(3 * RUN));
        }
        claims
    };
    let mut claims: Vec<DedupeKey> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || worker(n))).collect();
        let claims = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        claims.collect()
    });
    claims.sort();
    claims.dedup();
    assert_eq!(claims.len(), 3);
    assert_eq!(bench.charged(), 3 * RUN);
}
