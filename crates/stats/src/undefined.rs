use thiserror::Error;

/// Why a figure does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Undefined {
    /// There is nothing to compute it from.
    #[error("no values")]
    Empty,
    /// There are not enough values.
    #[error("it takes {need} values, and there are {have}")]
    TooFew {
        /// How many there are.
        have: usize,
        /// How many it takes.
        need: usize,
    },
    /// A value is NaN or infinite, or the figure is larger than a number can hold.
    #[error("a value is not a finite number")]
    NotFinite,
    /// A change relative to a base of 0.
    #[error("the base is 0")]
    ZeroBase,
    /// A share of a mean of 0.
    #[error("the mean is 0")]
    ZeroMean,
    /// The figure exists only for values above 0.
    #[error("a value is not positive")]
    NonPositive,
    /// Two series that should be paired by block differ in length.
    #[error("{base} values of the base cannot be paired with {new} new ones")]
    Unequal {
        /// Values of the base.
        base: usize,
        /// Values of the other side.
        new: usize,
    },
}

/// `value`, unless arithmetic took it out of the range of numbers.
pub(crate) fn finite(value: f64) -> Result<f64, Undefined> {
    if value.is_finite() { Ok(value) } else { Err(Undefined::NotFinite) }
}

/// The first of `values`, if there is one and all are finite.
pub(crate) fn first_of_finite(values: &[f64]) -> Result<f64, Undefined> {
    let first = *values.first().ok_or(Undefined::Empty)?;
    if values.iter().all(|v| v.is_finite()) { Ok(first) } else { Err(Undefined::NotFinite) }
}
