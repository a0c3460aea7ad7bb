//! A pool: one authority, others that comply.

use super::*;
use crate::budget::pool::{self, PoolError};
use crate::store::budget_policy;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn name(text: &str) -> RepoName {
    text.parse().unwrap()
}

fn config(pool: Pool, runs: u64) -> BudgetConfig {
    let budget = session_of(runs);
    BudgetConfig {
        plan: budget.plan.filter(|_| pool != Pool::Member),
        pool,
        ..budget
    }
}

impl Bench {
    fn join(&mut self, pool: Pool, runs: u64, me: &str) -> Result<(), PoolError> {
        let (config, me, now) = (config(pool, runs), name(me), self.now);
        self.store
            .write(|txn| pool::join(txn, &config, &me, now))
            .unwrap()
    }
}

#[test]
fn a_second_authority_is_refused_until_the_first_steps_down_or_is_gone() {
    let mut bench = Bench::new(session_of(1));
    bench.join(Pool::Authority, 10, "acme/one").unwrap();
    bench.join(Pool::Authority, 10, "Acme/One").unwrap();
    let second = bench.join(Pool::Authority, 10, "acme/two").unwrap_err();
    let PoolError::Second { authority, until } = &second else {
        panic!("{second}");
    };
    assert_eq!(
        (authority.as_str(), *until),
        ("Acme/One", start().plus(DAY))
    );
    bench.now = start().plus(DAY).minus(Duration::from_secs(1));
    bench.join(Pool::Authority, 10, "acme/two").unwrap_err();
    bench.now = start().plus(DAY);
    bench.join(Pool::Authority, 10, "acme/two").unwrap();
    bench.join(Pool::Authority, 10, "acme/one").unwrap_err();
    bench.join(Pool::Member, 0, "acme/two").unwrap();
    bench.join(Pool::Authority, 10, "acme/one").unwrap();
}

#[test]
fn a_clock_that_was_far_ahead_keeps_no_authority_for_ever() {
    let mut bench = Bench::new(session_of(1));
    bench.now = start().plus(365 * DAY);
    bench.join(Pool::Authority, 10, "acme/one").unwrap();
    bench.now = start();
    bench.join(Pool::Authority, 10, "acme/two").unwrap();
}

#[test]
fn who_complies_needs_a_policy_and_reads_it_at_each_claim() {
    let mut bench = Bench::new(session_of(1));
    assert_eq!(
        bench.join(Pool::Member, 0, "acme/widgets"),
        Err(PoolError::NoPolicy)
    );
    bench.budget = config(Pool::Member, 0);
    bench.mention(1, 1);
    bench.mention(2, 1);
    assert_eq!(bench.refused()[0].reason, Reason::NoPolicy);
    bench.join(Pool::Authority, 1, "acme/one").unwrap();
    bench.join(Pool::Member, 0, "acme/widgets").unwrap();
    bench.run();
    bench.refused();
    bench.join(Pool::Authority, 2, "acme/one").unwrap();
    bench.run();
}

#[test]
fn a_process_apart_keeps_to_its_own_limits_on_the_common_ledger() {
    let mut bench = Bench::new(session_of(1));
    bench.join(Pool::Authority, 1, "acme/one").unwrap();
    bench.budget = config(Pool::Apart, 2);
    bench.mention(1, 1);
    bench.mention(2, 1);
    bench.mention(3, 1);
    bench.run();
    bench.run();
    bench.refused();
}

#[test]
fn an_authority_stands_by_renewal_and_stops_when_it_was_replaced() {
    let mut bench = Bench::new(config(Pool::Authority, 10));
    bench.join(Pool::Authority, 10, "acme/widgets").unwrap();
    let written = |bench: &mut Bench| {
        let policy = bench.store.read(budget_policy::get::<PlanBudget>);
        policy.unwrap().unwrap().at
    };
    bench.mention(1, 1);
    bench.mention(2, 1);
    bench.run();
    assert_eq!(written(&mut bench), start(), "not at every claim");
    bench.now = start().plus(2 * HOUR);
    bench.run();
    assert_eq!(written(&mut bench), bench.now);
    bench.now = bench.now.plus(DAY);
    bench.join(Pool::Authority, 10, "acme/other").unwrap();
    let refused = bench.refused();
    assert_eq!(
        refused[0].reason,
        Reason::Deposed {
            authority: "acme/other".to_owned()
        }
    );
}

#[test]
fn an_unsound_policy_is_no_limit_and_holds_up_nothing_that_spends_nothing() {
    let sound = r#"{"session_tokens":1,"weekly_tokens":1,"max_run_tokens":1,"reviewer_share_pct":40,"per_contributor_pct":null}"#;
    let mut bench = Bench::new(config(Pool::Member, 0));
    for policy in [
        "{}",
        "not json",
        &sound.replace(r#""session_tokens":1"#, r#""session_tokens":0"#),
        &sound.replace("40", "140"),
        &sound.replace(r#""weekly_tokens":1"#, r#""weekly_tokens":-1"#),
    ] {
        let put =
            "INSERT OR REPLACE INTO budget_policy VALUES (1, 'a/b', ?1, '2026-11-01T09:00:00Z')";
        let put = bench
            .store
            .write(|txn| Ok::<_, StoreError>(txn.execute(put, [policy])?));
        put.unwrap();
        let key = bench.mention(1, 1);
        let refused = bench.refused();
        assert_eq!(refused[0].scope, Scope::All);
        let told = refused[0].to_string();
        assert!(told.contains("budget_policy.policy"), "{told}");
        bench.spends = false;
        assert_eq!(bench.run().0, key);
        bench.spends = true;
        let gone = bench
            .store
            .write(|txn| Ok::<_, StoreError>(txn.execute("DELETE FROM queue", [])?));
        assert_eq!(gone.unwrap(), 1);
    }
}
