//! The values of a run by cell: what every trial came to, and nothing more, so that a long run stays small.

use crate::BlockValue;
use crate::counts::Counts;
use crate::describe::statistic;
use experiment::{BootRecord, Description, Evidence, Header, Known, Missing, Outcome, Point, TrialRecord};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Everything that was measured, by point and side.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    pub points: Vec<PointCells>,
    variants: Vec<String>,
    places: HashMap<(String, Point), usize>,
}

/// One point of one workload.
#[derive(Debug, Clone)]
pub(crate) struct PointCells {
    /// The place of its workload in the experiment.
    pub workload: usize,
    pub point: Point,
    /// By variant, the baseline first.
    pub sides: Vec<Side>,
    /// The second run of the baseline.
    pub twin: Side,
    /// The time that the trials of each block took, in nanoseconds.
    elapsed_ns: BTreeMap<u32, u64>,
    /// The time that the boots of each block took, in seconds; they serve all points together, but one by itself would
    /// take as long.
    boots_s: BTreeMap<u32, f64>,
}

/// One variant, or the twin, at one point.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// Whether blocks hold a trial of it: a variant that changes nothing for the workload is not run.
    runs: bool,
    /// By metric, in the order of the description; each in the order of the blocks.
    pub values: Vec<Vec<BlockValue>>,
    /// By metric: the least and the greatest sample of any trial.
    ranges: Vec<Option<(f64, f64)>>,
    /// The blocks whose trial has ended, good or bad.
    blocks: BTreeSet<u32>,
    /// Why trials yielded nothing.
    missing: Counts,
    /// By metric: why trials that yielded something did not yield this.
    undefined: Vec<Counts>,
    /// By feature: whether it ever ran, and what was seen last.
    evidence: BTreeMap<String, (bool, String)>,
}

impl Cells {
    pub fn new(header: &Header) -> Cells {
        let experiment = &header.experiment;
        let mut points = Vec::new();
        let mut places = HashMap::new();
        for (workload, (entry, description)) in
            experiment.workloads.iter().zip(&header.descriptions).enumerate()
        {
            for point in &entry.points {
                let sides = experiment.variants.iter().enumerate().map(|(place, variant)| {
                    Side::new(description, place == 0 || experiment.applies(variant, description).is_ok())
                });
                places.insert((entry.label.clone(), point.clone()), points.len());
                points.push(PointCells {
                    workload,
                    point: point.clone(),
                    sides: sides.collect(),
                    twin: Side::new(description, experiment.aa),
                    elapsed_ns: BTreeMap::new(),
                    boots_s: BTreeMap::new(),
                });
            }
        }
        let variants = experiment.variants.iter().map(|variant| variant.name.clone()).collect();
        Cells { points, variants, places }
    }

    pub fn place(&self, label: &str, point: &Point) -> Option<usize> {
        self.places.get(&(label.to_string(), point.clone())).copied()
    }

    /// Adds what a trial came to. False when it belongs to no cell of the experiment, or its block has one already.
    pub fn add(&mut self, trial: &TrialRecord, descriptions: &[Description]) -> Option<usize> {
        let place = self.place(&trial.workload, &trial.point)?;
        let variant = self.variants.iter().position(|name| *name == trial.variant)?;
        let point = self.points.get_mut(place)?;
        let description = descriptions.get(point.workload)?;
        let side = if trial.twin { &mut point.twin } else { point.sides.get_mut(variant)? };
        if !side.blocks.insert(trial.block) {
            return None;
        }
        *point.elapsed_ns.entry(trial.block).or_default() += trial.elapsed_ns;
        side.add(trial, description);
        Some(place)
    }

    /// Adds the time of a boot.
    pub fn add_boot(&mut self, boot: &BootRecord) {
        for point in &mut self.points {
            *point.boots_s.entry(boot.block).or_default() += boot.ready_s;
        }
    }
}

impl PointCells {
    /// The baseline.
    pub fn base(&self) -> Option<&Side> {
        self.sides.first()
    }

    /// The largest block of which any trial has ended.
    pub fn last_block(&self) -> u32 {
        self.elapsed_ns.last_key_value().map_or(0, |(block, _)| *block)
    }

    /// The number of blocks in which every side has ended.
    pub fn complete_blocks(&self) -> u32 {
        let sides = || self.sides.iter().chain([&self.twin]).filter(|side| side.runs);
        let is_complete = |block: &&u32| sides().all(|side| side.blocks.contains(*block));
        self.elapsed_ns.keys().filter(is_complete).count() as u32
    }

    /// The mean time of a block with its boots, in seconds.
    pub fn seconds_per_block(&self) -> Option<f64> {
        let trials_s = self.elapsed_ns.values().sum::<u64>() as f64 / 1e9;
        let boots_s: f64 = self.elapsed_ns.keys().filter_map(|block| self.boots_s.get(block)).sum();
        (!self.elapsed_ns.is_empty()).then(|| (trials_s + boots_s) / self.elapsed_ns.len() as f64)
    }
}

impl Side {
    fn new(description: &Description, runs: bool) -> Side {
        let metrics = description.metrics.len();
        Side {
            runs,
            values: vec![Vec::new(); metrics],
            ranges: vec![None; metrics],
            blocks: BTreeSet::new(),
            missing: Counts::default(),
            undefined: vec![Counts::default(); metrics],
            evidence: BTreeMap::new(),
        }
    }

    fn add(&mut self, trial: &TrialRecord, description: &Description) {
        let samples = match yielded(trial) {
            Ok(samples) => samples,
            Err(missing) => {
                self.missing.add(&missing.why);
                return;
            }
        };
        for (place, metric) in description.metrics.iter().enumerate() {
            let value = match samples.get(&metric.name) {
                Some(samples) if !samples.is_empty() => statistic(metric, samples),
                _ => Err(Missing::because(format!("the trial yielded no {}", metric.name))),
            };
            match value {
                Ok(value) => {
                    let values = &mut self.values[place];
                    let at = values.partition_point(|earlier| earlier.block < trial.block);
                    values.insert(at, BlockValue { block: trial.block, value });
                    for sample in samples.get(&metric.name).into_iter().flatten() {
                        let (least, greatest) = self.ranges[place].unwrap_or((*sample, *sample));
                        self.ranges[place] = Some((least.min(*sample), greatest.max(*sample)));
                    }
                }
                Err(missing) => self.undefined[place].add(&missing.why),
            }
        }
        for Evidence { feature, ran, seen } in evidence(trial) {
            let entry = self.evidence.entry(feature.clone()).or_default();
            *entry = (entry.0 || *ran, seen.clone());
        }
    }

    /// Whether its trials up to this block have all ended.
    pub fn has_ended(&self, block: u32) -> bool {
        self.blocks.last().is_some_and(|last| *last >= block)
    }

    /// The least and the greatest sample of a metric.
    pub fn range(&self, metric: usize) -> Option<(f64, f64)> {
        self.ranges.get(metric).copied().flatten()
    }

    /// Why it has no value of a metric.
    pub fn why_missing(&self, metric: usize) -> Missing {
        let undefined = self.undefined.get(metric).and_then(|counts| counts.in_words("trial"));
        let why = self.missing.in_words("trial").or(undefined);
        Missing::because(why.unwrap_or_else(|| "no trial has ended".into()))
    }

    /// The first feature that was turned on and never ran, with what was seen of it.
    pub fn not_exercised(&self) -> Option<String> {
        self.evidence
            .iter()
            .find(|(_, (ran, _))| !ran)
            .map(|(feature, (_, seen))| format!("{feature} never ran: {seen}"))
    }
}

/// The samples of a trial, unless it does not count.
///
/// # Errors
/// The reason why it does not.
pub(crate) fn yielded(trial: &TrialRecord) -> Known<&BTreeMap<String, Vec<f64>>> {
    match &trial.outcome {
        Outcome::Missing { why, .. } => Err(Missing::because(why.clone())),
        Outcome::Done { .. } if trial.usage.throttled_ns.is_some_and(|throttled| throttled > 0) => {
            Err(Missing::because("a CPU quota throttled it"))
        }
        Outcome::Done { samples, .. } => Ok(samples),
    }
}

fn evidence(trial: &TrialRecord) -> &[Evidence] {
    match &trial.outcome {
        Outcome::Done { evidence, .. } => evidence,
        Outcome::Missing { .. } => &[],
    }
}
