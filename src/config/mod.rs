//! The operator's configuration: raw TOML on one side, values that can't be wrong on the other.

mod types;

pub use types::*;
