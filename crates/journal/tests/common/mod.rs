use experiment::{
    Axis, Description, Direction, Entry, Experiment, Header, Metric, Outcome, Point, Record, TrialRecord,
    Usage, Variant,
};
use std::collections::BTreeMap;

pub fn header(run: &str) -> Header {
    let variants = ["base", "other"].map(|name| Variant { name: name.into(), knobs: Vec::new() });
    Header {
        run: run.into(),
        version: "0.1.0".into(),
        build: "test".into(),
        at_unix_ms: 1_700_000_000_000,
        seed: u64::MAX,
        experiment: Experiment::new(vec![Entry::of("work")], variants.into()),
        descriptions: vec![Description {
            name: "work".into(),
            summary: "works".into(),
            about: String::new(),
            source: String::new(),
            axis: Axis {
                name: "threads".into(),
                heading: "Threads".into(),
                suffix: String::new(),
                points: vec![Point::from(1)],
                range: Some((1, 8)),
            },
            parameters: Vec::new(),
            metrics: vec![Metric::new("time", "s", Direction::Lower, "time in seconds", "time")],
            requirements: Vec::new(),
        }],
        directory: None,
        imported: None,
    }
}

pub fn trial(block: u32, variant: &str, samples: &[f64]) -> Record {
    Record::Trial(Box::new(TrialRecord {
        block,
        order: 0,
        workload: "work".into(),
        point: Point::from(1),
        variant: variant.into(),
        twin: false,
        at_unix_ms: 1_700_000_000_000,
        elapsed_ns: 1_000_000,
        outcome: Outcome::Done {
            samples: BTreeMap::from([("time".to_string(), samples.to_vec())]),
            histograms: BTreeMap::new(),
            counters: BTreeMap::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
        },
        usage: Usage::default(),
        kernel_log: Vec::new(),
    }))
}
