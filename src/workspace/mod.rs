//! Git over untrusted trees: mirror, worktree, diff, exclusions and size gate.

pub mod change;
