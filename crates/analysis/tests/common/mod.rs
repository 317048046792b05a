//! Runs out of thin air: a header, and trials with planted values.

#![allow(dead_code)]

use analysis::{Analysis, Cell, Row, analyse};
use experiment::{
    Axis, Blocks, Description, Direction, Entry, Evidence, Experiment, Failure, Header, Metric, Outcome,
    Parameter, Point, Record, TrialRecord, Usage, Variant,
};
use journal::Run;
use std::collections::BTreeMap;

/// A workload `work` with the metrics `time` (lower, judged) and `rate` (higher, shown).
pub fn description() -> Description {
    Description {
        name: "work".into(),
        summary: "works".into(),
        about: String::new(),
        source: String::new(),
        axis: Axis {
            name: "threads".into(),
            heading: "Threads".into(),
            suffix: String::new(),
            points: vec![Point::from(1)],
            range: None,
        },
        parameters: vec![Parameter::choice("lock", &["std", "mcs"], "the lock")],
        metrics: vec![
            Metric::new("time", "s", Direction::Lower, "time in seconds", "time"),
            Metric::new("rate", "ops/s", Direction::Higher, "rate", "rate").secondary(),
        ],
        requirements: Vec::new(),
    }
}

/// A run in the making.
#[derive(Clone)]
pub struct Lab {
    pub run: Run,
}

impl Lab {
    /// Points `1..=points`; the first of `variants` is the baseline; variants are `NAME[:KEY=VALUE]`.
    pub fn new(points: u64, variants: &[&str], blocks: Blocks) -> Lab {
        let mut entry = Entry::of("work");
        entry.points = (1..=points).map(Point::from).collect();
        let variants = variants.iter().map(|text| Variant::parse(text).unwrap()).collect();
        let mut experiment = Experiment::new(vec![entry], variants);
        experiment.blocks = blocks;
        experiment.aa = false;
        let header = Header {
            run: "synthetic".into(),
            version: "0".into(),
            build: "test".into(),
            at_unix_ms: 0,
            seed: 42,
            experiment,
            descriptions: vec![description()],
            directory: None,
            imported: None,
        };
        Lab { run: Run { header, records: Vec::new(), notices: Vec::new() } }
    }

    /// One point, `base` against `new`, with these values of `time` by block.
    pub fn duel(base: &[f64], new: &[f64]) -> Lab {
        let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(base.len().max(new.len()) as u32));
        lab.series(1, "base", base);
        lab.series(1, "new", new);
        lab
    }

    pub fn metric(&mut self, place: usize) -> &mut Metric {
        &mut self.run.header.descriptions[0].metrics[place]
    }

    /// One trial with one sample of `time` per block.
    pub fn series(&mut self, point: u64, variant: &str, values: &[f64]) {
        for (block, value) in (1..).zip(values) {
            self.push(trial(block, point, variant, done(&[("time", &[*value])])));
        }
    }

    pub fn push(&mut self, trial: TrialRecord) {
        self.run.records.push(Record::Trial(Box::new(trial)));
    }

    pub fn analyse(&self) -> Analysis {
        analyse(&self.run)
    }

    /// The cell of `time` of the last variant at the first point.
    pub fn last_cell(&self) -> Cell {
        self.row().cells.last().unwrap().clone()
    }

    /// The row of `time` of the first point.
    pub fn row(&self) -> Row {
        self.analyse().tables[0].rows[0].clone()
    }
}

pub fn trial(block: u32, point: u64, variant: &str, outcome: Outcome) -> TrialRecord {
    TrialRecord {
        block,
        order: 0,
        workload: "work".into(),
        point: Point::from(point),
        variant: variant.into(),
        twin: false,
        at_unix_ms: 0,
        elapsed_ns: 30_000_000_000,
        outcome,
        usage: Usage::default(),
        kernel_log: Vec::new(),
    }
}

pub fn twin(mut trial: TrialRecord) -> TrialRecord {
    trial.twin = true;
    trial
}

pub fn done(samples: &[(&str, &[f64])]) -> Outcome {
    Outcome::Done {
        samples: samples.iter().map(|(name, values)| (name.to_string(), values.to_vec())).collect(),
        histograms: BTreeMap::new(),
        counters: BTreeMap::new(),
        evidence: Vec::new(),
        notes: Vec::new(),
    }
}

/// A trial that measured `value` and counted whether `slice` ran.
pub fn with_evidence(value: f64, ran: bool) -> Outcome {
    let mut outcome = done(&[("time", &[value])]);
    if let Outcome::Done { evidence, .. } = &mut outcome {
        evidence.push(Evidence { feature: "slice=on".into(), ran, seen: "0 grants".into() });
    }
    outcome
}

pub fn lost(failure: Failure, why: &str) -> Outcome {
    Outcome::Missing { failure, why: why.into() }
}

/// Normal noise from a fixed seed (SplitMix64, Box and Muller).
pub struct Noise(pub u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `blocks` times of about a second, each `factor` longer, with 1 % of noise.
    pub fn times(&mut self, blocks: usize, factor: f64) -> Vec<f64> {
        (0..blocks).map(|_| factor * (0.01 * self.normal()).exp()).collect()
    }
}
