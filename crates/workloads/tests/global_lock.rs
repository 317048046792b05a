//! `global-lock` through its public interface.

// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use experiment::{Outcome, ParamError, Point};
use std::collections::BTreeMap;
use workloads::{Failure, Trial, find};

type Samples = BTreeMap<String, Vec<f64>>;

/// Runs `global-lock` with these parameters.
fn outcome(point: &str, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let workload = find("global-lock").unwrap();
    let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let params = workload.describe().params(&set)?;
    let mut trial = Trial::new(Point::new(point), vec![0], 1);
    workload.run(&params, &mut trial)?;
    Ok(trial.into_outcome())
}

fn samples(point: &str, set: &[(&str, &str)]) -> Samples {
    match outcome(point, set).unwrap() {
        Outcome::Done { samples, .. } => samples,
        Outcome::Missing { why, .. } => panic!("{why}"),
    }
}

#[test]
fn every_lock_adds_up_in_every_layout_and_way_to_count() {
    for lock in locks::names() {
        for (layout, count, semantics, observe) in [
            ("same", "split", "original", "off"),
            ("split", "claim", "original", "owners"),
            ("same", "split", "strict", "waits"),
            ("split", "split", "original", "off"),
        ] {
            let set = [
                ("lock", lock),
                ("layout", layout),
                ("count", count),
                ("semantics", semantics),
                ("observe", observe),
                ("total", "201"),
            ];
            let samples = samples("2", &set);
            assert!(samples["time"][0] > 0.0 && samples["rate"][0] > 0.0, "{lock}");
        }
    }
}

#[test]
fn time_and_rate_are_one_fact_also_when_the_duration_is_fixed() {
    for set in [&[("total", "5000")][..], &[("total", "5000"), ("seconds", "0.02")]] {
        let samples = samples("1", set);
        let product = samples["time"][0] * samples["rate"][0];
        assert!((product - 5000.0).abs() < 1e-6, "{product}");
    }
}

#[test]
fn owners_and_waits_are_recorded_only_where_asked_for() {
    let unobserved = samples("1", &[("total", "1000")]);
    assert!(!unobserved.contains_key("longest-owner-run") && !unobserved.contains_key("wait-p99"));

    let owners = samples("1", &[("total", "1000"), ("observe", "owners")]);
    assert_eq!((owners["longest-owner-run"][0], owners["hand-off-rate"][0]), (1000.0, 0.0));

    // Two threads with a share each own the lock in at least two runs.
    let owners = samples("2", &[("total", "1000"), ("observe", "owners")]);
    assert!(owners["longest-owner-run"][0] <= 999.0 && owners["hand-off-rate"][0] >= 0.001);

    let Outcome::Done { histograms, .. } =
        outcome("2", &[("total", "1000"), ("observe", "waits"), ("count", "claim")]).unwrap()
    else {
        panic!("the trial is missing")
    };
    assert_eq!(stats::Histogram::from_text(&histograms["wait"]).unwrap().len(), 1000);
}

#[test]
fn warmup_is_not_measured() {
    let samples = samples("1", &[("total", "100"), ("warmup", "0.01"), ("observe", "owners")]);
    assert_eq!(samples["longest-owner-run"][0], 100.0);
}

#[test]
fn l5_with_and_without_the_slice_extension_the_work_adds_up_and_the_evidence_is_left() {
    let here = rseq_slice::Slice::enable().err();
    for lock in locks::own_names() {
        for (protocol, count, observe) in
            [("section", "split", "off"), ("try", "split", "off"), ("try", "claim", "owners")]
        {
            let set = [
                ("lock", lock),
                ("slice", "on"),
                ("slice-protocol", protocol),
                ("count", count),
                ("observe", observe),
                ("total", "1000"),
                ("warmup", "0.001"),
            ];
            let Outcome::Done { samples, counters, evidence, .. } = outcome("2", &set).unwrap() else {
                panic!("the trial is missing")
            };
            assert!(samples["rate"][0] > 0.0);
            let [evidence] = evidence.as_slice() else { panic!("{evidence:?}") };
            match &here {
                Some(absent) => {
                    assert_eq!((evidence.ran, &evidence.seen), (false, &absent.to_string()));
                    assert!(!counters.contains_key("slice requests"), "{counters:?}");
                }
                None => {
                    let requests = counters["slice requests"];
                    let exact = protocol == "section" && count == "split";
                    assert!(if exact { requests == 1000.0 } else { requests >= 1000.0 }, "{requests}");
                    let of = |name: &str| counters[&format!("slice {name}")];
                    assert!(of("grants") >= of("yields"));
                    assert!(evidence.ran >= (of("grants") > 0.0), "{evidence:?}");
                }
            }
        }
    }
    let Outcome::Done { samples, .. } =
        outcome("2", &[("lock", "std"), ("slice", "on"), ("total", "100")]).unwrap()
    else {
        panic!("the trial is missing")
    };
    assert!(samples["rate"][0] > 0.0);
}

#[test]
fn what_cannot_be_meant_is_a_clear_error() {
    let workload = find("global-lock").unwrap();
    for point in ["0", "-1", "many", "1.5", "99999999999"] {
        assert!(workload.describe().check_point(&Point::new(point)).is_err(), "{point}");
        assert!(matches!(outcome(point, &[]), Err(Failure::Refused(_))), "{point}");
    }
    let refused = |set: &[(&str, &str)]| outcome("4", set).unwrap_err().to_string();
    assert!(refused(&[("total", "3")]).contains("raise `total`"));
    assert!(refused(&[("lock", "tass")]).contains("`tas`"));
    assert!(refused(&[("slice", "5us")]).contains("from 5000 to 50000"));
    let foreign = [("slice", "on"), ("slice-protocol", "try"), ("lock", "std")];
    assert!(refused(&foreign).contains("one of tas, ttas,"));
    assert!(matches!(outcome("1", &[("seconds", "-1")]), Err(Failure::Param(ParamError::Value { .. }))));
}
