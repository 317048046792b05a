//! What an analysis costs: `cargo run --release -p kduel-analysis --example analysis_cost`. A run of 125 points, two
//! variants and 40 blocks, with 100 samples in each of its 10,000 trials, is analysed five times, and then judged block
//! by block as a run that goes on until it is decided would be.

use analysis::{Live, analyse};
use experiment::{
    Axis, Blocks, Description, Direction, Entry, Experiment, Header, Metric, Outcome, Point, Record,
    TrialRecord, Usage, Variant,
};
use journal::Run;
use std::collections::BTreeMap;
use std::time::Instant;

const POINTS: u32 = 125;
const BLOCKS: u32 = 40;
const SAMPLES: u32 = 100;

fn main() {
    let mut run = Run { header: header(), records: Vec::new(), notices: Vec::new() };
    for block in 1..=BLOCKS {
        for point in 1..=POINTS {
            for variant in ["base", "other"] {
                run.records.push(Record::Trial(Box::new(trial(block, point, variant))));
            }
        }
    }
    println!("{} trials with {SAMPLES} samples", run.records.len());
    for _ in 0..5 {
        let began = Instant::now();
        let analysis = analyse(&run);
        println!("analysed {} rows in {:.1} ms", analysis.tables[0].rows.len(), ms(began));
    }

    let mut live = Live::new(&run.header);
    let (mut adding, mut deciding, mut longest) = (0.0, 0.0, 0.0_f64);
    for record in &run.records {
        let Record::Trial(trial) = record else { continue };
        let began = Instant::now();
        live.add(trial);
        adding += ms(began);
        if trial.variant == "other" {
            let began = Instant::now();
            live.decision(&trial.workload, &trial.point);
            deciding += ms(began);
            longest = longest.max(ms(began));
        }
    }
    let (trials, asked) = (f64::from(BLOCKS * POINTS * 2), f64::from(BLOCKS * POINTS));
    println!(
        "a trial is added in {:.4} ms; the question is answered in {:.3} ms, at most {longest:.1} ms",
        adding / trials,
        deciding / asked
    );
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn header() -> Header {
    let variants = ["base", "other"].map(|name| Variant { name: name.into(), knobs: Vec::new() });
    let points: Vec<Point> = (1..=u64::from(POINTS)).map(Point::from).collect();
    let mut experiment =
        Experiment::new(vec![Entry { points: points.clone(), ..Entry::of("work") }], variants.into());
    experiment.blocks = Blocks::UntilDecided;
    experiment.aa = false;
    let axis = Axis {
        name: "threads".into(),
        heading: "Threads".into(),
        suffix: String::new(),
        points,
        range: None,
    };
    let description = Description {
        name: "work".into(),
        summary: String::new(),
        about: String::new(),
        source: String::new(),
        axis,
        parameters: Vec::new(),
        metrics: vec![Metric::new("time", "s", Direction::Lower, "time in seconds", "time")],
        requirements: Vec::new(),
    };
    Header {
        run: "cost".into(),
        version: String::new(),
        build: String::new(),
        at_unix_ms: 0,
        seed: 1,
        experiment,
        descriptions: vec![description],
        directory: None,
        imported: None,
    }
}

/// Samples spread by 20 % that never repeat, the same in every run of this program.
fn trial(block: u32, point: u32, variant: &str) -> TrialRecord {
    let seed = f64::from(block) * 0.618 + f64::from(point) * 0.755 + variant.len() as f64 * 0.569;
    let sample = |number: u32| 1.0 + 0.2 * (seed + f64::from(number) * 0.7549).fract();
    TrialRecord {
        block,
        order: 0,
        workload: "work".into(),
        point: Point::from(u64::from(point)),
        variant: variant.into(),
        twin: false,
        at_unix_ms: 0,
        elapsed_ns: 1_000_000_000,
        outcome: Outcome::Done {
            samples: BTreeMap::from([("time".to_string(), (0..SAMPLES).map(sample).collect())]),
            histograms: BTreeMap::new(),
            counters: BTreeMap::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
        },
        usage: Usage::default(),
        kernel_log: Vec::new(),
    }
}
