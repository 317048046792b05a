use serde::{Deserialize, Serialize};

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Times and latencies.
    Lower,
    /// Rates and bandwidths.
    Higher,
}

/// How a cell's values become one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Arithmetic mean: times, throughputs.
    Amean,
    /// Harmonic mean: bandwidths.
    Hmean,
    /// Median: percentile latencies and the rates of schbench.
    Median,
}

impl Statistic {
    /// The name that mailing lists print: `AMean`, `HMean`, `Median`.
    pub fn label(self) -> &'static str {
        match self {
            Statistic::Amean => "AMean",
            Statistic::Hmean => "HMean",
            Statistic::Median => "Median",
        }
    }
}

/// A named quantity that a workload yields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in JSON, CSV and messages: `time`, `rate`.
    pub name: String,
    /// Its unit: `s`, `ms`, `ops/s`; empty for a plain ratio.
    pub unit: String,
    /// Which way it is good.
    pub direction: Direction,
    /// How values become a cell's figure; also how several samples of one trial become that trial's value.
    pub statistic: Statistic,
    /// Whether it is judged. Verdicts and the correction for many cells cover primary metrics only.
    pub primary: bool,
    /// What stands after "Normalized " in the Units line of the normalized style: `time in seconds`.
    pub units_line: String,
    /// The name of its block in the normalized style, where that is not the workload's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The label of its row where metrics of one workload share a block in the normalized style, one row for each, as
    /// the four kernels of STREAM do: `Copy`. They need the same caption: `test`, `units_line`, direction, statistic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// What it means, in one sentence.
    pub help: String,
}

impl Metric {
    /// A primary metric judged by its arithmetic mean; change what differs with the methods below.
    pub fn new(name: &str, unit: &str, direction: Direction, units_line: &str, help: &str) -> Metric {
        Metric {
            name: name.into(),
            unit: unit.into(),
            direction,
            statistic: Statistic::Amean,
            primary: true,
            units_line: units_line.into(),
            test: None,
            row: None,
            help: help.into(),
        }
    }

    /// The same metric with another statistic.
    pub fn by(mut self, statistic: Statistic) -> Metric {
        self.statistic = statistic;
        self
    }

    /// The same metric, shown but not judged.
    pub fn secondary(mut self) -> Metric {
        self.primary = false;
        self
    }

    /// The same metric as a row of a block that it shares with others of its workload.
    pub fn as_row(mut self, label: &str) -> Metric {
        self.row = Some(label.into());
        self
    }

    /// The same metric under a block name of its own in the normalized style.
    pub fn titled(mut self, test: &str) -> Metric {
        self.test = Some(test.into());
        self
    }
}
