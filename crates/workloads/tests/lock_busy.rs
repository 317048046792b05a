//! `lock-busy` through its public interface.

// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used)]

use experiment::{Outcome, Point};
use workloads::{Failure, Trial, find};

fn outcome(point: &str, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let workload = find("lock-busy").unwrap();
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let params = workload.describe().params(&set)?;
    let mut trial = Trial::new(Point::new(point), machine::cpus::allowed().unwrap().to_vec(), 1);
    workload.run(&params, &mut trial)?;
    Ok(trial.into_outcome())
}

#[test]
fn times_and_counts_belong_together() {
    for semantics in ["original", "strict"] {
        let set = [("seconds", "0.1"), ("warmup", "0.01"), ("semantics", semantics), ("hold-fences", "500")];
        let Outcome::Done { samples, histograms, counters, .. } = outcome("2", &set).unwrap() else {
            panic!("the trial is missing")
        };
        assert!(samples["rate"][0] > 0.0);
        assert!(samples["wait-mean"][0] <= samples["wait-max"][0]);
        assert!(samples["hold-mean"][0] <= samples["hold-max"][0]);
        assert!((0.0..=1.0).contains(&samples["contention"][0]));
        for metric in ["wait", "hold"] {
            let histogram = stats::Histogram::from_text(&histograms[metric]).unwrap();
            assert_eq!(histogram.len() as f64, counters["sections"]);
        }
    }
}

#[test]
fn every_lock_runs_among_busy_threads() {
    for lock in locks::names() {
        outcome("1", &[("lock", lock), ("seconds", "0.02"), ("hold-fences", "100")]).unwrap();
    }
}

#[test]
fn without_busy_threads_it_runs_as_well() {
    outcome("0", &[("seconds", "0.02")]).unwrap();
}

#[test]
fn what_cannot_be_meant_is_a_clear_error() {
    let workload = find("lock-busy").unwrap();
    for point in ["-1", "few", "10001"] {
        assert!(workload.describe().check_point(&Point::new(point)).is_err(), "{point}");
        assert!(matches!(outcome(point, &[]), Err(Failure::Refused(_))), "{point}");
    }
    assert!(matches!(outcome("1", &[("seconds", "0")]), Err(Failure::Param(_))));
    assert!(matches!(outcome("1", &[("hold-fences", "-1")]), Err(Failure::Param(_))));
}
