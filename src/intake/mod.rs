//! Hearing what happens on GitHub: conditional requests in, accepted triggers out.
//!
//! What one response brings (its ETag, the watermark, the decisions and the queued rows) is one
//! transaction, so a crash loses nothing and repeats nothing that counts.

mod decide;
mod feed;
pub mod interval;
pub mod open_pulls;
pub mod repository;
