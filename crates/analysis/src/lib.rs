//! From a journal to cells, comparisons and verdicts.
mod model;
pub use model::*;
