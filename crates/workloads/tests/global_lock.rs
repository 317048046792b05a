//! `global-lock` through its public interface.

use experiment::{Outcome, Point};
use std::collections::BTreeMap;
use workloads::{Failure, Trial, find};

/// Runs `global-lock` with these parameters and returns its samples.
fn run(threads: u64, set: &[(&str, &str)]) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
    let workload = find("global-lock").unwrap();
    let set: BTreeMap<String, String> =
        set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let params = workload.describe().params(&set).unwrap();
    let mut trial = Trial::new(Point::from(threads), vec![0, 1], 1);
    workload.run(&params, &mut trial)?;
    match trial.into_outcome() {
        Outcome::Done { samples, .. } => Ok(samples),
        Outcome::Missing { why, .. } => panic!("{why}"),
    }
}

#[test]
fn every_lock_layout_and_way_to_count_adds_up() {
    for lock in locks::names() {
        for (layout, count, semantics) in
            [("same", "split", "original"), ("split", "claim", "original"), ("same", "split", "strict")]
        {
            let set = [
                ("lock", lock),
                ("layout", layout),
                ("count", count),
                ("semantics", semantics),
                ("total", "201"),
            ];
            let samples = run(2, &set).unwrap();
            assert_eq!(samples["time"].len(), 1, "{lock}");
        }
    }
}
