use crate::{Difference, Refused};
use experiment::{Description, Facts, Header, Known, Metric, Point};
use serde::Serialize;

/// A run, analysed: everything that any report style prints.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// What was asked.
    pub header: Header,
    /// Where the run stands.
    pub state: State,
    /// What was read of the machine, by variant, in the order of the variants; empty for imported figures.
    pub facts: Vec<(String, Facts)>,
    /// Facts and kernel options that differ between variants though nobody asked for it, the most telling first.
    pub unasked: Vec<Difference>,
    /// Why the variants are not compared: what differs, and the experiment does not accept. Empty where they are.
    pub refused: Vec<Refused>,
    /// What trials saw of the features that variants turn on.
    pub features: Vec<Feature>,
    /// One table per workload and metric, in the order of the experiment.
    pub tables: Vec<Table>,
    /// The kernels that were booted; none where no variant was.
    pub boots: Option<Boots>,
    /// What the two runs of the baseline say about this machine; missing without A/A.
    pub aa: Known<AaSummary>,
    /// The number of primary comparisons over which "better" and "worse" are corrected.
    pub family: usize,
    /// What its clock makes of a run in virtual time; none for any other.
    pub virtual_time: Option<VirtualTime>,
    /// Trials that ended, good or bad.
    pub trials: usize,
    /// Trials that yielded nothing, with their number per reason.
    pub missing: Vec<(String, usize)>,
    /// Complete blocks of the point that has the most.
    pub blocks: u32,
    /// Complete blocks of the point that has the fewest.
    pub fewest_blocks: u32,
    /// Sentences that readers must know: a torn tail, throttling, differences between versions.
    pub notices: Vec<String>,
}

impl Analysis {
    /// Whether trials have ended and none of them yielded anything.
    pub fn measured_nothing(&self) -> bool {
        self.trials > 0 && self.trials == self.missing.iter().map(|(_, count)| count).sum::<usize>()
    }
}

/// The kernels that a run booted.
#[derive(Debug, Clone)]
pub struct Boots {
    /// How many came up, those before the first block and those of the twin included.
    pub count: usize,
    /// How many boots failed and were tried again with success.
    pub failed: usize,
    /// One row: the time from the start of a boot to the first word of its agent, in seconds, by variant. It is shown,
    /// not judged.
    pub ready: Table,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// All that was asked is done.
    Finished,
    /// It was stopped, with the reason, and can be resumed.
    Interrupted(String),
    /// It has no end yet: it runs, or it was killed.
    Unfinished,
    /// Its figures come from elsewhere.
    Imported,
}

/// What the trials of a workload under a variant saw of a feature that it turns on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// The label of the workload.
    pub workload: String,
    /// The variant.
    pub variant: String,
    /// The feature, in the words of the knob.
    pub feature: String,
    /// Trials that looked for it.
    pub trials: usize,
    /// Those of them in which it ran.
    pub ran: usize,
    /// What was seen in the last of the trials in which it ran, or in the last one if it never did.
    pub seen: String,
}

/// One workload and one metric: a row per point, a cell per variant.
#[derive(Debug, Clone)]
pub struct Table {
    /// The label of the workload.
    pub workload: String,
    /// The workload.
    pub description: Description,
    /// The metric.
    pub metric: Metric,
    /// The names of the variants, the baseline first.
    pub variants: Vec<String>,
    /// The rows, in the order of the points.
    pub rows: Vec<Row>,
    /// The step of the clock or counter behind the samples, where it is coarse enough to show, in the metric's unit.
    pub tick: Option<f64>,
}

/// One point of a table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The point.
    pub point: Point,
    /// A cell per variant, in their order.
    pub cells: Vec<Cell>,
    /// The baseline against its twin.
    pub aa: Known<AaPair>,
}

/// Workload × point × variant, for one metric.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The variant.
    pub variant: String,
    /// Its values, one per block in which it has one.
    pub values: Vec<BlockValue>,
    /// The statistic of the values.
    pub value: Known<f64>,
    /// Their standard deviation, with n-1.
    pub stddev: Known<f64>,
    /// Standard deviation over mean, in percent.
    pub cv_pct: Known<f64>,
    /// Statistic over the baseline's, never inverted.
    pub ratio: Known<f64>,
    /// (this - baseline) / baseline, in percent, raw sign.
    pub change_pct: Known<f64>,
    /// The same with the sign turned for metrics where lower is better: positive is good. The baseline has 0.0, or
    /// -0.0 where lower is better.
    pub improvement_pct: Known<f64>,
    /// The estimated effect against the baseline; missing for the baseline itself.
    pub effect: Known<Effect>,
    /// The share of the variance of its single samples that lies between trials (intraclass correlation, 0 to 1):
    /// what repeating inside a trial cannot average out. Missing where trials yield one sample each.
    pub icc: Known<f64>,
    /// What may be claimed.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub reason: String,
}

/// The value of one block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockValue {
    /// The block, from 1.
    pub block: u32,
    /// The trial's value: the statistic of its samples.
    pub value: f64,
}

/// An estimated effect with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// Whether the figures below are ratios (variant over baseline) or, for values that are not positive,
    /// differences (variant minus baseline).
    pub scale: stats::Scale,
    /// The Hodges-Lehmann estimate.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// The p value of "no difference", of this comparison alone.
    pub p: f64,
    /// The p value after the correction for several looks and for the family, on which the verdict rests; `None` where
    /// nothing is judged.
    pub p_corrected: Option<f64>,
    /// Whether it is exact: in virtual time, where every block gave each side the same value. Then the interval is the
    /// estimate, and nothing was tested.
    pub exact: bool,
    /// In how many blocks both sides have a value.
    pub blocks: usize,
}

/// What may be claimed about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The baseline, with which the others are compared.
    Baseline,
    /// Better than the baseline.
    Better,
    /// Worse than the baseline.
    Worse,
    /// Inside the margin.
    Same,
    /// Neither can be said.
    Undecided,
    /// The feature that the variant turns on did not run.
    NotExercised,
    /// There are no values.
    Missing,
    /// Shown, not judged: the metric is not primary.
    Unjudged,
}

/// A run whose clock counts instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualTime {
    /// The nanoseconds that an instruction takes.
    pub ns_per_instruction: u32,
    /// How many cells were repeated, the twin of the baseline counted with it.
    pub repeated: usize,
    /// Those of which not every repeat gave the same samples to the digit, such as `hackbench 1 under new`.
    pub differing: Vec<String>,
    /// By judged metric and cell, what its value says in instructions.
    pub paths: Vec<Path>,
}

/// How long a path is.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The label of the workload.
    pub workload: String,
    /// The point.
    pub point: Point,
    /// The metric.
    pub metric: String,
    /// The variant.
    pub variant: String,
    /// What there is one of: `op` of a rate in ops/s; empty where the metric itself is a time.
    pub unit: String,
    /// The virtual time of it, in nanoseconds.
    pub ns: f64,
    /// The instructions that fit into it. They ran, if the CPU was not idle meanwhile.
    pub instructions: f64,
    /// For how much of its workload the CPU was idle or did the work of others, in percent, at most.
    pub idle_pct: Known<f64>,
}

/// The baseline against its twin at one point.
#[derive(Debug, Clone, PartialEq)]
pub struct AaPair {
    /// The twin's values.
    pub values: Vec<BlockValue>,
    /// The twin over the baseline.
    pub effect: Known<Effect>,
    /// Whether the test fired.
    pub fired: bool,
}

/// What all A/A pairs say together.
#[derive(Debug, Clone, PartialEq)]
pub struct AaSummary {
    /// Pairs that could be tested.
    pub pairs: usize,
    /// Pairs on which the test fired.
    pub fired: usize,
    /// Pairs of which both sides gave the same to the digit in every block, as they must in virtual time.
    pub identical: usize,
    /// The largest difference of a pair, in percent, without sign.
    pub largest_pct: f64,
    /// The rate at which the test fires by chance.
    pub stated_rate: f64,
    /// Whether it fired more often than chance explains.
    pub distrust: bool,
}
