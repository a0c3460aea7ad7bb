//! An exhausted budget whose reviews go on without the model.

use super::*;

#[test]
fn without_tokens_the_built_in_checks_go_on_at_no_tokens() {
    let mut bench = Bench::new(session_of(1));
    bench.budget.when_exhausted = WhenExhausted::Gate;
    bench.mention(1, 1);
    bench.run();
    bench.mention(2, 1);
    let (_, reservation) = bench.run();
    assert_eq!(reservation.mode(), Mode::Exhausted);
    assert_eq!(reservation.tokens(), Tokens::ZERO);
    assert_eq!(bench.charged(), RUN);
}

#[test]
fn while_there_are_tokens_the_model_is_asked() {
    let mut bench = Bench::new(session_of(10));
    bench.budget.when_exhausted = WhenExhausted::Gate;
    bench.mention(1, 1);
    let (_, reservation) = bench.run();
    assert_eq!(reservation.mode(), Mode::Full);
}
