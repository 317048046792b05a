//! Go benchmark lines, one per value of a block, which benchstat reads: `benchstat -col variant FILE`.

use analysis::Analysis;
use experiment::{Direction, Metric};
use std::fmt::Write;

/// The values of every cell, one variant after the other.
pub(crate) fn print(analysis: &Analysis) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, so the results are dropped.
    let _ = writeln!(out, "run: {}", plain(&analysis.header.run));
    let mut units: Vec<(String, Direction)> = Vec::new();
    for table in &analysis.tables {
        let unit = (unit(&table.metric).0, table.metric.direction);
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    for (unit, direction) in &units {
        let better = match direction {
            Direction::Lower => "lower",
            Direction::Higher => "higher",
        };
        // benchstat takes one direction per unit; a second one for the same unit would be an error to it.
        if units.iter().find(|known| known.0 == *unit).is_some_and(|known| known.1 == *direction) {
            let _ = writeln!(out, "Unit {unit} better={better}");
        }
    }
    let mut variants: Vec<&String> = Vec::new();
    for name in analysis.tables.iter().flat_map(|table| &table.variants) {
        if !variants.contains(&name) {
            variants.push(name);
        }
    }
    let cpus = cpus(analysis);
    for variant in variants {
        let _ = writeln!(out, "\nvariant: {}", plain(variant));
        for table in &analysis.tables {
            let (unit, factor) = unit(&table.metric);
            for row in &table.rows {
                for cell in row.cells.iter().filter(|cell| cell.variant == *variant) {
                    let name = format!(
                        "Benchmark{}/{}={}-{cpus}",
                        camel(&table.workload),
                        plain(&table.description.axis.name),
                        plain(row.point.as_str())
                    );
                    for value in cell.values.iter().filter(|value| value.value.is_finite()) {
                        let _ = writeln!(out, "{name} 1 {} {unit}", value.value * factor);
                    }
                }
            }
        }
    }
    out
}

/// The unit as benchstat knows it, and what its values are multiplied with.
fn unit(metric: &Metric) -> (String, f64) {
    match metric.unit.as_str() {
        "s" => ("sec/op".into(), 1.0),
        "ms" => ("sec/op".into(), 1e-3),
        "us" => ("sec/op".into(), 1e-6),
        "ns" => ("sec/op".into(), 1e-9),
        "" => (plain(&metric.name), 1.0),
        unit => (plain(unit), 1.0),
    }
}

/// The CPUs that trials could use, which Go puts behind every name; 1 where they are not known.
fn cpus(analysis: &Analysis) -> u64 {
    let list = analysis.facts.first().and_then(|(_, facts)| facts.cpus_allowed.as_ref());
    let count = |item: &str| -> Option<u64> {
        match item.split_once('-') {
            Some((first, last)) => {
                let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
                last.checked_sub(first).map(|apart| apart + 1)
            }
            None => item.trim().parse::<u64>().ok().map(|_| 1),
        }
    };
    list.and_then(|list| list.split(',').map(count).sum()).unwrap_or(1)
}

/// `futex-wake` as `FutexWake`.
fn camel(label: &str) -> String {
    let words = label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (head, rest) = word.split_at(1);
            head.to_ascii_uppercase() + rest
        })
        .collect()
}

/// Without spaces and what benchstat takes for its own.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_ascii_graphic() && c != '=' { c } else { '_' }).collect();
    if text.is_empty() { "_".into() } else { text }
}
