//! What a worker remembers of the ledger.

use super::*;

/// Reads the week at `now` and tells what it adds up to, which a fresh look agrees with.
fn week(bench: &mut Bench, known: &mut Charges, now: Timestamp) -> u64 {
    let mut fresh = Charges::default();
    bench
        .store
        .read(|txn| {
            known.read(txn, now)?;
            fresh.read(txn, now)
        })
        .unwrap();
    assert_eq!(known.rows(), fresh.rows());
    for hours in [0, 1, 5, 24, 7 * 24] {
        let since = now.minus(hours * HOUR);
        let inside = known.rows().iter().filter(|charge| charge.at > since);
        let wanted: u64 = inside.map(|charge| charge.cost.tokens.0).sum();
        assert_eq!(known.since(since).tokens, Tokens(wanted), "{hours} h");
    }
    let sum = known.rows().iter().map(|charge| charge.cost.tokens.0);
    sum.sum()
}

#[test]
fn a_settlement_and_a_new_row_are_seen_at_the_next_look() {
    let mut bench = Bench::new(session_of(9));
    let mut known = Charges::default();
    bench.mention(1, 7);
    bench.mention(2, 7);
    let (_, first) = bench.run();
    assert_eq!(week(&mut bench, &mut known, start()), RUN);
    bench.settle(first, 30);
    bench.run();
    assert_eq!(week(&mut bench, &mut known, start()), RUN + 30);
}

#[test]
fn a_clock_set_back_brings_back_what_had_left_the_week() {
    let mut bench = Bench::new(session_of(9));
    let mut known = Charges::default();
    bench.mention(1, 7);
    bench.run();
    let later = start().plus(8 * 24 * HOUR);
    assert_eq!(week(&mut bench, &mut known, later), 0);
    assert_eq!(week(&mut bench, &mut known, start().plus(HOUR)), RUN);
    assert_eq!(week(&mut bench, &mut known, later), 0);
}

#[test]
fn rows_with_stamps_out_of_order_stand_in_the_order_of_time() {
    let mut bench = Bench::new(session_of(9));
    let mut known = Charges::default();
    for (pr, hours) in [(1, 10), (2, 5), (3, 7)] {
        bench.mention(pr, 7);
        bench.now = start().plus(hours * HOUR);
        bench.run();
        assert!(week(&mut bench, &mut known, start().plus(11 * HOUR)) > 0);
    }
    assert!(known.rows().is_sorted_by_key(|charge| charge.at));
}
