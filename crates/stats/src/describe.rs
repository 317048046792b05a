//! Figures that describe one set of values.
//!
//! The means are computed relative to the first value. So the mean of equal values is that value to the last bit,
//! their deviation is 0, and no product or sum overflows before the result does.
use crate::undefined::{Undefined, finite, first_of_finite};

/// The arithmetic mean.
///
/// # Errors
/// No values, or one that is not finite.
pub fn mean(values: &[f64]) -> Result<f64, Undefined> {
    let first = first_of_finite(values)?;
    let offset = values.iter().map(|v| v - first).sum::<f64>() / values.len() as f64;
    finite(first + offset)
}

/// The harmonic mean, for rates over equal amounts of work.
///
/// # Errors
/// No values, or one that is not finite or not positive.
pub fn hmean(values: &[f64]) -> Result<f64, Undefined> {
    let first = first_of_positive(values)?;
    let inverse = values.iter().map(|v| first / v).sum::<f64>() / values.len() as f64;
    finite(first / finite(inverse)?)
}

/// The geometric mean, through logarithms.
///
/// # Errors
/// No values, or one that is not finite or not positive.
pub fn gmean(values: &[f64]) -> Result<f64, Undefined> {
    let first = first_of_positive(values)?;
    let offset = values.iter().map(|v| v.ln() - first.ln()).sum::<f64>() / values.len() as f64;
    // In two steps, since e to the whole offset can overflow where the mean itself does not.
    let half = (offset / 2.0).exp();
    finite(first * half * half)
}

/// The middle value, or the average of the middle two.
///
/// # Errors
/// No values, or one that is not finite.
pub fn median(values: &[f64]) -> Result<f64, Undefined> {
    percentile(values, 50.0)
}

/// The value below which `percent` of the values lie, interpolated between neighbours (the definition that makes the
/// 50th the median). A `percent` outside 0..=100 counts as the nearer end.
///
/// # Errors
/// No values, or one that is not finite.
pub fn percentile(values: &[f64], percent: f64) -> Result<f64, Undefined> {
    first_of_finite(values)?;
    if percent.is_nan() {
        return Err(Undefined::NotFinite);
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = percent.clamp(0.0, 100.0) / 100.0 * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    let share = position.fract();
    // Not low + (high - low) * share: the difference of two numbers can overflow, their weighted sum cannot.
    Ok(if low == high { low } else { low * (1.0 - share) + high * share })
}

/// The standard deviation of a sample, with n-1.
///
/// # Errors
/// Fewer than two values, or one that is not finite.
pub fn stddev(values: &[f64]) -> Result<f64, Undefined> {
    let mean = mean(values)?;
    if values.len() < 2 {
        return Err(Undefined::TooFew { have: values.len(), need: 2 });
    }
    let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    finite((squares / (values.len() - 1) as f64).sqrt())
}

/// The coefficient of variation: standard deviation over mean (without its sign), in percent.
///
/// # Errors
/// Fewer than two values, one that is not finite, or a mean of 0.
pub fn cv_pct(values: &[f64]) -> Result<f64, Undefined> {
    let (stddev, mean) = (stddev(values)?, mean(values)?);
    if mean == 0.0 {
        return Err(Undefined::ZeroMean);
    }
    finite(stddev / mean.abs() * 100.0)
}

/// Jain's fairness index of shares: 1 when all are equal, 1/n when one has everything.
///
/// # Errors
/// No shares, one that is not finite or is negative, or all of them 0.
pub fn jain(shares: &[f64]) -> Result<f64, Undefined> {
    first_of_finite(shares)?;
    if shares.iter().any(|s| *s < 0.0) {
        return Err(Undefined::NonPositive);
    }
    let largest = shares.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Err(Undefined::ZeroMean);
    }
    // Relative to the largest, so that no square overflows.
    let sum: f64 = shares.iter().map(|s| s / largest).sum();
    let squares: f64 = shares.iter().map(|s| (s / largest) * (s / largest)).sum();
    Ok(sum * sum / (shares.len() as f64 * squares))
}

fn first_of_positive(values: &[f64]) -> Result<f64, Undefined> {
    let first = first_of_finite(values)?;
    if values.iter().all(|v| *v > 0.0) { Ok(first) } else { Err(Undefined::NonPositive) }
}
