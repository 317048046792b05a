//! What was read of the machine, and what differs although nobody asked for it.

use crate::Difference;
use experiment::{Experiment, Facts, Header, Knob, Record, Scope};
use std::collections::BTreeMap;

/// The facts of each variant, in the order of the variants, and sentences on those that changed while the run lasted.
pub(crate) fn of_variants(header: &Header, records: &[Record]) -> (Vec<(String, Facts)>, Vec<String>) {
    let mut latest: BTreeMap<&str, &Facts> = BTreeMap::new();
    let mut changes = Vec::new();
    for record in records {
        let Record::Facts { variant, facts } = record else { continue };
        if let Some(earlier) = latest.insert(variant, facts) {
            let (earlier, later) = (rows(earlier), rows(facts));
            for name in names([&earlier, &later]) {
                let (before, after) = (earlier.get(name), later.get(name));
                if before != after {
                    let word =
                        |value: Option<&String>| value.map_or("unknown".into(), |value| format!("`{value}`"));
                    changes.push(format!(
                        "{name} changed while the run lasted: from {} to {}; its blocks are not of one machine",
                        word(before),
                        word(after)
                    ));
                }
            }
        }
    }
    let facts = header.experiment.variants.iter().filter_map(|variant| {
        let facts = latest.get(variant.name.as_str())?;
        Some((variant.name.clone(), (*facts).clone()))
    });
    changes.dedup();
    (facts.collect(), changes)
}

/// The facts that differ between variants and that no knob of any variant explains.
pub(crate) fn unasked(experiment: &Experiment, facts: &[(String, Facts)]) -> Vec<Difference> {
    let by_variant: Vec<BTreeMap<String, String>> = facts.iter().map(|(_, facts)| rows(facts)).collect();
    let knobs: Vec<&Knob> = experiment.variants.iter().flat_map(|variant| &variant.knobs).collect();
    names(&by_variant)
        .into_iter()
        .filter(|fact| !knobs.iter().any(|knob| explains(&knob.scope, fact)))
        .filter_map(|fact| {
            let values: Vec<Option<String>> = by_variant.iter().map(|rows| rows.get(fact).cloned()).collect();
            let differ = values.iter().any(|value| *value != values[0]);
            differ.then(|| Difference { fact: fact.into(), values })
        })
        .collect()
}

/// Whether turning a knob changes a fact.
fn explains(scope: &Scope, fact: &str) -> bool {
    let shown_by = |prefix: &str, name: &str| fact.strip_prefix(prefix).is_some_and(|fact| fact == name);
    match scope {
        Scope::Sysctl(name) => shown_by("sysctl ", name),
        Scope::Debugfs(path) => {
            shown_by("sched ", path.strip_prefix("sched/").unwrap_or(path)) || shown_by("sched ", path)
        }
        Scope::Cpus => fact == "CPUs allowed",
        Scope::Sysfs(path) => {
            let part = |text: &str| path.contains(text);
            match fact {
                "transparent hugepages" => part("transparent_hugepage"),
                "governor" => part("scaling_governor"),
                "turbo" => part("no_turbo") || part("cpufreq/boost"),
                "clocksource" => part("current_clocksource"),
                "SMT" => part("smt/control"),
                "CPUs online" | "CPUs allowed" => part("smt/control") || path.ends_with("/online"),
                _ => false,
            }
        }
        Scope::Parameter(_) | Scope::Env(_) | Scope::Policy | Scope::Nice => false,
    }
}

fn rows(facts: &Facts) -> BTreeMap<String, String> {
    facts.rows().into_iter().collect()
}

/// The names of all facts, each once.
fn names<'a>(all: impl IntoIterator<Item = &'a BTreeMap<String, String>>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in all.into_iter().flat_map(|rows| rows.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}
