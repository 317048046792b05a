//! The statistics of a duel: pure functions on slices of numbers.
mod histogram;
pub use histogram::{Histogram, HistogramError};

/// What an effect is expressed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// New over base, from logarithms: all values are positive.
    Ratio,
    /// New minus base: some value is not positive.
    Difference,
}
