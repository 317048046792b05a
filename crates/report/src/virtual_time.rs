//! What stands in a report of a run whose clock counts instructions.

use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{significant, thousands, trimmed};
use analysis::{Analysis, Path, VirtualTime};
use experiment::counted;

/// Up to so much idleness in a workload, in percent, its times count as paths.
const IDLE_PCT_MOST: f64 = 1.0;

/// What the exact figures are, and are not; then the path of every judged cell. None of a run by the host's clock.
pub(crate) fn blocks(analysis: &Analysis) -> Vec<Block> {
    let Some(found) = &analysis.virtual_time else { return Vec::new() };
    let mut blocks = vec![Block::Section("Virtual time".into()), Block::Paragraph(sentence(found))];
    if found.paths.is_empty() {
        return blocks;
    }
    blocks.push(Block::Paragraph(
        "The path of a figure that is a time, and of one where it is a rate; idle: for how much of the whole workload the CPU \
         had nothing of it to do."
            .into(),
    ));
    let metrics = found.paths.iter().any(|path| path.metric != found.paths[0].metric);
    let mut head = vec![Head::words("workload"), Head::words("point")];
    if metrics {
        head.push(Head::words("metric"));
    }
    head.extend([Head::words("variant"), Head::figures("virtual ns"), Head::figures("instructions")]);
    head.push(Head::figures("idle"));
    let rows = found.paths.iter().map(|path| row(path, metrics)).collect();
    blocks.push(Block::Table(Table { head, rows, ..Table::default() }));
    blocks
}

fn row(path: &Path, metrics: bool) -> Row {
    let mut cells = vec![Cell::of(path.workload.clone()), Cell::of(path.point.as_str())];
    if metrics {
        cells.push(Cell::of(path.metric.clone()));
    }
    // Of a workload that also sleeps, nobody knows whether it did so in what was measured.
    let busy = path.idle_pct.as_ref().is_ok_and(|idle| *idle <= IDLE_PCT_MOST);
    let most = if busy { "" } else { "at most " };
    cells.extend([
        Cell::of(path.variant.clone()),
        Cell::of(figure(path.ns)),
        Cell::of(format!("{most}{}", figure(path.instructions))),
        Cell::of(path.idle_pct.as_ref().map_or("n/a".into(), |idle| format!("{} %", trimmed(*idle, 1)))),
    ]);
    Row::of(cells)
}

/// A count with all its digits, or the digits that count of a small one.
fn figure(value: f64) -> String {
    if value >= 1000.0 { thousands(value) } else { significant(value, 5) }
}

fn sentence(found: &VirtualTime) -> String {
    let VirtualTime { ns_per_instruction, repeated, differing, .. } = found;
    let clock =
        format!("The clock counts instructions, {ns_per_instruction} ns each, whatever else the host does.");
    let repeats = match (repeated, differing.as_slice()) {
        (0, _) => "No cell was repeated, so nothing is proven: take --blocks 2.".to_string(),
        (_, []) => format!(
            "All repeats of {} gave the same to the digit, so a difference is exact: it has no interval and nothing to \
             test. It is one of path length, of how many instructions kernel and program ran on the way; caches, \
             memory, speculation and contention between CPUs are not in it.",
            counted(*repeated, "cell")
        ),
        (_, differing) => format!(
            "The repeats of {} of {} differ, and count as noise: {}.",
            differing.len(),
            counted(*repeated, "cell"),
            differing.join(", ")
        ),
    };
    format!("{clock} {repeats}")
}
