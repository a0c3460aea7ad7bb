//! What `status` shows.

use super::*;

fn look(bench: &mut Bench) -> Outlook {
    let (budget, now) = (bench.budget.clone(), bench.now);
    let found = bench.store.read(|txn| outlook(txn, &budget, now));
    found.unwrap().unwrap()
}

#[test]
fn it_tells_the_windows_and_when_the_next_run_fits() {
    let mut bench = Bench::new(session_of(10));
    assert_eq!(look(&mut bench).requested, Some(start()));
    for (pr, used) in [(1, 600), (2, 260)] {
        bench.mention(pr, 7);
        let (key, reservation) = bench.run();
        bench.settle(reservation, used);
        assert!(bench.complete(&key));
        bench.now = bench.now.plus(HOUR);
    }
    let outlook = look(&mut bench);
    let session = outlook.windows[0];
    assert_eq!((session.charged, session.window.limit), (860, 1_000));
    assert_eq!(session.mode(), Mode::MentionOnly);
    assert_eq!(outlook.requested, Some(bench.now), "now");
    assert_eq!(outlook.automatic, Some(start().plus(5 * HOUR)));
    // What it promises is what a claim does.
    bench.opened(3, 7);
    assert_eq!(bench.refused()[0].until, outlook.automatic);
    bench.now = start().plus(5 * HOUR);
    bench.run();
}

#[test]
fn a_tripped_breaker_comes_first() {
    let mut bench = Bench::new(session_of(10));
    let now = bench.now;
    bench
        .store
        .write(|txn| super::super::trip(txn, now))
        .unwrap();
    let outlook = look(&mut bench);
    assert_eq!(outlook.percent, 90);
    assert_eq!(outlook.requested, Some(start().plus(5 * HOUR)));
}

#[test]
fn without_limits_there_is_nothing_to_tell() {
    let mut bench = Bench::new(session_of(10));
    bench.budget.plan = None;
    let (budget, now) = (bench.budget.clone(), bench.now);
    let found = bench.store.read(|txn| outlook(txn, &budget, now));
    assert!(found.unwrap().is_none());
}
