//! What a clock that counts instructions makes of a run.

use crate::cells::yielded;
use crate::looks::Rules;
use crate::{Path, Table, VirtualTime};
use experiment::{Header, Known, Missing, Record, TrialRecord, VIRTUAL_NS_PER_INSTRUCTION};
use std::collections::BTreeMap;

/// The trials of a cell, those of the baseline's twin with it.
type Cell<'a> = (&'a str, &'a str, &'a str);

/// None where the clock is the host's.
pub(crate) fn of(header: &Header, records: &[Record], tables: &[Table]) -> Option<VirtualTime> {
    if header.imported.is_some() || !Rules::of(header).virtual_time {
        return None;
    }
    let mut cells: BTreeMap<Cell<'_>, Vec<&TrialRecord>> = BTreeMap::new();
    for record in records {
        if let Record::Trial(trial) = record
            && yielded(trial).is_ok()
        {
            let cell = (trial.workload.as_str(), trial.point.as_str(), trial.variant.as_str());
            cells.entry(cell).or_default().push(trial);
        }
    }
    let repeated = || cells.iter().filter(|(_, trials)| trials.len() > 1);
    let differing = repeated().filter(|(_, trials)| !are_identical(trials));
    let name =
        |((workload, point, variant), _): (&Cell<'_>, _)| format!("{workload} {point} under {variant}");
    Some(VirtualTime {
        ns_per_instruction: VIRTUAL_NS_PER_INSTRUCTION,
        repeated: repeated().count(),
        differing: differing.map(name).collect(),
        paths: tables
            .iter()
            .filter(|table| table.metric.primary)
            .flat_map(|table| paths(table, &cells))
            .collect(),
    })
}

/// Whether each trial gave the same samples in every metric.
fn are_identical(trials: &[&TrialRecord]) -> bool {
    let mut samples = trials.iter().map(|trial| yielded(trial).ok());
    let first = samples.next();
    samples.all(|other| Some(other) == first)
}

fn paths(table: &Table, cells: &BTreeMap<Cell<'_>, Vec<&TrialRecord>>) -> Vec<Path> {
    let all = table.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
    all.filter_map(|(row, cell)| {
        let (ns, unit) = ns_of_one(&table.metric.unit, *cell.value.as_ref().ok()?)?;
        let trials = cells.get(&(table.workload.as_str(), row.point.as_str(), cell.variant.as_str()))?;
        Some(Path {
            workload: table.workload.clone(),
            point: row.point.clone(),
            metric: table.metric.name.clone(),
            variant: cell.variant.clone(),
            unit: unit.into(),
            ns,
            instructions: ns / f64::from(VIRTUAL_NS_PER_INSTRUCTION),
            idle_pct: idle_pct(trials),
        })
    })
    .collect()
}

/// The time of one thing in nanoseconds, and what it is, from a value in a unit of time or a rate.
fn ns_of_one(unit: &str, value: f64) -> Option<(f64, &str)> {
    let ns = |unit: &str| match unit {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "min" => Some(60e9),
        _ => None,
    };
    let (found, thing) = match unit.split_once('/') {
        None => (ns(unit)? * value, ""),
        Some((thing, time)) => (ns(time)? / value, thing),
    };
    found.is_finite().then_some((found, thing))
}

/// The largest share of the time in the workload that was not spent on it.
fn idle_pct(trials: &[&TrialRecord]) -> Known<f64> {
    let idle = |trial: &&TrialRecord| {
        let (work, cpu) = (trial.usage.work_ns.filter(|work| *work > 0)?, trial.usage.work_cpu_ns?);
        Some(100.0 * work.saturating_sub(cpu) as f64 / work as f64)
    };
    let all: Option<Vec<f64>> = trials.iter().map(idle).collect();
    let most = all.and_then(|all| all.into_iter().reduce(f64::max));
    most.ok_or_else(|| Missing::because("the kernel does not tell its CPU time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_say_how_long_one_takes() {
        assert_eq!(ns_of_one("us", 2.5), Some((2500.0, "")));
        assert_eq!(ns_of_one("ops/s", 1000.0), Some((1e6, "ops")));
        assert_eq!(ns_of_one("jobs/min", 60.0), Some((1e9, "jobs")));
        assert_eq!(ns_of_one("MiB", 3.0), None);
        assert_eq!(ns_of_one("IO/call", 3.0), None);
        assert_eq!(ns_of_one("1/s", 0.0), None, "there is no longest path");
    }
}
