//! Times that a thread took, collected one by one.

use stats::Histogram;

/// Times, with their exact sum.
#[derive(Debug, Default)]
pub struct Times {
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them, in nanoseconds.
    pub histogram: Histogram,
}

impl Times {
    /// Adds one.
    pub fn record(&mut self, time_ns: u64) {
        self.sum_ns += time_ns;
        self.max_ns = self.max_ns.max(time_ns);
        self.histogram.record(time_ns);
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Times) {
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.histogram.merge(&other.histogram);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their mean in microseconds; `None` if there are none.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64 / 1e3)
    }
}
