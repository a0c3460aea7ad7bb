//! Shares of roles and of accounts.

use super::*;

#[test]
fn a_role_keeps_to_its_share_of_the_week() {
    let mut bench = Bench::new(session_of(1_000));
    // A week of 1,000 runs; 1 % of it are ten.
    bench.budget.shares.review = Some(1);
    for pr in 1..=10 {
        bench.mention(pr, pr);
        let (key, reservation) = bench.run();
        assert!(bench.settle(reservation, RUN));
        assert!(bench.complete(&key));
    }
    bench.mention(11, 11);
    let refused = bench.refused();
    assert_eq!(refused[0].scope, Scope::Role(queue::Role::Review));
    assert_eq!(refused[0].until, Some(start().plus(7 * 24 * HOUR)));
    assert_eq!(
        refused[0].to_string(),
        "the review role waits: the review role (7 d) window has 0 tokens left, a run reserves 100 \
         tokens (budget.max_run_tokens); it may pass at 2026-11-08 09:00 UTC"
    );
    bench.budget.shares.review = None;
    bench.run();
}

#[test]
fn what_a_role_leaves_is_not_measured_by_another_roles_rows() {
    let mut bench = Bench::new(session_of(1_000));
    bench.budget.shares.review = Some(1);
    bench
        .store
        .write(|txn| {
            let row = "INSERT INTO ledger (dedupe_key, owner, actor_id, role, mode, reserved_tokens, \
                       used_tokens, reserved_at, settled_at) \
                       VALUES ('k', 'o', 1, 'merge', 'full', 1000, 1000, ?1, ?1)";
            Ok::<_, StoreError>(txn.execute(row, [start().to_string()])?)
        })
        .unwrap();
    bench.mention(1, 1);
    let (_, reservation) = bench.run();
    assert_eq!(reservation.mode(), Mode::Full);
}

#[test]
fn many_rows_that_wait_for_one_thing_are_one_refusal() {
    let mut bench = Bench::new(session_of(10));
    bench.mention(1_000, 7);
    let (key, reservation) = bench.run();
    bench.settle(reservation, 860);
    assert!(bench.complete(&key));
    for pr in 1..=500 {
        bench.opened(pr, pr);
    }
    let refused = bench.refused();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].scope, Scope::Automatic);
    assert!(
        refused[0]
            .to_string()
            .starts_with("automatic reviews wait: ")
    );
}
