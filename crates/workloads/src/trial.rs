use crate::Failure;
use experiment::{Evidence, Outcome, Point};
use stats::Histogram;
use std::collections::BTreeMap;

/// One trial as its workload sees it: what point to take, on which CPUs, and where to leave what was measured.
/// Everything is kept in memory until the workload returns, so that nothing is written while it measures.
#[derive(Debug)]
pub struct Trial {
    point: Point,
    cpus: Vec<u32>,
    seed: u64,
    samples: BTreeMap<String, Vec<f64>>,
    histograms: BTreeMap<String, String>,
    counters: BTreeMap<String, f64>,
    evidence: Vec<Evidence>,
    notes: Vec<String>,
}

impl Trial {
    /// A trial of `point` that may use `cpus`, with a seed for its random choices.
    pub fn new(point: Point, cpus: Vec<u32>, seed: u64) -> Trial {
        Trial {
            point,
            cpus,
            seed,
            samples: BTreeMap::new(),
            histograms: BTreeMap::new(),
            counters: BTreeMap::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The point.
    pub fn point(&self) -> &Point {
        &self.point
    }

    /// The point as a number.
    ///
    /// # Errors
    /// When it is a name.
    pub fn count(&self) -> Result<u64, Failure> {
        self.point
            .number()
            .ok_or_else(|| Failure::Refused(format!("the point `{}` is no number", self.point)))
    }

    /// The ids of the CPUs that this trial may use, ascending, never empty. They may have holes.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The seed for the random choices of this trial; the same for every variant of a block.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Leaves a sample of a metric.
    ///
    /// # Errors
    /// When the value is not finite: a fault of the workload, which makes the trial missing.
    pub fn sample(&mut self, metric: &str, value: f64) -> Result<(), Failure> {
        if !value.is_finite() {
            return Err(Failure::Invariant(format!("{metric} came out as {value}")));
        }
        self.samples.entry(metric.into()).or_default().push(value);
        Ok(())
    }

    /// Leaves the histogram of a metric.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn histogram(&mut self, metric: &str, histogram: &Histogram) -> Result<(), Failure> {
        let text = histogram.to_text().map_err(|error| Failure::Invariant(format!("{metric}: {error}")))?;
        self.histograms.insert(metric.into(), text);
        Ok(())
    }

    /// Leaves a figure about the trial that is no metric.
    pub fn counter(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.counters.insert(name.into(), value);
        }
    }

    /// Says whether a feature that was asked for did run.
    pub fn evidence(&mut self, feature: &str, ran: bool, seen: impl Into<String>) {
        self.evidence.push(Evidence { feature: feature.into(), ran, seen: seen.into() });
    }

    /// Leaves a sentence that readers of the report must know.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Leaves all that another trial yielded, which was a part of this one.
    ///
    /// # Errors
    /// When it yielded nothing: the kind of its failure and the reason.
    pub(crate) fn take_over(&mut self, outcome: Outcome) -> Result<(), (experiment::Failure, String)> {
        match outcome {
            Outcome::Missing { failure, why } => Err((failure, why)),
            Outcome::Done { samples, histograms, counters, evidence, notes } => {
                self.samples.extend(samples);
                self.histograms.extend(histograms);
                self.counters.extend(counters);
                self.evidence.extend(evidence);
                self.notes.extend(notes);
                Ok(())
            }
        }
    }

    /// What the trial yielded.
    pub fn into_outcome(self) -> Outcome {
        Outcome::Done {
            samples: self.samples,
            histograms: self.histograms,
            counters: self.counters,
            evidence: self.evidence,
            notes: self.notes,
        }
    }
}
