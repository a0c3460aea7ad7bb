use std::time::Duration;

use rusqlite::{Params, params};
use tempfile::TempDir;

use super::ledger::{Confidence, Cost, Mode, NewReservation, Settlement, StopReason};
use super::queue::{Claimable, Command, Kind, NewTrigger, Role, Trigger};
use super::runs::{Outcome, Publication, Run};
use super::watermarks::Stream;
use super::*;
use crate::clock::Timestamp;
use crate::ids::{
    CommentRef, CommentSource, CommitSha, DedupeKey, MicroUsd, OwnerName, PrNumber, RepoName,
    Tokens, UserId,
};
use crate::process::Identity;

mod checking;
mod file;

const MINUTE: Duration = Duration::from_secs(60);
const MAX_ATTEMPTS: u32 = 3;

fn start() -> Timestamp {
    "2026-11-01T09:05:00Z".parse().unwrap()
}

fn later(minutes: u32) -> Timestamp {
    start().plus(minutes * MINUTE)
}

fn repo(name: &str) -> RepoName {
    name.parse().unwrap()
}

fn widgets() -> RepoName {
    repo("acme/widgets")
}

fn pr(number: i64) -> PrNumber {
    number.try_into().unwrap()
}

fn sha(digit: u8) -> CommitSha {
    format!("{digit:040x}").parse().unwrap()
}

fn owner(name: &str) -> OwnerName {
    OwnerName(name.to_owned())
}

fn automatic(number: i64, head: u8) -> NewTrigger {
    NewTrigger {
        key: DedupeKey::automatic(&widgets(), pr(number), &sha(head)),
        kind: Kind::PrOpened,
        repo: widgets(),
        pr: pr(number),
        head: Some(sha(head)),
        actor: 101.try_into().unwrap(),
        comment: None,
        command: Command::Review,
    }
}

fn mention(number: i64, comment: i64) -> NewTrigger {
    let comment = CommentRef {
        source: CommentSource::Issue,
        id: comment.try_into().unwrap(),
    };
    NewTrigger {
        key: DedupeKey::mention(&widgets(), pr(number), comment),
        kind: Kind::Mention,
        head: None,
        comment: Some(comment),
        ..automatic(number, 0)
    }
}

/// A new store in a directory of its own.
struct Shelf {
    _dir: TempDir,
    store: Store,
}

impl Shelf {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("state.db")).unwrap();
        Self { _dir: dir, store }
    }

    fn write<T>(&mut self, body: impl FnOnce(&Txn<'_>) -> Result<T, StoreError>) -> T {
        self.store.write(body).unwrap()
    }

    fn fails<T>(&mut self, body: impl FnOnce(&Txn<'_>) -> Result<T, StoreError>) -> String {
        match self.store.read(body) {
            Ok(_) => panic!("it was read"),
            Err(error) => error.to_string(),
        }
    }

    fn sql(&mut self, sql: &str, values: impl Params) {
        self.write(|txn| Ok(txn.execute(sql, values)?));
    }

    fn count(&mut self, sql: &str) -> i64 {
        self.write(|txn| Ok(txn.query_row(sql, [], |row| row.get(0))?))
    }

    fn enqueue(&mut self, new: &NewTrigger, at: Timestamp) -> bool {
        self.write(|txn| queue::enqueue(txn, new, at))
    }

    fn lease(&mut self, key: &DedupeKey, by: &str, until: Timestamp) {
        self.write(|txn| queue::lease(txn, key, &owner(by), until));
    }

    /// The keys that a claim looks at, best first.
    fn claimable(&mut self, now: Timestamp) -> Vec<DedupeKey> {
        self.claimable_of(&[widgets()], now)
    }

    fn claimable_of(&mut self, repos: &[RepoName], now: Timestamp) -> Vec<DedupeKey> {
        let claimable = Claimable {
            repos,
            max_attempts: MAX_ATTEMPTS,
            now,
        };
        let mut keys = Vec::new();
        self.write(|txn| {
            queue::walk(txn, claimable, |row| {
                keys.push(row.unwrap().key);
                Ok(None::<()>)
            })
        });
        keys
    }

    fn row(&mut self, key: &DedupeKey) -> Trigger {
        self.write(|txn| queue::get(txn, key)).unwrap()
    }

    fn status(&mut self, key: &DedupeKey) -> String {
        let sql = "SELECT status FROM queue WHERE dedupe_key = ?1";
        self.write(|txn| Ok(txn.query_row(sql, [key.as_str()], |row| row.get(0))?))
    }

    fn plan(&mut self, sql: &str) -> String {
        self.write(|txn| {
            let mut statement = txn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            // What is not bound is NULL; the plan does not depend on values.
            let mut rows = statement.raw_query();
            let mut lines = Vec::new();
            while let Some(row) = rows.next()? {
                lines.push(row.get::<_, String>("detail")?);
            }
            Ok(lines.join("\n"))
        })
    }
}

// --- Enqueueing ---

#[test]
fn a_trigger_is_queued_once_also_after_it_was_done() {
    let mut shelf = Shelf::new();
    let new = mention(1, 7);
    assert!(shelf.enqueue(&new, start()));
    assert!(!shelf.enqueue(&new, later(1)));
    assert_eq!(shelf.row(&new.key).enqueued_at, start());
    shelf.lease(&new.key, "w1", later(30));
    assert!(shelf.write(|txn| queue::complete(txn, &new.key, &owner("w1"))));
    assert!(!shelf.enqueue(&new, later(2)), "it was reviewed already");
    assert_eq!(shelf.status(&new.key), "done");
}

#[test]
fn a_queued_trigger_comes_back_as_it_was_given() {
    let mut shelf = Shelf::new();
    for new in [automatic(1, 1), mention(2, 7)] {
        shelf.enqueue(&new, start());
        let row = shelf.row(&new.key);
        assert_eq!((row.kind, &row.repo, row.pr), (new.kind, &new.repo, new.pr));
        assert_eq!((&row.head, row.actor), (&new.head, new.actor));
        assert_eq!((row.comment, row.command), (new.comment, new.command));
        assert_eq!((row.attempts, row.enqueued_at), (0, start()));
    }
}

#[test]
fn a_new_push_replaces_the_older_pushes_that_still_wait() {
    let mut shelf = Shelf::new();
    let (old, running, new) = (automatic(1, 1), automatic(1, 2), automatic(1, 3));
    let (asked, elsewhere) = (mention(1, 7), automatic(2, 1));
    shelf.enqueue(&running, start());
    shelf.lease(&running.key, "w1", later(30));
    for trigger in [&old, &asked, &elsewhere] {
        shelf.enqueue(trigger, start());
    }
    shelf.enqueue(&new, later(1));
    assert_eq!(shelf.status(&old.key), "done");
    for (key, status) in [
        (&running.key, "claimed"),
        (&new.key, "pending"),
        (&asked.key, "pending"),
        (&elsewhere.key, "pending"),
    ] {
        assert_eq!(shelf.status(key), status, "{key}");
    }
    // Hearing of the old push again brings nothing back and replaces nothing.
    assert!(!shelf.enqueue(&old, later(2)));
    assert_eq!(shelf.status(&new.key), "pending");
}

// --- Claiming ---

#[test]
fn publications_come_first_then_people_then_pushes_then_age() {
    let mut shelf = Shelf::new();
    let (early_push, late_push) = (automatic(1, 1), automatic(2, 1));
    let (early_asked, late_asked) = (mention(3, 7), mention(4, 8));
    let reviewed = automatic(5, 1);
    shelf.enqueue(&early_push, start());
    shelf.enqueue(&late_push, later(1));
    shelf.enqueue(&early_asked, later(2));
    shelf.enqueue(&late_asked, later(3));
    shelf.enqueue(&reviewed, later(4));
    shelf.lease(&reviewed.key, "w1", later(9));
    shelf.write(|txn| {
        queue::insert_publish(txn, &reviewed.key, Some((&owner("w1"), later(4))), later(4))?;
        queue::complete(txn, &reviewed.key, &owner("w1"))
    });
    let publish = DedupeKey::publish(&reviewed.key);
    let order = [
        &publish,
        &early_asked.key,
        &late_asked.key,
        &early_push.key,
        &late_push.key,
    ];
    let found = shelf.claimable(later(5));
    assert_eq!(found.iter().collect::<Vec<_>>(), order);
}

#[test]
fn a_push_that_waited_half_an_hour_is_as_urgent_as_a_person() {
    let mut shelf = Shelf::new();
    let (push, asked) = (automatic(1, 1), mention(2, 7));
    shelf.enqueue(&push, start());
    shelf.enqueue(&asked, later(29));
    let second = Duration::from_secs(1);
    assert_eq!(shelf.claimable(later(30).minus(second))[0], asked.key);
    assert_eq!(shelf.claimable(later(30))[0], push.key);
}

#[test]
fn a_pull_request_is_worked_on_by_one_worker_at_a_time() {
    let mut shelf = Shelf::new();
    let (running, waiting, elsewhere) = (automatic(1, 1), mention(1, 7), automatic(2, 1));
    for trigger in [&running, &waiting, &elsewhere] {
        shelf.enqueue(trigger, start());
    }
    shelf.lease(&running.key, "w1", later(30));
    assert_eq!(
        shelf.claimable(later(1)),
        *std::slice::from_ref(&elsewhere.key)
    );
    // The lease has lapsed: both of its rows may be claimed, and the other's.
    assert_eq!(shelf.claimable(later(30)).len(), 3);
    assert!(shelf.write(|txn| queue::renew(txn, &running.key, &owner("w1"), later(60))));
    assert_eq!(shelf.claimable(later(31)), [elsewhere.key]);
}

#[test]
fn rows_of_repositories_that_are_not_served_are_left_alone() {
    let mut shelf = Shelf::new();
    let mine = automatic(1, 1);
    shelf.enqueue(&mine, start());
    assert!(
        shelf
            .claimable_of(&[repo("acme/gadgets")], later(1))
            .is_empty()
    );
    // Another process may allow more attempts.
    shelf.sql("UPDATE queue SET attempts = 3", []);
    let gadgets = [repo("acme/gadgets")];
    let claimable = Claimable {
        repos: &gadgets,
        max_attempts: MAX_ATTEMPTS,
        now: later(1),
    };
    assert_eq!(
        shelf.write(|txn| Ok(queue::abandon_exhausted(txn, claimable)?.len())),
        0
    );
    assert_eq!(shelf.status(&mine.key), "pending");
}

// --- Finishing ---

type Verb = fn(&Txn<'_>, &DedupeKey, &OwnerName) -> Result<bool, StoreError>;

const VERBS: [(&str, Verb); 5] = [
    ("complete", queue::complete),
    ("abandon", queue::abandon),
    ("release", |txn, key, by| {
        queue::release(txn, key, by, later(5))
    }),
    ("release_unattempted", |txn, key, by| {
        queue::release_unattempted(txn, key, by, later(5))
    }),
    ("renew", |txn, key, by| {
        queue::renew(txn, key, by, later(90))
    }),
];

#[test]
fn only_who_holds_a_row_can_end_or_prolong_it() {
    for (name, verb) in VERBS {
        let mut shelf = Shelf::new();
        let key = mention(1, 7).key;
        shelf.enqueue(&mention(1, 7), start());
        assert!(!shelf.write(|txn| verb(txn, &key, &owner("w1"))), "{name}");
        shelf.lease(&key, "w1", later(30));
        assert!(!shelf.write(|txn| verb(txn, &key, &owner("w2"))), "{name}");
        assert_eq!(shelf.status(&key), "claimed", "{name}");
        assert!(shelf.write(|txn| verb(txn, &key, &owner("w1"))), "{name}");
        if name != "renew" {
            assert!(!shelf.write(|txn| verb(txn, &key, &owner("w1"))), "{name}");
        }
    }
}

#[test]
fn a_worker_whose_lease_another_took_over_can_end_nothing() {
    for (name, verb) in VERBS {
        let mut shelf = Shelf::new();
        let key = mention(1, 7).key;
        shelf.enqueue(&mention(1, 7), start());
        shelf.lease(&key, "slow", later(30));
        shelf.lease(&key, "w2", later(60));
        assert!(
            !shelf.write(|txn| verb(txn, &key, &owner("slow"))),
            "{name}"
        );
        assert_eq!(shelf.status(&key), "claimed", "{name}");
    }
}

#[test]
fn a_released_row_waits_for_its_time_and_its_attempt_counts() {
    let mut shelf = Shelf::new();
    let key = mention(1, 7).key;
    shelf.enqueue(&mention(1, 7), start());
    shelf.lease(&key, "w1", later(30));
    shelf.write(|txn| queue::release(txn, &key, &owner("w1"), later(5)));
    assert_eq!(shelf.row(&key).attempts, 1);
    assert!(shelf.claimable(later(4)).is_empty());
    assert_eq!(shelf.claimable(later(5)), [key]);
}

#[test]
fn an_attempt_that_spent_nothing_does_not_count() {
    let mut shelf = Shelf::new();
    let key = mention(1, 7).key;
    shelf.enqueue(&mention(1, 7), start());
    for _ in 0..2 * MAX_ATTEMPTS {
        shelf.lease(&key, "w1", later(30));
        shelf.write(|txn| queue::release_unattempted(txn, &key, &owner("w1"), start()));
    }
    assert_eq!(shelf.row(&key).attempts, 0);
    assert_eq!(shelf.claimable(later(1)), [key]);
}

#[test]
fn a_row_that_used_up_its_attempts_is_abandoned_when_nobody_holds_it() {
    let mut shelf = Shelf::new();
    let (held, lapsed, published) = (mention(1, 7), mention(2, 8), mention(3, 9));
    for trigger in [&held, &lapsed, &published] {
        shelf.enqueue(trigger, start());
    }
    shelf.lease(&held.key, "w1", later(60));
    shelf.lease(&lapsed.key, "w2", later(30));
    shelf.lease(&published.key, "w3", later(30));
    let publish = DedupeKey::publish(&published.key);
    shelf.write(|txn| {
        queue::insert_publish(
            txn,
            &published.key,
            Some((&owner("w3"), later(30))),
            later(1),
        )?;
        queue::complete(txn, &published.key, &owner("w3"))
    });
    shelf.sql("UPDATE queue SET attempts = ?1", [MAX_ATTEMPTS]);
    assert_eq!(shelf.claimable(later(30)), *std::slice::from_ref(&publish));
    let repos = [widgets()];
    let claimable = Claimable {
        repos: &repos,
        max_attempts: MAX_ATTEMPTS,
        now: later(30),
    };
    assert_eq!(
        shelf.write(|txn| Ok(queue::abandon_exhausted(txn, claimable)?.len())),
        1
    );
    assert_eq!(shelf.status(&lapsed.key), "abandoned");
    assert_eq!(
        shelf.status(&held.key),
        "claimed",
        "it is in its last attempt"
    );
    assert_eq!(shelf.status(&publish), "claimed", "it is paid for");
}

#[test]
fn a_review_answers_what_waited_for_the_same_and_nothing_else() {
    let mut shelf = Shelf::new();
    let reviewed = automatic(1, 1);
    let answered = [mention(1, 7), mention(1, 8)];
    let too_late = mention(1, 9);
    let elsewhere = mention(2, 10);
    let other_head = NewTrigger {
        head: Some(sha(2)),
        ..mention(1, 11)
    };
    let other_command = NewTrigger {
        command: Command::Ask,
        ..mention(1, 12)
    };
    let held = mention(1, 13);
    shelf.enqueue(&reviewed, start());
    for trigger in answered
        .iter()
        .chain([&elsewhere, &other_head, &other_command, &held])
    {
        shelf.enqueue(trigger, later(1));
    }
    shelf.enqueue(&too_late, later(3));
    shelf.lease(&reviewed.key, "w1", later(30));
    shelf.lease(&held.key, "w2", later(30));
    let row = shelf.row(&reviewed.key);
    let folded = shelf.write(|txn| queue::fold(txn, &row, &sha(1), later(2)));
    assert_eq!(folded, 2);
    for trigger in &answered {
        assert_eq!(shelf.status(&trigger.key), "done");
    }
    for trigger in [&too_late, &elsewhere, &other_head, &other_command] {
        assert_eq!(shelf.status(&trigger.key), "pending", "{}", trigger.key);
    }
    for trigger in [&reviewed, &held] {
        assert_eq!(shelf.status(&trigger.key), "claimed", "{}", trigger.key);
    }
}

// --- Columns that can't be read ---

fn recorded(key: &DedupeKey) -> Run {
    Run {
        key: key.clone(),
        repo: widgets(),
        pr: pr(1),
        head: sha(1),
        outcome: Outcome::Completed,
        findings: Vec::new(),
        omitted: Vec::new(),
        assessment: None,
        provenance: None,
        command: Command::Review,
        reply: None,
        notice: None,
        nonce: None,
        recorded_at: start(),
        publication: Publication::default(),
    }
}

#[test]
fn an_unreadable_value_of_a_run_is_named_and_never_taken_for_empty() {
    let key = automatic(1, 1).key;
    for (column, value) in [
        ("findings", "not json"),
        ("findings", "{\"path\": 1}"),
        ("omitted", "[1]"),
        ("assessment", "{}"),
        ("provenance", "[]"),
        ("outcome", "splendid"),
        ("head_sha", "main"),
        ("recorded_at", "2026-11-01T09:05:00"),
        ("published_at", "yesterday"),
        ("comment_id", "seven"),
        ("publish_attempts", "many"),
    ] {
        let mut shelf = Shelf::new();
        shelf.write(|txn| runs::record(txn, &recorded(&key)));
        shelf.sql(&format!("UPDATE runs SET {column} = ?1"), [value]);
        let text = shelf.fails(|txn| runs::get(txn, &key));
        let wanted = format!("the store's runs.{column} of {key} can't be read: ");
        assert!(text.starts_with(&wanted), "{text}");
    }
    let mut shelf = Shelf::new();
    shelf.write(|txn| runs::record(txn, &recorded(&key)));
    shelf.sql("UPDATE runs SET findings = ''", []);
    let text = shelf.fails(|txn| runs::earlier_findings(txn, &widgets(), pr(1), None));
    assert!(text.contains(&format!("runs.findings of {key}")), "{text}");
}

#[test]
fn an_unreadable_value_of_a_queue_row_is_named() {
    let new = mention(1, 7);
    for (column, value) in [
        ("kind", "wish"),
        ("repo", "widgets"),
        ("pr_number", "one"),
        ("head_sha", "abc"),
        ("actor_id", "-1"),
        ("attempts", "-1"),
        ("enqueued_at", "2026-11-01T09:05:00"),
        ("comment_id", "seven"),
        ("comment_source", "mail"),
        ("command", "dance"),
    ] {
        let mut shelf = Shelf::new();
        shelf.enqueue(&new, start());
        shelf.sql(&format!("UPDATE queue SET {column} = ?1"), [value]);
        let text = shelf.fails(|txn| queue::get(txn, &new.key));
        let wanted = format!("the store's queue.{column} of {} can't be read: ", new.key);
        assert!(text.starts_with(&wanted), "{text}");
    }
}

#[test]
fn an_unreadable_amount_in_the_ledger_is_named() {
    for (column, value) in [("used_tokens", "-5"), ("used_tokens", "lots")] {
        let mut shelf = Shelf::new();
        reserve(&mut shelf, 100, 101, Role::Review, start());
        shelf.sql(&format!("UPDATE ledger SET {column} = ?1"), [value]);
        let text = shelf.fails(|txn| ledger::newest(txn, 9));
        let wanted = format!("the store's ledger.{column} of key can't be read: ");
        assert!(text.starts_with(&wanted), "{text}");
    }
}

#[test]
fn a_watermark_without_an_offset_is_named() {
    let mut shelf = Shelf::new();
    shelf.sql(
        "INSERT INTO watermarks VALUES ('comments:acme/widgets', '2026-11-01T09:05:00')",
        [],
    );
    let wanted = "the store's watermarks.at of comments:acme/widgets can't be read: \
                  \"2026-11-01T09:05:00\" is not a time with an offset such as \
                  2026-11-01T09:05:00Z";
    let text = shelf.fails(|txn| watermarks::get(txn, Stream::Comments, &widgets()));
    assert_eq!(text, wanted);
    let text = shelf.fails(|txn| watermarks::advance(txn, Stream::Comments, &widgets(), start()));
    assert_eq!(text, wanted, "it is not overwritten, either");
}

// --- Watermarks ---

#[test]
fn a_watermark_only_moves_forward() {
    let mut shelf = Shelf::new();
    let mut advance =
        |at| shelf.write(|txn| watermarks::advance(txn, Stream::Comments, &widgets(), at));
    assert_eq!(advance(later(5)), later(5));
    assert_eq!(advance(later(3)), later(5));
    assert_eq!(advance(later(5)), later(5));
    assert_eq!(advance(later(6)), later(6));
    let other = shelf.write(|txn| watermarks::get(txn, Stream::PullRequests, &widgets()));
    assert_eq!(other, None, "streams are apart");
}

#[test]
fn watermarks_of_the_only_repository_are_adopted_once() {
    let mut shelf = Shelf::new();
    shelf.sql(
        "INSERT INTO watermarks VALUES ('pull_requests', ?1), ('comments', ?2), \
         ('comments:acme/widgets', ?3)",
        params![
            start().to_string(),
            later(1).to_string(),
            later(2).to_string()
        ],
    );
    let gadgets = repo("acme/gadgets");
    assert!(shelf.write(|txn| watermarks::adopt_unqualified(txn, &widgets())));
    assert!(!shelf.write(|txn| watermarks::adopt_unqualified(txn, &gadgets)));
    let mut get = |stream, repo: &RepoName| shelf.write(|txn| watermarks::get(txn, stream, repo));
    assert_eq!(get(Stream::PullRequests, &widgets()), Some(start()));
    assert_eq!(
        get(Stream::Comments, &widgets()),
        Some(later(2)),
        "not back"
    );
    assert_eq!(get(Stream::PullRequests, &gadgets), None);
    assert_eq!(get(Stream::Comments, &gadgets), None);
    assert_eq!(shelf.count("SELECT count(*) FROM watermarks"), 2);
}

// --- Owners ---

#[test]
fn rows_of_a_process_that_is_gone_are_free_at_once() {
    let mut shelf = Shelf::new();
    let names = ["gone", "alive", "reused", "abroad", "unknown"];
    let hosts = [
        ("gone", "here", 1),
        ("alive", "here", 2),
        ("reused", "here", 3),
    ];
    for (name, host, pid) in hosts.into_iter().chain([("abroad", "there", 4)]) {
        let identity = Identity {
            host: host.to_owned(),
            pid,
            start: u64::MAX,
        };
        shelf.write(|txn| owners::register(txn, &owner(name), &identity, start()));
    }
    let triggers: Vec<NewTrigger> = (1..=5).map(|number| mention(number, number)).collect();
    for (trigger, name) in triggers.iter().zip(names) {
        shelf.enqueue(trigger, start());
        shelf.lease(&trigger.key, name, later(30));
    }
    // Process 3 runs, but another program that started later has its number now.
    let is_alive = |pid, start| pid == 2 && start == u64::MAX;
    let freed = shelf.write(|txn| owners::free_dead(txn, "here", &is_alive));
    assert_eq!(freed, 2);
    let statuses: Vec<String> = triggers.iter().map(|t| shelf.status(&t.key)).collect();
    assert_eq!(
        statuses,
        ["pending", "claimed", "pending", "claimed", "claimed"]
    );
    assert_eq!(
        shelf.row(&triggers[0].key).attempts,
        1,
        "the attempt counts"
    );
    assert_eq!(shelf.count("SELECT count(*) FROM owners"), 2);
    let again = shelf.write(|txn| owners::free_dead(txn, "here", &is_alive));
    assert_eq!(again, 0);
}

// --- The ledger ---

fn reserve(shelf: &mut Shelf, tokens: u64, actor: i64, role: Role, at: Timestamp) -> i64 {
    let actor: UserId = actor.try_into().unwrap();
    shelf.write(|txn| {
        let new = NewReservation {
            key: &DedupeKey::from_stored("key".to_owned()),
            owner: &owner("w1"),
            actor,
            role,
            mode: Mode::Full,
            cost: Cost {
                tokens: Tokens(tokens),
                money: MicroUsd(tokens * 1_000),
            },
            repo: &widgets(),
            pr: pr(1),
            at,
        };
        ledger::open(txn, new)
    })
}

#[test]
fn charges_are_told_oldest_first_with_what_they_cost() {
    let mut shelf = Shelf::new();
    reserve(&mut shelf, 10, 101, Role::Review, start());
    reserve(&mut shelf, 20, 202, Role::Fix, later(1));
    reserve(&mut shelf, 40, 101, Role::Review, later(2));
    let settled = shelf.write(|txn| {
        let settlement = Settlement {
            used: Tokens(5),
            money: None,
            confidence: Confidence::Exact,
            engine: None,
            model: None,
            lines: None,
            reason: StopReason::Completed,
            at: later(3),
        };
        ledger::settle(txn, 3, &owner("w1"), &settlement)
    });
    assert!(settled);
    let since = |shelf: &mut Shelf, since: Timestamp| {
        let charges = shelf.write(|txn| ledger::charges(txn, since));
        charges
            .iter()
            .map(|charge| {
                (
                    charge.id,
                    charge.actor,
                    charge.role,
                    charge.cost.tokens.0,
                    charge.open,
                )
            })
            .collect::<Vec<_>>()
    };
    // The first two were closed as lost when the next attempt of their trigger began.
    let all = [
        (1, 101, Role::Review, 10, false),
        (2, 202, Role::Fix, 20, false),
        (3, 101, Role::Review, 5, false),
    ];
    assert_eq!(since(&mut shelf, start().minus(MINUTE)), all);
    assert_eq!(since(&mut shelf, start()), all[1..], "the start is outside");
    let after = shelf.write(|txn| ledger::charges_after(txn, 2));
    assert_eq!(after.len(), 1);
    assert_eq!(shelf.write(|txn| ledger::charge(txn, 3)), Some(after[0]));
    assert_eq!(shelf.write(ledger::last_id), 3);
}

// --- What history costs ---

const CLAIMABLE: &str = include_str!("../../sql/queue/claimable.sql");

/// Every step that reads `queue` (by its names in the statement) or `ledger` goes through an index.
fn assert_no_scan(plan: &str, tables: &[&str]) {
    for line in plan.lines() {
        for table in tables {
            let scan = format!("SCAN {table}");
            let reads = line == scan || line.starts_with(&format!("{scan} "));
            assert!(!reads || line.contains(" INDEX "), "{line}\nin\n{plan}");
        }
    }
}

#[test]
fn a_claim_reads_only_live_rows_however_many_are_finished() {
    let mut shelf = Shelf::new();
    let plan = shelf.plan(CLAIMABLE);
    assert_no_scan(&plan, &["queue", "candidate", "other"]);
    for name in ["candidate", "other"] {
        let line = plan
            .lines()
            .find(|line| line.split(' ').nth(1) == Some(name))
            .unwrap_or_else(|| panic!("{name} is missing in\n{plan}"));
        assert!(line.contains("queue_live"), "{plan}");
    }
    for sql in [
        include_str!("../../sql/queue/abandon_exhausted.sql"),
        include_str!("../../sql/queue/replace_older.sql"),
        include_str!("../../sql/queue/fold.sql"),
        include_str!("../../sql/queue/free.sql"),
    ] {
        assert_no_scan(&shelf.plan(sql), &["queue"]);
    }
}

#[test]
fn measuring_a_window_reads_only_the_window() {
    let mut shelf = Shelf::new();
    for (sql, index) in [
        (
            include_str!("../../sql/ledger/charges.sql"),
            "INDEX ledger_window",
        ),
        (
            include_str!("../../sql/ledger/charges_after.sql"),
            "INTEGER PRIMARY KEY",
        ),
        (
            include_str!("../../sql/ledger/charge.sql"),
            "INTEGER PRIMARY KEY",
        ),
        (
            include_str!("../../sql/ledger/recent_reviews.sql"),
            "INDEX ledger_by_pr",
        ),
        (
            include_str!("../../sql/ledger/close_lost.sql"),
            "INDEX ledger_open",
        ),
    ] {
        let plan = shelf.plan(sql);
        let wanted = format!("SEARCH ledger USING {index} (");
        assert!(plan.starts_with(&wanted), "{plan}\nof\n{sql}");
        assert_no_scan(&plan, &["ledger"]);
    }
}

#[test]
fn looking_up_one_pull_request_or_run_reads_only_its_rows() {
    let mut shelf = Shelf::new();
    for (sql, tables) in [
        (include_str!("../../sql/runs/get.sql"), &["runs"][..]),
        (
            include_str!("../../sql/runs/completed_for_head.sql"),
            &["runs"],
        ),
        (include_str!("../../sql/runs/reviews.sql"), &["runs"]),
        (include_str!("../../sql/queue/lease.sql"), &["queue"]),
        (include_str!("../../sql/queue/finish.sql"), &["queue"]),
        (
            include_str!("../../sql/queue/insert_publish.sql"),
            &["queue"],
        ),
        (include_str!("../../sql/ledger/settle.sql"), &["ledger"]),
        (
            include_str!("../../sql/ledger/rate_sample.sql"),
            &["ledger"],
        ),
    ] {
        assert_no_scan(&shelf.plan(sql), tables);
    }
}

#[test]
fn a_lock_held_for_long_turns_a_claim_away_and_delays_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = Store::open(&path).unwrap();
    let (locked, is_locked) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let path = &path;
        scope.spawn(move || {
            let other = Connection::open(path).unwrap();
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            locked.send(()).unwrap();
            std::thread::sleep(BUSY_TIMEOUT + Duration::from_secs(1));
            other.execute_batch("COMMIT").unwrap();
        });
        is_locked.recv().unwrap();
        let turned_away = store.write(|_| Ok::<_, StoreError>(()));
        assert!(matches!(turned_away, Err(StoreError::Busy { .. })));
        store.write_patiently(|_| Ok::<_, StoreError>(())).unwrap();
    });
}
