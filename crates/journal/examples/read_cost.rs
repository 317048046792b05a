//! What reading a large journal costs: `cargo run --release -p kduel-journal --example read_cost [TRIALS SAMPLES]`.
//! Writes a run of 10,000 trials with 100 samples each into a temporary directory and reads it five times.

use experiment::{Entry, Experiment, Header, Outcome, Point, Record, TrialRecord, Usage, Variant};
use journal::Home;
use std::collections::BTreeMap;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>());
    let trials = arguments.next().unwrap_or(Ok(10_000))?;
    let samples = arguments.next().unwrap_or(Ok(100))?;
    let directory = tempfile::tempdir()?;
    let home = Home::at(directory.path());

    let began = Instant::now();
    let mut journal = home.create("cost", &header())?;
    for number in 0..trials {
        journal.append(&trial(number, samples))?;
    }
    journal.sync()?;
    let bytes = std::fs::metadata(journal.directory().join(journal::JOURNAL_FILE))?.len();
    println!("{trials} trials with {samples} samples, {bytes} bytes: written in {:.0} ms", ms(began));
    drop(journal);

    for _ in 0..5 {
        let began = Instant::now();
        let run = home.read("cost")?;
        println!("read {} records in {:.0} ms", run.records.len(), ms(began));
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        println!("{line}");
    }
    Ok(())
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn header() -> Header {
    let variants = ["base", "other"].map(|name| Variant { name: name.into(), knobs: Vec::new() });
    Header {
        run: "cost".into(),
        version: "0".into(),
        build: "none".into(),
        at_unix_ms: 0,
        seed: 1,
        experiment: Experiment::new(vec![Entry::of("synthetic")], variants.into()),
        descriptions: Vec::new(),
        directory: None,
        imported: None,
    }
}

/// Samples with all the digits that a measured time divided by something has.
fn trial(number: u32, samples: u32) -> Record {
    let value = |sample: u32| 1.0 / f64::from(1 + number * samples + sample) + 0.01;
    Record::Trial(Box::new(TrialRecord {
        block: number / 2 + 1,
        order: number % 2,
        workload: "synthetic".into(),
        point: Point::from(8),
        variant: if number.is_multiple_of(2) { "base" } else { "other" }.into(),
        twin: false,
        at_unix_ms: 1_700_000_000_000 + u64::from(number),
        elapsed_ns: 1_000_000_000,
        outcome: Outcome::Done {
            samples: BTreeMap::from([("time".to_string(), (0..samples).map(value).collect())]),
            histograms: BTreeMap::new(),
            counters: BTreeMap::new(),
            evidence: Vec::new(),
            notes: Vec::new(),
        },
        usage: Usage { user_ns: Some(1_000_000), ..Usage::default() },
        kernel_log: Vec::new(),
    }))
}
