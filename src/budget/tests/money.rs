//! Windows in money beside those in tokens.

use super::*;
use crate::config::MoneyBudget;

/// Plenty of tokens, two dollars a day, half a dollar for a run.
fn bench() -> Bench {
    let mut bench = Bench::new(session_of(100));
    if let Some(plan) = &mut bench.budget.plan {
        plan.money = Some(MoneyBudget {
            daily_microusd: Some(MicroUsd(2_000_000)),
            weekly_microusd: Some(MicroUsd(8_000_000)),
            max_run_microusd: MicroUsd(500_000),
        });
    }
    bench
}

fn spend(bench: &mut Bench, pr: i64, money: Option<u64>, confidence: Confidence) {
    bench.mention(pr, 1);
    let (key, reservation) = bench.run();
    assert_eq!(reservation.money(), MicroUsd(500_000));
    let settlement = Settlement {
        money: money.map(MicroUsd),
        confidence,
        ..settlement(10, StopReason::Completed, bench.now)
    };
    assert!(bench.settle_as(reservation, &settlement));
    assert!(bench.complete(&key));
}

fn cost(bench: &mut Bench) -> u64 {
    bench.sum(24 * HOUR).money.0
}

#[test]
fn a_full_day_of_money_refuses_with_its_amounts() {
    let mut bench = bench();
    for pr in 1..=4 {
        spend(&mut bench, pr, Some(400_000), Confidence::Exact);
    }
    assert_eq!(cost(&mut bench), 1_600_000);
    bench.mention(5, 1);
    let refused = bench.refused();
    assert_eq!(
        refused[0].to_string(),
        "nothing that spends starts: the daily money (24 h) window has $0.40 left, a run reserves \
         $0.50 (budget.max_run_usd); it may pass at 2026-11-02 09:00 UTC"
    );
    bench.now = start().plus(24 * HOUR);
    bench.run();
}

#[test]
fn the_ladder_counts_money_too() {
    let mut bench = bench();
    spend(&mut bench, 1, Some(1_300_000), Confidence::Exact);
    bench.mention(2, 1);
    let (_, reservation) = bench.run();
    assert_eq!(reservation.mode(), Mode::Focused, "65 % of the day's money");
}

#[test]
fn a_run_that_tells_no_cost_is_charged_what_it_reserved() {
    let mut bench = bench();
    spend(&mut bench, 1, None, Confidence::Exact);
    assert_eq!(cost(&mut bench), 500_000);
    spend(&mut bench, 2, Some(100), Confidence::Unavailable);
    assert_eq!(
        cost(&mut bench),
        500_100,
        "its tokens are unknown, its cost is not"
    );
    bench.mention(3, 1);
    let (_, reservation) = bench.run();
    let refused = settlement(0, StopReason::Refused, bench.now);
    assert!(bench.settle_as(reservation, &refused));
    assert_eq!(
        cost(&mut bench),
        500_100,
        "what asked no model costs nothing"
    );
}

#[test]
fn a_crashed_run_stays_charged_in_money() {
    let mut bench = bench();
    bench.mention(1, 1);
    bench.run();
    assert_eq!(cost(&mut bench), 500_000);
    bench.now = bench.now.plus(LEASE);
    bench.run();
    assert_eq!(cost(&mut bench), 1_000_000);
}
