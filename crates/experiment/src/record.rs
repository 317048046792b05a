use crate::{Description, Experiment, Facts, Point, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Record {
    /// What was asked; the first record of every run.
    Header(Box<Header>),
    /// What a variant's machine and kernel are.
    Facts {
        /// The variant that was prepared when they were read.
        variant: String,
        /// What was read.
        facts: Box<Facts>,
    },
    /// A kernel that was booted.
    Boot(Box<BootRecord>),
    /// A trial that came to its end, good or bad.
    Trial(Box<TrialRecord>),
    /// A figure that somebody else measured, read from a table.
    Summary(Summary),
    /// The run was taken up again.
    Resumed {
        /// When, in milliseconds since 1970.
        at_unix_ms: u64,
        /// The differences across which it is compared from then on, beside those that the experiment accepts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted: Vec<Refusal>,
    },
    /// Something that readers of the report must know.
    Notice {
        /// One sentence.
        text: String,
    },
    /// The run ended.
    End {
        /// When, in milliseconds since 1970.
        at_unix_ms: u64,
        /// How.
        ending: Ending,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "how", content = "why")]
pub enum Ending {
    /// All that was asked is done.
    Finished,
    /// A signal or the user stopped it; it can be resumed.
    Interrupted(String),
    /// An error stopped it; it can be resumed when the cause is gone.
    Failed(String),
}

/// What was asked, and by which build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The run's name: date, time and a few random letters.
    pub run: String,
    /// The version of kduel.
    pub version: String,
    /// The id of the build.
    pub build: String,
    /// When the run began, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// The seed in force.
    pub seed: u64,
    /// The experiment, checked, with every point filled in.
    pub experiment: Experiment,
    /// The description of each workload of the experiment, in the same order.
    pub descriptions: Vec<Description>,
    /// The directory in which the run was started, from which relative names of kernels count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Set where the figures were not measured by kduel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// Where imported figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The file that was read.
    pub source: String,
    /// The style it was in, which is also the style that a report takes unless another is asked for.
    pub style: String,
    /// Its lines on machine and kernels, as they stood.
    pub notes: Vec<String>,
    /// Which derived columns were recomputed and compared, and where they differ from what was printed.
    pub checks: Vec<String>,
}

/// A figure that somebody else measured. Its samples are not known, so nothing about it can be tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The label of the workload.
    pub workload: String,
    /// The row.
    pub point: Point,
    /// The column.
    pub variant: String,
    /// The metric.
    pub metric: String,
    /// The figure: in the metric's unit, or relative to the baseline where the source printed no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Standard deviation in the metric's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev: Option<f64>,
    /// Coefficient of variation in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv_pct: Option<f64>,
    /// Percent improvement as printed, where the source's raw values are not there to compute it from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub improvement_pct: Option<f64>,
}

/// One execution of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// The block, from 1.
    pub block: u32,
    /// The place in the block's random order, from 0.
    pub order: u32,
    /// The label of the workload.
    pub workload: String,
    /// The point.
    pub point: Point,
    /// The variant.
    pub variant: String,
    /// Whether this is the second run of the baseline, of which A/A is made.
    #[serde(default)]
    pub twin: bool,
    /// When the trial began, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How long it took with start, settle time and teardown, in nanoseconds.
    pub elapsed_ns: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// Lines that the kernel logged meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_log: Vec<String>,
}

/// One life of a kernel, for the trials of one side in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootRecord {
    /// The block, from 1; 0 for the boot before the first block, which only checks and reads facts.
    pub block: u32,
    /// The variant.
    pub variant: String,
    /// Whether it is the second boot of the baseline, of which A/A is made.
    #[serde(default)]
    pub twin: bool,
    /// When it was ordered, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Seconds from the start of the boot that succeeded to the first word of its agent; those that were waited for it where
    /// it was not alone.
    pub ready_s: f64,
    /// Whether other machines of its block booted at the same time: `ready_s` then says nothing of this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlapped: bool,
    /// How many boots were tried until one succeeded, from 1.
    pub attempts: u32,
    /// What readers of the report must know, one sentence each: that the machine is emulated, what became of the
    /// boots that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What machine and kernel came up; absent where it is the same as at the variant's boot before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Facts>>,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum Outcome {
    /// It measured.
    Done {
        /// Samples by metric, all finite.
        samples: BTreeMap<String, Vec<f64>>,
        /// Histograms by metric, in hdrhistogram's V2 form, base64.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        histograms: BTreeMap<String, String>,
        /// Further figures about the trial that are no metric: empty wake calls, hash buckets.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counters: BTreeMap<String, f64>,
        /// Whether the features that the variant turned on did run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evidence: Vec<Evidence>,
        /// What readers should know: the version of an original program, a placement that was not possible.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// It did not.
    Missing {
        /// The kind of failure.
        failure: Failure,
        /// The reason in one sentence.
        why: String,
    },
}

/// Whether a feature that a variant turned on did run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The feature, in the words of the knob.
    pub feature: String,
    /// Whether it ran.
    pub ran: bool,
    /// What was counted or seen.
    pub seen: String,
}

/// The kinds of failure of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The work did not add up.
    Invariant,
    /// The workload said that it cannot run, or an error stopped it.
    Refused,
    /// A thread or process could not be started.
    Spawn,
    /// A signal killed it.
    Signal,
    /// The out-of-memory killer did.
    OutOfMemory,
    /// It left with a status that is not 0, or without its result.
    Exit,
    /// It passed its deadline.
    Hang,
    /// A knob could not be turned, or did not stay turned.
    Knob,
    /// The machine changed under it: throttling by a quota, another clock source.
    Disturbed,
    /// The agent died.
    Agent,
    /// Its kernel could not be booted.
    Boot,
}

/// What a trial used, with all its descendants. Each field is absent where it could not be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<u64>,
    /// The largest resident set of any process of the trial, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
    /// Switches because a thread waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Switches because a thread was preempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Moves of the main thread between CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// Time for which a CPU quota stopped the trial, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// Time that the hypervisor took from all CPUs while the trial ran, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// How long the workload took, its preparation and warm-up included, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_ns: Option<u64>,
    /// The CPU time that the trial's processes used meanwhile, in nanoseconds; of those that it started, as far as it
    /// waited for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_cpu_ns: Option<u64>,
}

/// The identity of a trial inside its run: no two records may share it.
pub type TrialKey<'a> = (u32, &'a str, &'a str, &'a str, bool);

impl TrialRecord {
    /// The block, workload, point, variant and twin of the trial, which together name it.
    pub fn key(&self) -> TrialKey<'_> {
        (self.block, &self.workload, self.point.as_str(), &self.variant, self.twin)
    }
}
