use crate::undefined::{Undefined, finite};

/// The change from `base` to `new` in percent of the base: positive when `new` is larger. (For a negative base the
/// percentage is of its size, so that the sign keeps that meaning.)
///
/// # Errors
/// A base of 0, or a value that is not finite.
pub fn percent_change(base: f64, new: f64) -> Result<f64, Undefined> {
    let (base, new) = (finite(base)?, finite(new)?);
    if base == 0.0 {
        return Err(Undefined::ZeroBase);
    }
    finite((new - base) / base.abs() * 100.0)
}

/// The change in percent with its sign turned for metrics where lower is better, so that positive is always good.
///
/// A baseline against itself gives 0.0 where higher is better and -0.0 where lower is better. That is the sign of the
/// formula, and the normalised tables of the mailing lists print it.
///
/// # Errors
/// As for [`percent_change`].
pub fn percent_improvement(base: f64, new: f64, lower_is_better: bool) -> Result<f64, Undefined> {
    let change = percent_change(base, new)?;
    Ok(if lower_is_better { -change } else { change })
}
