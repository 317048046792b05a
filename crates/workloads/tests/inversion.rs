//! What is said and measured of a lock with priority inheritance.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use experiment::{Direction, Outcome, Point};
use std::collections::BTreeMap;
use workloads::{Trial, find};

#[test]
fn l6_a_lock_with_priority_inheritance_is_judged_by_the_wait_of_its_important_waiter() {
    let pairs = [("over", "futex-pi"), ("seconds", "0.05"), ("interval-us", "1000"), ("hold-us", "20")];
    let set: BTreeMap<String, String> =
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let workload = find("inversion").unwrap();
    let description = workload.describe_for(&set);
    let judged: Vec<_> = description.metrics.iter().filter(|metric| metric.primary).collect();
    let names: Vec<&str> = judged.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["wait-p99", "wait-max"], "latencies of the waiter, and no throughput");
    assert!(judged.iter().all(|metric| metric.direction == Direction::Lower));
    assert!(judged[0].help.contains("of the waiter"), "{}", judged[0].help);

    let params = description.params(&set).unwrap();
    let mut trial = Trial::new(Point::from(1), machine::cpus::allowed().unwrap().to_vec(), 1);
    workload.run(&params, &mut trial).unwrap();
    let Outcome::Done { samples, histograms, .. } = trial.into_outcome() else { panic!() };
    assert!(samples["wait-max"][0] >= samples["wait-p99"][0] && samples["wait-p99"][0] > 0.0, "{samples:?}");
    assert!(!histograms["wait"].is_empty(), "each wait of the waiter is kept");
}

#[test]
fn l6_it_is_documented_as_none_for_throughput() {
    let summary = locks::all().into_iter().find(|(name, _)| *name == "pthread-pi").unwrap().1;
    assert!(summary.contains("inherits"), "{summary}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/locks.md")).unwrap();
    let passage =
        page.split("\n\n").find(|passage| passage.starts_with("`pthread-pi` is not there to be fast"));
    let passage = passage.expect("docs/locks.md tells what it is for");
    assert!(passage.contains("inversion.md") && passage.contains("not in the throughput"), "{passage}");
}
