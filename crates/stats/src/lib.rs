//! The statistics of a duel: pure functions on slices of numbers.
//!
//! Values go in one per block, and what comes out is a figure or an [`Undefined`] that says why there is none. No
//! function here panics, and none gives NaN or an infinity. `docs/statistics.md` explains the choices.
mod align;
mod binomial;
mod blocks_needed;
mod compare;
mod components;
mod describe;
mod histogram;
mod null;
mod percent;
mod ranks;
mod resolution;
mod sequential;
mod undefined;

pub use binomial::binomial_tail;
pub use blocks_needed::blocks_needed;
pub use compare::{Comparison, MIN_BLOCKS, Scale, compare};
pub use components::{Components, Split, variance_components};
pub use describe::{cv_pct, gmean, hmean, jain, mean, median, percentile, stddev};
pub use histogram::{Histogram, HistogramError};
pub use percent::{percent_change, percent_improvement};
pub use resolution::tick;
pub use sequential::{LOOKS, holm, look_level, sequential_p};
pub use undefined::Undefined;
