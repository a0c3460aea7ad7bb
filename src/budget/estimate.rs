//! The pre-flight: whether a change of so many lines fits the reservation. Pure.

use crate::ids::Tokens;
use crate::store::ledger::RateSample;

/// Tokens for each reviewable line until enough rounds were measured.
const FIRST_RATE: u64 = 40;

/// Bytes of a diff for each token, at the fewest tokens that a model makes of it: lines may be long.
const BYTES_PER_TOKEN: u64 = 4;

/// So many measured full rounds are needed to trust their ratio.
const ENOUGH_ROUNDS: u32 = 10;

/// The change is estimated to need more than a run may use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{lines} lines of {bytes} bytes together are estimated to need {estimate} tokens, a run may use \
     {reserved} (budget.max_run_tokens)"
)]
pub struct TooLarge {
    /// Reviewable lines.
    pub lines: u32,
    /// Bytes of the diff.
    pub bytes: u64,
    /// What they are estimated to need.
    pub estimate: Tokens,
    /// What is reserved.
    pub reserved: Tokens,
}

/// Checks that `lines` fit into `reserved`, at the rate that `sample` shows, and that their `bytes` do.
pub(super) fn check(
    lines: u32,
    bytes: u64,
    reserved: Tokens,
    sample: RateSample,
) -> Result<(), TooLarge> {
    let measured = sample.rounds >= ENOUGH_ROUNDS && sample.lines > 0;
    let (tokens, per) = if measured {
        (sample.tokens.0, sample.lines)
    } else {
        (FIRST_RATE, 1)
    };
    let estimate = (u128::from(lines) * u128::from(tokens)).div_ceil(u128::from(per));
    let estimate = u64::try_from(estimate).unwrap_or(u64::MAX);
    let estimate = Tokens(estimate.max(bytes / BYTES_PER_TOKEN));
    if estimate <= reserved {
        Ok(())
    } else {
        Err(TooLarge {
            lines,
            bytes,
            estimate,
            reserved,
        })
    }
}
