//! Random schedules over one store, held against an oracle that knows the design and nothing of the
//! code: it keeps the ledger and the queue as lists and adds everything up anew for each question.
//!
//! Several processes with several workers claim, renew, finish, crash and are killed; the clock is set
//! back and ahead; limits are reloaded; runs use more than they reserved. `PRWARDEN_SCHEDULES=100000
//! cargo test --release --lib schedules` runs for minutes instead of seconds.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::*;
use crate::config::MoneyBudget;
use crate::process::Identity;
use crate::store::owners;

const PROCESSES: usize = 2;
const WORKERS: usize = 2;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MONEY: u64 = 1_000;

/// One step of a random schedule. Numbers pick among what there is, by remainder.
#[derive(Debug, Clone)]
enum Step {
    Wait(u32),
    ClockBack(u32),
    ClockAhead(u32),
    Open {
        pr: i64,
        actor: i64,
    },
    Mention {
        pr: i64,
        actor: i64,
    },
    Claim {
        worker: usize,
    },
    /// A run ends; it may have used more than it reserved.
    Finish {
        run: usize,
        used: u64,
        end: End,
    },
    /// All runs of live workers prolong their leases.
    Renew,
    /// A worker dies with its run.
    Crash {
        run: usize,
    },
    /// A whole process dies and is started again.
    Kill {
        process: usize,
    },
    /// A worker that was thought to be dead comes back with its result.
    Late {
        run: usize,
        used: u64,
    },
    Reload(Reload),
}

#[derive(Debug, Clone, Copy)]
enum End {
    Completed,
    Unmeasured,
    Released,
    UsageLimit,
}

/// What the authority's configuration says from now on.
#[derive(Debug, Clone, Copy)]
struct Reload {
    session: u64,
    days: u64,
    run: u64,
    share: u32,
    contributor: Option<u32>,
    role: Option<u32>,
    daily_money: Option<u64>,
    gate: bool,
}

fn reload() -> impl Strategy<Value = Reload> {
    let shares = (
        30_u32..=100,
        prop::option::of(20_u32..=100),
        prop::option::of(30_u32..=100),
    );
    (
        4_u64..12,
        4_u64..20,
        50_u64..=RUN,
        shares,
        prop::option::of(2_u64..6),
        any::<bool>(),
    )
        .prop_map(
            |(session, days, run, (share, contributor, role), daily_money, gate)| Reload {
                session,
                days,
                run,
                share,
                contributor,
                role,
                daily_money,
                gate,
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![
        6 => Just(End::Completed),
        1 => Just(End::Unmeasured),
        1 => Just(End::Released),
        1 => Just(End::UsageLimit),
    ];
    prop_oneof![
        4 => (1_u32..400).prop_map(Step::Wait),
        1 => (1_u32..1_500).prop_map(Step::ClockBack),
        1 => (60_u32..2_000).prop_map(Step::ClockAhead),
        4 => (1_i64..6, 1_i64..4).prop_map(|(pr, actor)| Step::Open { pr, actor }),
        4 => (1_i64..6, 1_i64..4).prop_map(|(pr, actor)| Step::Mention { pr, actor }),
        9 => any::<usize>().prop_map(|worker| Step::Claim { worker }),
        6 => (any::<usize>(), 0_u64..3 * RUN, end)
            .prop_map(|(run, used, end)| Step::Finish { run, used, end }),
        2 => Just(Step::Renew),
        1 => any::<usize>().prop_map(|run| Step::Crash { run }),
        1 => any::<usize>().prop_map(|process| Step::Kill { process }),
        1 => (any::<usize>(), 0_u64..RUN).prop_map(|(run, used)| Step::Late { run, used }),
        1 => reload().prop_map(Step::Reload),
    ]
}

/// What is done to a governor to see that the oracle notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    None,
    /// The claim reserves nothing.
    NoReservation,
    /// Rows leave their windows an hour early.
    WindowStartsLate,
    /// Whoever comes back settles, whether the row is still his or not.
    SettleUnguarded,
    /// A lapsed lease is believed to be free while its owner lives and renews it.
    LeaseForgotten,
}

/// A row of the queue as the oracle has it.
#[derive(Debug, Clone)]
struct Row {
    key: DedupeKey,
    pr: i64,
    actor: i64,
    automatic: bool,
    enqueued: Timestamp,
    attempts: u32,
    not_before: Option<Timestamp>,
    status: Status,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Status {
    Pending,
    Claimed { owner: String, until: Timestamp },
    Over,
}

/// A row of the ledger as the oracle has it.
#[derive(Debug, Clone)]
struct Entry {
    key: DedupeKey,
    owner: String,
    actor: i64,
    at: Timestamp,
    tokens: u64,
    money: u64,
    open: bool,
}

/// A run that some worker has, or had.
struct Running {
    key: DedupeKey,
    owner: String,
    worker: usize,
    reservation: Reservation,
}

struct World<'a> {
    stores: &'a mut [Store],
    /// What each worker knows of the ledger.
    charges: Vec<Charges>,
    mutation: Mutation,
    now: Timestamp,
    limits: Reload,
    configs: Vec<BudgetConfig>,
    /// How often each process was started.
    starts: [u32; PROCESSES],
    /// How often each worker was.
    lives: [u32; PROCESSES * WORKERS],
    rows: Vec<Row>,
    ledger: Vec<Entry>,
    running: Vec<Running>,
    /// Runs whose worker is thought to be dead.
    ghosts: Vec<Running>,
    breaker: Breaker,
    comments: i64,
}

type Checked = Result<(), String>;

macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}

impl<'a> World<'a> {
    fn new(stores: &'a mut [Store], mutation: Mutation) -> Self {
        let clear = "DELETE FROM queue; DELETE FROM ledger; DELETE FROM owners; \
                     DELETE FROM budget_state; DELETE FROM budget_policy;";
        let cleared = stores[0].write(|txn| Ok::<_, StoreError>(txn.execute_batch(clear)?));
        cleared.unwrap();
        let limits = Reload {
            session: 7,
            days: 10,
            run: RUN,
            share: 100,
            contributor: Some(40),
            role: None,
            daily_money: None,
            gate: false,
        };
        let mut world = Self {
            stores,
            charges: (0..PROCESSES * WORKERS)
                .map(|_| Charges::default())
                .collect(),
            mutation,
            now: start(),
            limits,
            configs: Vec::new(),
            starts: [0; PROCESSES],
            lives: [0; PROCESSES * WORKERS],
            rows: Vec::new(),
            ledger: Vec::new(),
            running: Vec::new(),
            ghosts: Vec::new(),
            breaker: Breaker::default(),
            comments: 0,
        };
        world.put_in_force(limits);
        for process in 0..PROCESSES {
            world.start(process);
        }
        world
    }

    fn put_in_force(&mut self, limits: Reload) {
        self.limits = limits;
        let mut authority = budget(limits.session * RUN, limits.days * 7 * RUN);
        authority.pool = Pool::Authority;
        authority.shares.review = limits.role;
        if limits.gate {
            authority.when_exhausted = WhenExhausted::Gate;
        }
        if let Some(plan) = &mut authority.plan {
            plan.max_run_tokens = Tokens(limits.run);
            plan.reviewer_share_pct = limits.share;
            plan.per_contributor_pct = limits.contributor;
            plan.money = limits.daily_money.map(|runs| MoneyBudget {
                daily_microusd: Some(MicroUsd(runs * MONEY)),
                weekly_microusd: None,
                max_run_microusd: MicroUsd(MONEY),
            });
        }
        let member = BudgetConfig {
            pool: Pool::Member,
            plan: None,
            ..authority.clone()
        };
        let now = self.now;
        let joined = self.stores[0].write(|txn| pool::join(txn, &authority, &repo(), now));
        joined.unwrap().unwrap();
        self.configs = vec![authority, member];
    }

    fn start(&mut self, process: usize) {
        self.starts[process] += 1;
        for worker in process * WORKERS..(process + 1) * WORKERS {
            self.start_worker(worker);
        }
    }

    /// A worker begins a life, under a name of its own.
    fn start_worker(&mut self, worker: usize) {
        self.lives[worker] += 1;
        let (process, now) = (worker / WORKERS, self.now);
        let name = owner(&self.name(worker));
        let identity = Identity {
            host: "here".to_owned(),
            pid: u32::try_from(process).unwrap() + 1,
            start: u64::from(self.starts[process]),
        };
        let registered =
            self.stores[process].write(|txn| owners::register(txn, &name, &identity, now));
        registered.unwrap();
    }

    fn name(&self, worker: usize) -> String {
        format!("p{}-w{worker}.{}", worker / WORKERS, self.lives[worker])
    }

    fn step(&mut self, step: &Step) -> Checked {
        match *step {
            Step::Wait(minutes) => self.now = self.now.plus(minutes * MINUTE),
            Step::ClockBack(minutes) => self.now = self.now.minus(minutes * MINUTE),
            Step::ClockAhead(minutes) => self.now = self.now.plus(minutes * MINUTE),
            Step::Open { pr, actor } => self.enqueue(pr, actor, true),
            Step::Mention { pr, actor } => self.enqueue(pr, actor, false),
            Step::Claim { worker } => return self.claim(worker % (PROCESSES * WORKERS)).map(drop),
            Step::Finish { run, used, end } => {
                if let Some(run) = pick(&mut self.running, run) {
                    return self.finish(run, used, end);
                }
            }
            Step::Renew => return self.renew(),
            Step::Crash { run } => {
                if let Some(dead) = pick(&mut self.running, run) {
                    self.start_worker(dead.worker);
                    self.ghosts.push(dead);
                }
            }
            Step::Kill { process } => self.kill(process % PROCESSES),
            Step::Late { run, used } => {
                if let Some(run) = pick(&mut self.ghosts, run) {
                    return self.finish(run, used, End::Completed);
                }
            }
            Step::Reload(limits) => self.put_in_force(limits),
        }
        Ok(())
    }

    fn enqueue(&mut self, pr: i64, actor: i64, automatic: bool) {
        self.comments += 1;
        let number: PrNumber = pr.try_into().unwrap();
        let comment = CommentRef {
            source: CommentSource::Issue,
            id: self.comments.try_into().unwrap(),
        };
        let head: CommitSha = format!("{:040x}", self.comments).parse().unwrap();
        let (kind, key) = if automatic {
            (Kind::PrOpened, DedupeKey::automatic(&repo(), number, &head))
        } else {
            (Kind::Mention, DedupeKey::mention(&repo(), number, comment))
        };
        let new = NewTrigger {
            key: key.clone(),
            kind,
            repo: repo(),
            pr: number,
            head: automatic.then_some(head),
            actor: user(actor),
            comment: (!automatic).then_some(comment),
            command: Command::Review,
        };
        let now = self.now;
        let queued = self.stores[0].write(|txn| queue::enqueue(txn, &new, now));
        assert!(queued.unwrap());
        if automatic {
            for row in &mut self.rows {
                if row.pr == pr && row.automatic && row.status == Status::Pending {
                    row.status = Status::Over;
                }
            }
        }
        self.rows.push(Row {
            key,
            pr,
            actor,
            automatic,
            enqueued: now,
            attempts: 0,
            not_before: None,
            status: Status::Pending,
        });
    }

    /// The windows that hold for `actor`, with whether they are everybody's, what is charged in them,
    /// and what a run needs of them.
    fn windows(&self, actor: i64) -> Vec<(bool, u64, u64, u64)> {
        let percent = u64::from(self.breaker.percent(self.now));
        let part = |amount: u64, percent: u64| amount * percent / 100;
        let week = part(self.limits.days * 7 * RUN, self.limits.share.into());
        let session = part(self.limits.session * RUN, self.limits.share.into());
        let sum = |hours: u32, who: Option<i64>, money: bool| -> u64 {
            let since = self.now.minus(hours * HOUR);
            self.ledger
                .iter()
                .filter(|entry| entry.at > since && who.is_none_or(|who| entry.actor == who))
                .map(|entry| if money { entry.money } else { entry.tokens })
                .sum()
        };
        let run = self.limits.run;
        let mut windows = vec![
            (true, session, sum(5, None, false), run),
            (true, week / 7, sum(24, None, false), run),
            (true, week, sum(168, None, false), run),
        ];
        if let Some(runs) = self.limits.daily_money {
            windows.push((true, runs * MONEY, sum(24, None, true), MONEY));
        }
        if let Some(share) = self.limits.role {
            let limit = part(week, share.into());
            windows.push((false, limit, sum(168, None, false), run));
        }
        if let Some(share) = self.limits.contributor {
            let limit = part(week, share.into());
            windows.push((false, limit, sum(168, Some(actor), false), run));
        }
        for window in &mut windows {
            window.1 = part(window.1, percent);
        }
        windows
    }

    /// What the design says to a run of `row`: `None` to wait, else its reservation and mode.
    fn admits(&self, row: &Row) -> Option<(u64, Mode)> {
        if self.breaker.blocks_until(self.now).is_some() {
            return None;
        }
        let windows = self.windows(row.actor);
        let full = |everybody: bool| {
            let mut kind = windows.iter().filter(|window| window.0 == everybody);
            kind.any(|(_, limit, charged, need)| charged + need > *limit)
        };
        if full(true) {
            return self.limits.gate.then_some((0, Mode::Exhausted));
        }
        if full(false) {
            return None;
        }
        let thousandths = windows
            .iter()
            .map(|(_, limit, charged, _)| charged * 1_000 / limit);
        let mode = match thousandths.max().unwrap() {
            0..600 => Mode::Full,
            600..850 => Mode::Focused,
            _ => Mode::MentionOnly,
        };
        (mode < Mode::MentionOnly || !row.automatic).then_some((self.limits.run, mode))
    }

    fn is_leased(&self, row: &Row) -> bool {
        matches!(&row.status, Status::Claimed { until, .. } if *until > self.now)
    }

    fn is_alive(&self, owner: &str) -> bool {
        self.running.iter().any(|run| run.owner == owner)
    }

    /// The rows that may be claimed, best first, by their place in `rows`.
    fn claimable(&self) -> Vec<usize> {
        let busy: Vec<i64> = self
            .rows
            .iter()
            .filter(|row| self.is_leased(row))
            .map(|row| row.pr)
            .collect();
        let mut found: Vec<usize> = (0..self.rows.len())
            .filter(|at| {
                let row = &self.rows[*at];
                row.status != Status::Over
                    && row.attempts < ATTEMPTS
                    && row.not_before.is_none_or(|until| until <= self.now)
                    && !busy.contains(&row.pr)
            })
            .collect();
        found.sort_by_key(|at| {
            let row = &self.rows[*at];
            let urgent = !row.automatic || row.enqueued <= self.now.minus(30 * MINUTE);
            (!urgent, row.enqueued, row.key.clone())
        });
        found
    }

    /// Claims as one worker; tells whether there was something.
    fn claim(&mut self, worker: usize) -> Result<bool, String> {
        let (process, now) = (worker / WORKERS, self.now);
        let name = self.name(worker);
        if self.is_alive(&name) {
            return Ok(false);
        }
        // Leases and pauses that only a clock set back explains end with the longest that is given.
        let longest = now.plus(LEASE).plus(MINUTE);
        for row in &mut self.rows {
            let pause = now.plus(queue::LONGEST_PAUSE);
            row.not_before = row.not_before.map(|until| until.min(pause));
            if let Status::Claimed { until, .. } = &mut row.status {
                *until = longest.min(*until);
            }
        }
        let wanted = self
            .claimable()
            .into_iter()
            .find_map(|at| Some((at, self.admits(&self.rows[at])?)));
        let outcome = loop {
            let request = ClaimRequest {
                owner: &owner(&name),
                repos: &[repo()],
                spends: &|_| true,
                budget: &self.configs[process],
                lease: LEASE,
                max_attempts: ATTEMPTS,
                now,
            };
            let outcome = claim(
                &mut self.stores[process],
                &mut self.charges[worker],
                request,
            )
            .map_err(|error| error.to_string())?;
            match outcome {
                ClaimOutcome::Claimed(claim) if matches!(claim.work, Work::Publish) => {
                    self.tell(process, &claim.trigger.key, &name)?;
                }
                other => break other,
            }
        };
        let claim = match outcome {
            ClaimOutcome::Claimed(claim) => *claim,
            ClaimOutcome::Idle { refused } => {
                ensure!(
                    wanted.is_none(),
                    "{} waits for nothing: {refused:?}",
                    self.rows[wanted.unwrap().0].key
                );
                self.give_up_exhausted();
                for refusal in refused {
                    self.check_promise(&refusal)?;
                }
                return Ok(false);
            }
        };
        let key = claim.trigger.key;
        let Some((at, (reserved, mode))) = wanted else {
            return Err(format!("{key} was admitted against the design"));
        };
        let holder = self.rows.iter().find(|row| row.key == key);
        if let Some(Status::Claimed { owner, until }) = holder.map(|row| &row.status) {
            let lives = self.is_alive(owner) && *until > now;
            ensure!(!lives, "{key} has two live owners");
        }
        ensure!(
            self.rows[at].key == key,
            "{key} was taken instead of {}",
            self.rows[at].key
        );
        let Work::Run(reservation) = claim.work else {
            return Err(format!("{key} is not to be published"));
        };
        ensure!(
            reservation.tokens() == Tokens(reserved) && reservation.mode() == mode,
            "{key} got {} tokens in {:?}, not {reserved} in {mode:?}",
            reservation.tokens(),
            reservation.mode()
        );
        self.give_up_exhausted();
        for entry in &mut self.ledger {
            if entry.key == key {
                entry.open = false;
            }
        }
        let money = if reserved > 0 && self.limits.daily_money.is_some() {
            MONEY
        } else {
            0
        };
        ensure!(
            reservation.money() == MicroUsd(money),
            "{key} reserved {}",
            reservation.money()
        );
        self.ledger.push(Entry {
            key: key.clone(),
            owner: name.clone(),
            actor: self.rows[at].actor,
            at: now,
            tokens: reserved,
            money,
            open: true,
        });
        let row = &mut self.rows[at];
        row.attempts += 1;
        row.not_before = None;
        row.status = Status::Claimed {
            owner: name.clone(),
            until: now.plus(LEASE),
        };
        self.running.push(Running {
            key,
            owner: name,
            worker,
            reservation,
        });
        self.sabotage();
        self.compare_sums()?;
        Ok(true)
    }

    /// At the moment that a refusal names everything has room, and just before it had not.
    fn check_promise(&mut self, refusal: &Refusal) -> Checked {
        let (now, Some(until)) = (self.now, refusal.until) else {
            return Ok(());
        };
        ensure!(until >= now, "may pass before now: {refusal}");
        let same_limits = self.breaker.percent(until) == self.breaker.percent(now);
        if !matches!(refusal.reason, Reason::NoRoom { .. })
            || refusal.scope != Scope::All
            || !same_limits
        {
            return Ok(());
        }
        let has_room = |world: &Self| {
            let windows = world.windows(1);
            let mut common = windows.iter().filter(|window| window.0);
            common.all(|(_, limit, charged, need)| charged + need <= *limit)
        };
        self.now = until;
        let then = has_room(self);
        self.now = until.minus(Duration::from_micros(1));
        let before = has_room(self);
        self.now = now;
        ensure!(then && !before, "not the moment: {refusal}");
        Ok(())
    }

    /// Ends the telling of a row that used up its attempts, which passes everything else.
    fn tell(&mut self, process: usize, key: &DedupeKey, name: &str) -> Checked {
        self.give_up_exhausted();
        let told = key.published_run();
        let over = |row: &Row| {
            Some(&row.key) == told.as_ref()
                && row.status == Status::Over
                && row.attempts >= ATTEMPTS
        };
        ensure!(self.rows.iter().any(over), "{key} has nothing to tell");
        self.stores[process]
            .write(|txn| queue::complete(txn, key, &owner(name)))
            .map_err(|error| error.to_string())?;
        Ok(())
    }

    fn give_up_exhausted(&mut self) {
        let now = self.now;
        for row in &mut self.rows {
            let leased = matches!(&row.status, Status::Claimed { until, .. } if *until > now);
            if row.attempts >= ATTEMPTS && !leased {
                row.status = Status::Over;
            }
        }
    }

    /// What the ledger adds up to is what the oracle adds up to, in every window.
    fn compare_sums(&mut self) -> Checked {
        for hours in [5, 24, 168] {
            let since = self.now.minus(hours * HOUR);
            let found = sum(&mut self.stores[0], since);
            let inside = self.ledger.iter().filter(|entry| entry.at > since);
            let (tokens, money) = inside.fold((0, 0), |sum, entry| {
                (sum.0 + entry.tokens, sum.1 + entry.money)
            });
            let wanted = Cost {
                tokens: Tokens(tokens),
                money: MicroUsd(money),
            };
            ensure!(
                found == wanted,
                "{found:?} is charged in {hours} h, not {wanted:?}"
            );
        }
        Ok(())
    }

    /// Ends a run, or has somebody come back with its result who lost it.
    fn finish(&mut self, run: Running, used: u64, end: End) -> Checked {
        let Running {
            key,
            owner: name,
            worker,
            reservation,
        } = run;
        let process = worker / WORKERS;
        let (now, reserved) = (self.now, reservation.tokens().0);
        let ledger_id = reservation.ledger_id;
        let mut settlement = settlement(used, StopReason::Completed, now);
        match end {
            End::Completed | End::Released => {}
            End::Unmeasured => settlement.confidence = Confidence::Unavailable,
            End::UsageLimit => settlement.reason = StopReason::UsageLimit,
        }
        let by = owner(&name);
        let (settled, done) = self.stores[process]
            .write(|txn| {
                let settled = settle(txn, reservation, &settlement)?;
                if settled && matches!(end, End::UsageLimit) {
                    super::super::trip(txn, now)?;
                }
                let done = match end {
                    End::Completed | End::Unmeasured => queue::complete(txn, &key, &by)?,
                    End::Released => queue::release(txn, &key, &by, now)?,
                    End::UsageLimit => queue::release_unattempted(txn, &key, &by, now)?,
                };
                Ok::<_, StoreError>((settled, done))
            })
            .unwrap();
        if self.mutation == Mutation::SettleUnguarded {
            let sql = "UPDATE ledger SET used_tokens = ?1 WHERE id = ?2";
            let values = (i64::try_from(used).unwrap(), ledger_id);
            self.raw(|txn| txn.execute(sql, values).map(drop));
        }
        let entry = self.ledger.iter_mut().rev().find(|entry| entry.key == key);
        let entry = entry.filter(|entry| entry.open && entry.owner == name);
        ensure!(
            settled == entry.is_some(),
            "{name} settled {key}: {settled}"
        );
        if let Some(entry) = entry {
            entry.open = false;
            entry.tokens = match end {
                End::Unmeasured => reserved,
                _ => used,
            };
            if entry.tokens == 0 {
                entry.money = 0;
            }
            if matches!(end, End::UsageLimit) {
                self.breaker = self.breaker.trip(now);
            }
        }
        let row = self.rows.iter_mut().find(|row| row.key == key).unwrap();
        let held = matches!(&row.status, Status::Claimed { owner, .. } if *owner == name);
        ensure!(done == held, "{name} finished {key}: {done}");
        if held {
            row.not_before = matches!(end, End::Released | End::UsageLimit).then_some(now);
            row.status = match end {
                End::Completed | End::Unmeasured => Status::Over,
                End::Released => Status::Pending,
                End::UsageLimit => {
                    row.attempts -= 1;
                    Status::Pending
                }
            };
        }
        self.compare_sums()
    }

    fn renew(&mut self) -> Checked {
        let until = self.now.plus(LEASE);
        let mut lost = Vec::new();
        for run in &self.running {
            let name = owner(&run.owner);
            let store = &mut self.stores[run.worker / WORKERS];
            let renewed = store.write(|txn| queue::renew(txn, &run.key, &name, until));
            let row = self.rows.iter_mut().find(|row| row.key == run.key).unwrap();
            let held = matches!(&row.status, Status::Claimed { owner, .. } if *owner == run.owner);
            ensure!(renewed.unwrap() == held, "{name} renewed {}", run.key);
            if held {
                row.status = Status::Claimed {
                    owner: run.owner.clone(),
                    until,
                };
            } else {
                lost.push(run.owner.clone());
            }
        }
        // A run whose lease is lost is ended; its result may still arrive.
        let (gone, kept) = std::mem::take(&mut self.running)
            .into_iter()
            .partition::<Vec<Running>, _>(|run| lost.contains(&run.owner));
        self.running = kept;
        for run in gone {
            self.start_worker(run.worker);
            self.ghosts.push(run);
        }
        Ok(())
    }

    fn kill(&mut self, process: usize) {
        let (dead, kept) = std::mem::take(&mut self.running)
            .into_iter()
            .partition::<Vec<Running>, _>(|run| run.worker / WORKERS == process);
        self.running = kept;
        self.ghosts.extend(dead);
        self.start(process);
        let starts = self.starts;
        let is_alive = |pid: u32, start: u64| {
            let process = usize::try_from(pid - 1).unwrap();
            start == u64::from(starts[process])
        };
        let freed = self.stores[process].write(|txn| owners::free_dead(txn, "here", &is_alive));
        freed.unwrap();
        let prefix = format!("p{process}-");
        for row in &mut self.rows {
            let freed = |status: &Status| matches!(status, Status::Claimed { owner, .. } if owner.starts_with(&prefix));
            if freed(&row.status) {
                row.status = Status::Pending;
            }
        }
    }

    /// Does to the store what a governor with the mutation would have done.
    fn sabotage(&mut self) {
        match self.mutation {
            Mutation::None | Mutation::SettleUnguarded => {}
            Mutation::NoReservation => {
                let sql = "UPDATE ledger SET reserved_tokens = 0 WHERE settled_at IS NULL";
                self.raw(|txn| txn.execute(sql, []).map(drop));
            }
            Mutation::WindowStartsLate => {
                let early = self.now.minus(HOUR).to_string();
                let sql = "UPDATE ledger SET reserved_at = ?1 \
                           WHERE id = (SELECT max(id) FROM ledger)";
                self.raw(|txn| txn.execute(sql, [early]).map(drop));
            }
            Mutation::LeaseForgotten => {
                let past = self.now.minus(MINUTE).to_string();
                let sql = "UPDATE queue SET leased_until = ?1 WHERE status = 'claimed'";
                self.raw(|txn| txn.execute(sql, [past]).map(drop));
            }
        }
    }

    fn raw(&mut self, body: impl FnOnce(&crate::store::Txn<'_>) -> rusqlite::Result<()>) {
        let done = self.stores[0].write(|txn| Ok::<_, StoreError>(body(txn)?));
        done.unwrap();
    }

    /// With nothing new and every run ended at once, every row comes to an end.
    fn drain(&mut self) -> Checked {
        let mut days = 0;
        loop {
            while let Some(run) = self.running.pop() {
                self.finish(run, 10, End::Completed)?;
            }
            if self.claim(0)? {
                continue;
            }
            if self.rows.iter().all(|row| row.status == Status::Over) {
                return Ok(());
            }
            // Limits come back by a point for every five hours, at most to the whole, and what was
            // stamped while the clock was ahead leaves its windows later.
            ensure!(days < 60, "starved: {:?}", self.rows);
            days += 1;
            self.now = self.now.plus(DAY);
        }
    }
}

fn pick<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.swap_remove(at % list.len()))
}

/// Runs `cases` random schedules against a governor with `mutation`.
fn check(cases: u32, mutation: Mutation) -> Result<(), TestError<Vec<Step>>> {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() {
        TempDir::new_in(memory).unwrap()
    } else {
        TempDir::new().unwrap()
    };
    let path = dir.path().join("state.db");
    let stores: Vec<Store> = (0..PROCESSES)
        .map(|_| Store::open(&path).unwrap())
        .collect();
    let stores = std::cell::RefCell::new(stores);
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: if mutation == Mutation::None { 2_000 } else { 0 },
        ..Config::default()
    });
    runner.run(&prop::collection::vec(step(), 1..60), |steps| {
        let mut stores = stores.borrow_mut();
        let mut world = World::new(&mut stores, mutation);
        let checked = steps
            .iter()
            .try_for_each(|step| world.step(step))
            .and_then(|()| world.drain());
        drop(world);
        checked.map_err(TestCaseError::fail)?;
        let problems = stores[0]
            .check()
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(problems.is_empty(), "{problems:?}");
        Ok(())
    })
}

#[test]
fn no_schedule_overspends_shares_a_row_or_starves() {
    let cases = std::env::var("PRWARDEN_SCHEDULES").map_or(150, |text| text.parse().unwrap());
    if let Err(error) = check(cases, Mutation::None) {
        panic!("{error}");
    }
}

#[test]
fn a_mutated_governor_is_noticed() {
    for mutation in [
        Mutation::NoReservation,
        Mutation::WindowStartsLate,
        Mutation::SettleUnguarded,
        Mutation::LeaseForgotten,
    ] {
        assert!(check(150, mutation).is_err(), "{mutation:?} went unnoticed");
    }
}
