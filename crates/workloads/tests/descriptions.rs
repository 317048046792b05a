//! What all descriptions have in common: the form of their names, and what is said of originals.

#![allow(clippy::unwrap_used)]

use experiment::{Description, Kind};
use std::collections::BTreeMap;

/// Every workload as it is by itself, and as it is with each word of each of its choices.
fn all() -> Vec<Description> {
    let mut all = Vec::new();
    for workload in workloads::all() {
        let description = workload.describe();
        for parameter in &description.parameters {
            let Kind::Choice(words) = &parameter.kind else { continue };
            let set = |word: &String| BTreeMap::from([(parameter.name.clone(), word.clone())]);
            all.extend(words.iter().map(|word| workload.describe_for(&set(word))));
        }
        all.push(description);
    }
    all
}

#[test]
fn names_have_hyphens_and_no_underscores() {
    let is_one_word = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter))
    };
    for description in all() {
        let parameters = description.parameters.iter().map(|parameter| &parameter.name);
        for name in parameters.chain(description.metrics.iter().map(|metric| &metric.name)) {
            assert!(is_one_word(name), "{}: `{name}`", description.name);
        }
        // The tests of will-it-scale keep the names that they have there.
        let name = description.name.replace('_', "-");
        assert!(is_one_word(&name) && (name == description.name || name.starts_with("scale-")), "{name}");
    }
}

#[test]
fn what_has_no_original_says_nothing_of_one() {
    for description in all().iter().filter(|description| description.is_own()) {
        let words = |name: &str| match &description.parameter(name).unwrap().kind {
            Kind::Choice(words) => words.clone(),
            kind => panic!("{name} is a choice and no {kind:?}"),
        };
        assert_eq!(words("via"), ["kduel"], "{}", description.name);
        let help = &description.parameter("semantics").unwrap().help;
        assert!(!help.contains("original benchmark"), "{}: {help}", description.name);
    }
}

#[test]
fn blocks_are_named_by_what_decides_what_is_measured() {
    let test = |workload: &str, set: &[(&str, &str)]| {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let metrics = workloads::find(workload).unwrap().describe_for(&set).metrics;
        metrics[0].test.clone().unwrap_or_default()
    };
    assert_eq!(test("jobmix", &[]), "jobmix-shared-memory");
    assert_eq!(test("jobmix", &[("mix", "short")]), "jobmix-short");
    assert_eq!(test("jobmix", &[("mix", "short"), ("sub-test", "sort_rtns_1")]), "jobmix-sort_rtns_1");
    assert_eq!(test("inversion", &[]), "inversion-position-nice");
    assert_eq!(test("inversion", &[("over", "pipe"), ("priorities", "fifo")]), "inversion-pipe-fifo");
    assert_eq!(test("netperf", &[("test", "udp_rr")]), "netperf-udp_rr");
}
