//! From values to places: linear and logarithmic axes with round ticks.

use crate::figures::{significant, trimmed};

/// An axis from values to coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// The coordinates of `low` and `high`.
    from: f64,
    to: f64,
}

impl Axis {
    /// A linear axis over `values` with some room on either side. All equal values stand in its middle.
    pub fn linear(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = bounds(values).unwrap_or((0.0, 1.0));
        let span = high - low;
        // Room for values that are all the same, too.
        let room = if span > 0.0 && span.is_finite() { span * 0.06 } else { (low.abs() * 0.05).max(1e-12) };
        Axis { low: low - room, high: high + room, log: false, from, to }
    }

    /// A logarithmic axis where the values call for it: all positive and of very different sizes.
    pub fn fitting(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Axis {
        match bounds(values.clone()) {
            Some((low, high)) if low > 0.0 && high / low > 20.0 => {
                Axis { low: low / 1.25, high: high * 1.25, log: true, from, to }
            }
            _ => Axis::linear(values, from, to),
        }
    }

    /// Whether equal distances stand for equal ratios.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// The coordinate of a value.
    pub fn place(&self, value: f64) -> f64 {
        let part = match self.log {
            true => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        let part = if part.is_finite() { part.clamp(-0.05, 1.05) } else { 0.5 };
        self.from + part * (self.to - self.from)
    }

    /// Round values, about five, with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let values = if self.log { self.log_ticks() } else { self.linear_ticks() };
        values.into_iter().map(|value| (value, tick_label(value))).collect()
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let span = self.high - self.low;
        let raw = span / 5.0;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= raw * 0.999);
        let Some(step) = step.filter(|step| step.is_finite() && *step > 0.0) else { return Vec::new() };
        let first = (self.low / step).ceil();
        // Whole multiples, so that no rounding error adds up.
        let multiples = (0..20).map(|n| (first + f64::from(n)) * step);
        multiples
            .take_while(|value| *value <= self.high)
            .map(|value| if value == 0.0 { 0.0 } else { value })
            .collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let ticks = |steps: &[f64], every: usize| -> Vec<f64> {
            let powers = (first..=last).step_by(every).map(|power| 10f64.powi(power));
            let all = powers.flat_map(|power| steps.iter().map(move |step| step * power));
            all.filter(|value| *value >= self.low && *value <= self.high).collect()
        };
        // The densest of these that leaves the labels apart.
        let sparse = ((last - first) / 6).max(1) as usize;
        let choices = [ticks(&[1.0, 2.0, 5.0], 1), ticks(&[1.0, 3.0], 1)];
        choices.into_iter().find(|ticks| ticks.len() <= 7).unwrap_or_else(|| ticks(&[1.0], sparse))
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |bounds, value| match bounds {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// `0.05`, `200k`, `1.5M`.
pub(crate) fn tick_label(value: f64) -> String {
    let size = value.abs();
    let (factor, unit) = match size {
        _ if size >= 1e15 => return significant(value, 2),
        _ if size >= 1e9 => (1e-9, "G"),
        _ if size >= 1e6 => (1e-6, "M"),
        _ if size >= 1e4 => (1e-3, "k"),
        _ if size < 1e-6 && size > 0.0 => return format!("{value:.0e}"),
        _ => (1.0, ""),
    };
    format!("{}{unit}", trimmed(value * factor, 9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::linear([0.0, 10.0].into_iter(), 0.0, 100.0);
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "5", "10"]);
        let axis = Axis::fitting([0.02, 130.0].into_iter(), 0.0, 100.0);
        assert!(axis.is_log());
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0.1", "1", "10", "100"]);
        assert_eq!(tick_label(2.5e8), "250M");
    }

    #[test]
    fn s12_equal_values_and_odd_ones_have_a_place() {
        for values in
            [vec![3.0, 3.0], vec![0.0], vec![], vec![1e300, 1e-300], vec![-1.0, 1.0], vec![f64::NAN, 2.0]]
        {
            let axis = Axis::fitting(values.iter().copied(), 0.0, 100.0);
            for value in &values {
                let place = axis.place(*value);
                assert!((-6.0..=106.0).contains(&place), "{values:?} {value} at {place}");
            }
            assert!(axis.ticks().len() < 21, "{values:?}");
        }
    }
}
