//! The breaker over the store.

use super::*;

fn trip(bench: &mut Bench) {
    let now = bench.now;
    bench
        .store
        .write(|txn| super::super::trip(txn, now))
        .unwrap();
}

#[test]
fn after_a_usage_limit_nothing_starts_for_five_hours_and_it_survives_a_restart() {
    let mut bench = Bench::new(session_of(10));
    bench.mention(1, 1);
    trip(&mut bench);
    bench.store = Store::open(&bench.path()).unwrap();
    bench.now = bench.now.plus(5 * HOUR - Duration::from_secs(1));
    let refused = bench.refused();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].reason, Reason::Tripped { percent: 90 });
    assert_eq!(refused[0].until, Some(start().plus(5 * HOUR)));
    bench.now = start().plus(5 * HOUR);
    bench.run();
}

#[test]
fn after_a_usage_limit_every_window_is_a_tenth_smaller() {
    let mut bench = Bench::new(session_of(10));
    trip(&mut bench);
    bench.now = bench.now.plus(5 * HOUR);
    for pr in 1..=10 {
        bench.mention(pr, 1);
    }
    for _ in 0..9 {
        bench.run();
    }
    let refused = bench.refused();
    assert!(matches!(
        refused[0].reason,
        Reason::NoRoom {
            window: WindowKind::Session,
            ..
        }
    ));
    // Two points come back in ten clean hours; the tenth run needs all ten.
    bench.now = bench.now.plus(50 * HOUR);
    bench.run();
}

#[test]
fn what_spends_nothing_goes_on() {
    let mut bench = Bench::new(session_of(10));
    bench.opened(1, 1);
    trip(&mut bench);
    bench.spends = false;
    bench.run();
}
