//! The page that the results become.

use super::pairs::Pair;
use super::{Cell, MARGIN_PCT, Outcome, STEADY_CV_PCT, STEADY_MARGIN_PCT};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The text of `docs/parity.md`.
pub(super) fn page(results: &[(&Pair, &Outcome)]) -> String {
    let mut page = String::from(
        "# kduel's workloads beside the originals\n\n\
         Written by `cargo run --release -p xtask -- parity`, which installs what Debian has of the originals and duels\n\
         each against kduel's own implementation: in blocks, in random order, until every cell is decided or has 40\n\
         blocks.\n\n",
    );
    let _ = writeln!(
        page,
        "`same`: the report's verdict, or the interval lies within the margin: {MARGIN_PCT} %, and {STEADY_MARGIN_PCT} % where \
         the original's own CV is\nunder {STEADY_CV_PCT} %. The difference is that of the original against ours, raw sign, with \
         its interval.\n"
    );
    let contests = || results.iter().filter_map(|(_, result)| result.as_ref().ok());
    let machines: BTreeSet<&str> = contests().map(|contest| contest.machine.as_str()).collect();
    for machine in machines {
        let _ = writeln!(page, "Machine: {machine}.\n");
    }
    page += "| workload | point | metric | ours | original | difference | blocks | |\n|---|---|---|---|---|---|---|---|\n";
    for (number, (pair, result)) in results.iter().enumerate() {
        let note = pair.reason.map(|_| format!(" ({})", number + 1)).unwrap_or_default();
        match result {
            Ok(contest) => contest.cells.iter().for_each(|cell| row(&mut page, pair, cell, &note)),
            Err(_) => {
                let _ = writeln!(page, "| {} | | | | | | | not run, see below |", pair.name());
            }
        }
    }
    reasons(&mut page, results);
    page += "\n## Versions\n\n";
    let programs: BTreeSet<&String> = contests().flat_map(|contest| &contest.programs).collect();
    for program in programs {
        let _ = writeln!(page, "- {program}");
    }
    page += "\n## Commands\n\n";
    for (pair, _) in results {
        let _ = writeln!(page, "    {}", pair.command());
    }
    page
}

fn row(page: &mut String, pair: &Pair, cell: &Cell, note: &str) {
    let Cell { point, metric, unit, ours, theirs, blocks, .. } = cell;
    let note = if cell.same() { "" } else { note };
    let _ = writeln!(
        page,
        "| {} | {point} | {metric} | {} {unit} | {} {unit} | {} | {blocks} | {}{note} |",
        pair.name(),
        four_digits(*ours),
        four_digits(*theirs),
        cell.change(),
        cell.verdict()
    );
}

/// Why what is not the same is not, and what could not be run.
fn reasons(page: &mut String, results: &[(&Pair, &Outcome)]) {
    let mut any = false;
    for (number, (pair, result)) in results.iter().enumerate() {
        let text = match result {
            Err(error) => format!("not run: {error}"),
            Ok(contest) if contest.cells.iter().all(Cell::same) => continue,
            Ok(contest) if contest.cells.iter().all(|cell| cell.same() || cell.verdict() == "undecided") => {
                "nothing is decided; more blocks or a quieter machine would tell".into()
            }
            Ok(_) => pair.reason.unwrap_or("the difference is not explained").to_string(),
        };
        if !any {
            page.push_str("\n## Where they differ\n");
            any = true;
        }
        let _ = writeln!(page, "\n({}) {}: {text}", number + 1, pair.name());
    }
}

/// Four significant digits.
fn four_digits(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    format!("{value:.*}", (3 - magnitude).max(0) as usize)
}
