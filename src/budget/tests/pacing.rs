//! Pacing over the store.

use super::*;

/// Runs the review of the best row to its end and tells whether there was one.
fn review(bench: &mut Bench) {
    let (key, reservation) = bench.run();
    assert!(bench.settle(reservation, 10));
    assert!(bench.complete(&key));
}

fn paced(max_reviews: Option<u32>) -> Bench {
    let mut bench = Bench::new(session_of(100));
    bench.budget.pacing = Pacing {
        max_reviews,
        ..Pacing::default()
    };
    bench
}

/// A request about pull request 1, by a comment of its own.
fn ask(bench: &mut Bench, comment: i64) {
    let pr: PrNumber = 1.try_into().unwrap();
    let comment = CommentRef {
        source: CommentSource::Issue,
        id: comment.try_into().unwrap(),
    };
    let key = DedupeKey::mention(&repo(), pr, comment);
    bench.enqueue(Kind::Mention, key, pr, None, 1, Some(comment));
}

#[test]
fn a_pull_request_waits_between_reviews_and_others_do_not() {
    let mut bench = paced(None);
    ask(&mut bench, 1);
    review(&mut bench);
    ask(&mut bench, 2);
    let refused = bench.refused();
    assert_eq!(refused[0].reason, Reason::Paced);
    assert_eq!(
        refused[0].until,
        Some(start().plus(Duration::from_secs(300)))
    );
    bench.opened(2, 1);
    review(&mut bench);
    bench.now = start().plus(Duration::from_secs(300));
    review(&mut bench);
}

#[test]
fn an_automatic_review_waits_longer_than_a_requested_one() {
    let mut bench = paced(None);
    ask(&mut bench, 1);
    review(&mut bench);
    bench.opened(1, 1);
    bench.now = start().plus(Duration::from_secs(899));
    assert_eq!(
        bench.refused()[0].until,
        Some(start().plus(Duration::from_secs(900)))
    );
    bench.now = start().plus(Duration::from_secs(900));
    review(&mut bench);
}

#[test]
fn a_pull_request_has_its_reviews_of_the_day_and_no_more() {
    let mut bench = paced(Some(2));
    for comment in 1..=2 {
        ask(&mut bench, comment);
        review(&mut bench);
        bench.now = bench.now.plus(HOUR);
    }
    ask(&mut bench, 3);
    assert_eq!(bench.refused()[0].until, Some(start().plus(24 * HOUR)));
    bench.now = start().plus(24 * HOUR);
    review(&mut bench);
}

#[test]
fn a_failed_attempt_delays_nothing() {
    let mut bench = paced(None);
    ask(&mut bench, 1);
    let (key, reservation) = bench.run();
    let failed = settlement(10, StopReason::EngineError, bench.now);
    assert!(bench.settle_as(reservation, &failed));
    let now = bench.now;
    let name = owner("w1");
    bench
        .store
        .write(|txn| queue::release(txn, &key, &name, now))
        .unwrap();
    bench.run();
}

#[test]
fn a_clock_that_was_set_back_prolongs_no_wait() {
    let mut bench = paced(None);
    ask(&mut bench, 1);
    review(&mut bench);
    ask(&mut bench, 2);
    bench.now = "2026-10-31T09:00:00Z".parse().unwrap();
    let until = bench.refused()[0].until.unwrap();
    assert_eq!(until, bench.now.plus(Duration::from_secs(300)));
}
