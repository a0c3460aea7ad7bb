//! Who may start what: pure decisions over plain facts.
//!
//! Nothing here does I/O, and nothing in a pull request or a comment but its author's numeric id can
//! widen what is allowed.

mod classify;
pub mod mentions;

pub use classify::{
    Account, Cause, CommentFacts, PullFacts, SeenBefore, Skip, Verdict, classify_comment,
    classify_pull,
};
