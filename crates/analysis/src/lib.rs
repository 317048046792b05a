//! From a journal to cells, comparisons and verdicts.
//!
//! [`analyse`] turns a run into everything that a report prints. [`Live`] answers the one question that is asked while
//! a run goes on, whether a point is decided, and holds the cells and verdicts for both, so that what was said at the
//! stop and what the report says are the same.
//!
//! How a verdict comes about: `docs/statistics.md`.

mod aa;
mod analyse;
mod cells;
mod counts;
mod describe;
mod facts;
mod imported;
mod live;
mod looks;
mod model;
mod notices;
mod tables;
mod verdict;
mod words;

pub use analyse::analyse;
pub use live::{Decision, Live};
pub use model::*;

/// The rate of wrong claims that a run keeps to, over all its primary comparisons together.
pub const LEVEL: f64 = 0.05;
