//! One figure from several values, or the reason why there is none.

use experiment::{Known, Metric, Missing, Statistic};
use stats::Undefined;

/// The metric's statistic of `values`.
pub(crate) fn statistic(metric: &Metric, values: &[f64]) -> Known<f64> {
    let figure = match metric.statistic {
        Statistic::Amean => stats::mean(values),
        Statistic::Hmean => stats::hmean(values),
        Statistic::Median => stats::median(values),
    };
    figure.map_err(|error| match error {
        Undefined::NonPositive if values.iter().any(|value| *value < 0.0) => {
            Missing::because("a value is negative, and the harmonic mean knows none")
        }
        Undefined::NonPositive => Missing::because("a value is 0, below resolution"),
        other => missing(other),
    })
}

/// An undefined figure as an absence.
pub(crate) fn missing(error: Undefined) -> Missing {
    Missing::because(error.to_string())
}

/// The absence of everything that is relative to a baseline of 0.
pub(crate) fn base_is_zero(metric: &Metric) -> Missing {
    let timed = ["s", "ms", "us", "ns"].contains(&metric.unit.as_str());
    Missing::because(if timed { "the baseline is 0, below resolution" } else { "the baseline is 0" })
}
