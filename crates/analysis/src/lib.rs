//! From a journal to cells, comparisons and verdicts.
//!
//! [`analyse`] turns a run into everything that a report prints. [`Live`] answers the one question that is asked while
//! a run goes on, whether a point is decided, and holds the cells and verdicts for both, so that what was said at the
//! stop and what the report says are the same.
//!
//! What is decided here, on top of the tests in `stats`:
//!
//! - A trial's value is the metric's statistic of its samples, and a block counts where both sides have a value.
//! - **Better** and **worse** are corrected (Holm) over all primary comparisons of the run: every primary metric, at every
//!   point, of every variant that changes anything for the workload. They come before **same**: a difference that is
//!   certain is claimed also when it is smaller than the margin.
//! - **Same** means that the interval of confidence 1 - 2 x level lies within 1 - margin to 1 + margin. Where values are
//!   not positive, the margin is a share of the baseline's mean.
//! - No claim rests on one **outlying** block, one that differs from the median block by more than 3.5 robust standard
//!   deviations. A claim must also hold without each of these: their p value is the largest of those without one of
//!   them. Other blocks are not left out, since six that all agree would then never suffice.
//! - A run that goes **until decided** is judged at its looks only. A look is taken when both sides have ended a block of
//!   [`stats::LOOKS`]; "same" is said by the latest look, "better" and "worse" by all of them together. The intervals
//!   shown have the confidence that the latest look leaves, such as 99.2 %.
//! - In **virtual time**, where every block gave each side the same value to the digit, the difference is **exact**: it has
//!   no interval and no p value, and is none of the family. Values that differ are noise as everywhere else.

mod aa;
mod analyse;
mod boots;
mod cells;
mod contest;
mod counts;
mod describe;
mod exact;
mod facts;
mod features;
mod imported;
mod live;
mod looks;
mod model;
mod notices;
mod pairs;
mod sides;
mod tables;
mod verdict;
mod virtual_time;
mod words;

pub use analyse::analyse;
pub use facts::{About, Difference, OptionGroup, Refused, differences, refusal_in_words, refused};
pub use live::{Decision, Live};
pub use model::*;
pub use sides::{Diff, Side, What, diff};

/// The rate of wrong claims that a run keeps to, over all its primary comparisons together.
pub const LEVEL: f64 = 0.05;
