//! Latencies, counted, and the percentiles that are printed.

use crate::clock::SECOND_NS;
use crate::shared::Semantics;
use crate::{Failure, Trial};
use experiment::{Direction, Metric, Statistic};
use stats::Histogram;

/// Latencies of a thread or of many.
#[derive(Debug, Clone)]
pub struct Latencies {
    pub histogram: Histogram,
    least_ns: u64,
    most_ns: u64,
    /// Latencies of zero that original semantics leave out.
    pub zeros: u64,
    /// Those whose end came before their beginning.
    backwards: u64,
    /// Every latency, to check the percentiles against.
    #[cfg(test)]
    pub all_ns: Vec<u64>,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    pub fn new() -> Latencies {
        Latencies {
            // So that it does not grow while somebody measures.
            histogram: Histogram::reaching(SECOND_NS),
            least_ns: u64::MAX,
            most_ns: 0,
            zeros: 0,
            backwards: 0,
            #[cfg(test)]
            all_ns: Vec::new(),
        }
    }

    /// Counts the time from `began_ns` to `ended_ns`.
    #[inline]
    pub fn record(&mut self, semantics: Semantics, began_ns: u64, ended_ns: u64) {
        self.record_less(semantics, began_ns, ended_ns, 0, 0);
    }

    /// Counts the time from `began_ns` to `ended_ns` less `less_ns`, or `least_ns` where that is more. With original
    /// semantics a time of zero is left out.
    #[inline]
    pub fn record_less(
        &mut self,
        semantics: Semantics,
        began_ns: u64,
        ended_ns: u64,
        less_ns: u64,
        least_ns: u64,
    ) {
        let Some(whole_ns) = ended_ns.checked_sub(began_ns) else {
            self.backwards += 1;
            return;
        };
        let latency_ns = whole_ns.saturating_sub(less_ns).max(least_ns);
        if latency_ns == 0 && semantics == Semantics::Original {
            self.zeros += 1;
            return;
        }
        self.histogram.record(latency_ns);
        self.least_ns = self.least_ns.min(latency_ns);
        self.most_ns = self.most_ns.max(latency_ns);
        #[cfg(test)]
        self.all_ns.push(latency_ns);
    }

    pub fn merge(&mut self, other: &Latencies) {
        self.histogram.merge(&other.histogram);
        self.least_ns = self.least_ns.min(other.least_ns);
        self.most_ns = self.most_ns.max(other.most_ns);
        self.zeros += other.zeros;
        self.backwards += other.backwards;
        #[cfg(test)]
        self.all_ns.extend(&other.all_ns);
    }

    /// Leaves all `figures` of these latencies in `trial`, and their histogram under the name of the first; nothing where
    /// there were none.
    pub fn leave(
        &self,
        figures: &[Figure],
        prefix: &str,
        semantics: Semantics,
        trial: &mut Trial,
    ) -> Result<(), Failure> {
        if self.backwards > 0 {
            return Err(Failure::Invariant(format!(
                "{} latencies ended before they began: the clock is not monotonic",
                self.backwards
            )));
        }
        if self.histogram.is_empty() {
            return Ok(());
        }
        for figure in figures {
            if let Some(value_us) = self.figure_us(figure.what, semantics) {
                trial.sample(&format!("{prefix}{}", figure.name), value_us)?;
            }
        }
        match figures.first() {
            Some(first) => trial.histogram(&format!("{prefix}{}", first.name), &self.histogram),
            None => Ok(()),
        }
    }

    /// One figure in microseconds: with original semantics in whole ones, as the original has it.
    pub fn figure_us(&self, what: What, semantics: Semantics) -> Option<f64> {
        let value_ns = match what {
            // A bucket reaches beyond the largest value in it.
            What::Percentile(percent) => self.histogram.percentile(percent)?.min(self.most_ns),
            _ if self.histogram.is_empty() => return None,
            What::Least => self.least_ns,
            What::Most => self.most_ns,
        };
        Some(match semantics {
            Semantics::Original => (value_ns / 1000) as f64,
            Semantics::Strict => value_ns as f64 / 1000.0,
        })
    }
}

/// A figure that is printed of latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// What its metric is called, behind the prefix.
    pub name: &'static str,
    pub what: What,
}

/// What a figure says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum What {
    /// The latency that so many percent do not exceed.
    Percentile(f64),
    Least,
    Most,
}

impl Figure {
    pub const fn percentile(name: &'static str, percent: f64) -> Figure {
        Figure { name, what: What::Percentile(percent) }
    }

    pub const LEAST: Figure = Figure { name: "min", what: What::Least };
    pub const MOST: Figure = Figure { name: "max", what: What::Most };
}

/// The metrics of `figures`, of which the first is judged, under the block name `test`. `of` says what latency it is.
pub fn metrics(figures: &[Figure], prefix: &str, test: &str, of: &str) -> Vec<Metric> {
    let metric = |figure: &Figure| {
        let (units_line, help) = match figure.what {
            What::Percentile(percent) => (
                format!("{percent}th percentile latency in us"),
                format!("{of}: what {percent} % of the latencies do not exceed"),
            ),
            What::Least => ("least latency in us".into(), format!("{of}: the least")),
            What::Most => ("largest latency in us".into(), format!("{of}: the largest")),
        };
        Metric::new(&format!("{prefix}{}", figure.name), "us", Direction::Lower, &units_line, &help)
            .by(Statistic::Median)
            .titled(test)
    };
    let mut metrics = figures.iter().map(metric);
    metrics.next().into_iter().chain(metrics.map(Metric::secondary)).collect()
}
