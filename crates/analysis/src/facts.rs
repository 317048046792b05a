//! What was read of the machine, and what differs although nobody asked for it.

use crate::Difference;
use experiment::{Experiment, Facts, Header, Knob, Record, Scope};
use std::collections::BTreeMap;

/// The facts of each variant, in the order of the variants, and sentences on those that changed while the run lasted.
pub(crate) fn of_variants(header: &Header, records: &[Record]) -> (Vec<(String, Facts)>, Vec<String>) {
    let mut latest: BTreeMap<&str, &Facts> = BTreeMap::new();
    let mut changes = Vec::new();
    for record in records {
        let (variant, facts) = match record {
            Record::Facts { variant, facts } => (variant, facts),
            Record::Boot(boot) => match &boot.facts {
                Some(facts) => (&boot.variant, facts),
                None => continue,
            },
            _ => continue,
        };
        if let Some(earlier) = latest.insert(variant, facts) {
            for change in differences(earlier, facts) {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
    }
    let facts = header.experiment.variants.iter().filter_map(|variant| {
        let facts = latest.get(variant.name.as_str())?;
        Some((variant.name.clone(), (*facts).clone()))
    });
    (facts.collect(), changes)
}

/// What changed between two readings of the same variant, a sentence each.
fn differences(earlier: &Facts, later: &Facts) -> Vec<String> {
    let (earlier, later) = (rows(earlier), rows(later));
    let word = |value: Option<&String>| value.map_or("unknown".into(), |value| format!("`{value}`"));
    names([&earlier, &later])
        .into_iter()
        .filter(|name| earlier.get(*name) != later.get(*name))
        .map(|name| {
            let (before, after) = (word(earlier.get(name)), word(later.get(name)));
            format!("{name} changed while the run lasted, from {before} to {after}: its blocks are not of one machine")
        })
        .collect()
}

/// The facts that differ between variants and that no knob of any variant explains.
pub(crate) fn unasked(experiment: &Experiment, facts: &[(String, Facts)]) -> Vec<Difference> {
    // A variant whose facts were not read differs in nothing that is known.
    let by_variant: Vec<Option<BTreeMap<String, String>>> = experiment
        .variants
        .iter()
        .map(|variant| facts.iter().find(|(name, _)| *name == variant.name).map(|(_, facts)| rows(facts)))
        .collect();
    let knobs: Vec<&Knob> = experiment.variants.iter().flat_map(|variant| &variant.knobs).collect();
    names(by_variant.iter().flatten())
        .into_iter()
        .filter(|fact| !knobs.iter().any(|knob| explains(&knob.scope, fact)))
        .filter_map(|fact| {
            let mut known = by_variant.iter().flatten().map(|rows| rows.get(fact));
            let first = known.next()?;
            let values = || by_variant.iter().map(|rows| rows.as_ref()?.get(fact).cloned()).collect();
            known.any(|value| value != first).then(|| Difference { fact: fact.into(), values: values() })
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
        Scope::Kernel => matches!(fact, "kernel" | "kernel version"),
        Scope::Append | Scope::Proxy => fact == "command line",
        Scope::Vm(name) => match fact {
            "CPUs online" | "CPUs allowed" => matches!(name.as_str(), "cpus" | "topology"),
            "sockets" | "SMT" => name == "topology",
            "memory" => name == "memory",
            "NUMA nodes" => name == "numa",
            _ => false,
        },
        Scope::Parameter(_) | Scope::Env(_) | Scope::Policy | Scope::Nice | Scope::Rseq => false,
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
