//! Figures in words, for reasons and progress lines. Plain ASCII.

use crate::Effect;
use experiment::Metric;
use stats::Scale;

/// An effect with its interval: `time +2.31 % (+1.80 to +2.90)`, with the raw sign of the metric.
pub(crate) fn effect(metric: &Metric, effect: &Effect) -> String {
    let name = &metric.name;
    let Effect { estimate, low, high, .. } = effect;
    match effect.scale {
        Scale::Ratio => {
            let percent = |ratio: &f64| (ratio - 1.0) * 100.0;
            format!("{name} {:+.2} % ({:+.2} to {:+.2})", percent(estimate), percent(low), percent(high))
        }
        Scale::Difference => {
            let unit = if metric.unit.is_empty() { String::new() } else { format!(" {}", metric.unit) };
            format!("{name} {}{unit} ({} to {})", signed(*estimate), signed(*low), signed(*high))
        }
    }
}

/// An effect that is exact: `time +2.31473 %`, with the raw sign of the metric and more digits, since they all count.
pub(crate) fn exact(metric: &Metric, effect: &Effect) -> String {
    let name = &metric.name;
    match effect.scale {
        Scale::Ratio => format!("{name} exactly {} %", digits(6, (effect.estimate - 1.0) * 100.0)),
        Scale::Difference if metric.unit.is_empty() => {
            format!("{name} exactly {}", digits(6, effect.estimate))
        }
        Scale::Difference => format!("{name} exactly {} {}", digits(6, effect.estimate), metric.unit),
    }
}

/// A number with its sign and four digits that count.
fn signed(number: f64) -> String {
    digits(4, number)
}

/// The differences that count as none: `+-2 %`, from 0.02.
pub(crate) fn margin(margin: f64) -> String {
    format!("+-{} %", (margin * 1e4).round() / 100.0)
}

/// A number with four digits that count, and no sign unless it is negative.
pub(crate) fn plain(number: f64) -> String {
    format!("{number:.*}", decimals(4, number))
}

/// A number with its sign and so many digits that count.
fn digits(count: i32, number: f64) -> String {
    format!("{number:+.*}", decimals(count, number))
}

/// The decimals that make so many digits count.
fn decimals(count: i32, number: f64) -> usize {
    if number == 0.0 { 0 } else { (count - 1 - number.abs().log10().floor() as i32).clamp(0, 12) as usize }
}

/// A p value: `p 0.0031`, `p < 0.0001`.
pub(crate) fn p(p: f64) -> String {
    match p {
        small if small < 1e-4 => "p < 0.0001".into(),
        p if p < 0.01 => format!("p {p:.4}"),
        p => format!("p {p:.3}"),
    }
}

/// A time, in the unit in which people would say it.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
