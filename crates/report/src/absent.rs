//! Cells that lack a figure for one and the same reason, told together.

use crate::figures::verdict_word;
use crate::head::judged;
use analysis::{Analysis, Cell, Row, Table, Verdict};
use experiment::counted;

/// Several judged cells without a figure, of one verdict and reason.
pub(crate) struct Absent<'a> {
    verdict: Verdict,
    reason: &'a str,
    cells: Vec<Place<'a>>,
}

type Place<'a> = (&'a Table, &'a Row, &'a Cell);

/// Every reason that several cells of a report share, in the order of the report.
pub(crate) fn shared_reasons(analysis: &Analysis) -> Vec<Absent<'_>> {
    let mut all: Vec<Absent<'_>> = Vec::new();
    for (table, row, cell) in judged(analysis).filter(|(.., cell)| cell.effect.is_err()) {
        match all.iter_mut().find(|absent| absent.is_about(cell)) {
            Some(absent) => absent.cells.push((table, row, cell)),
            None => all.push(Absent {
                verdict: cell.verdict,
                reason: &cell.reason,
                cells: vec![(table, row, cell)],
            }),
        }
    }
    all.retain(|absent| absent.cells.len() > 1);
    all
}

impl Absent<'_> {
    /// Whether a cell is told here.
    pub(crate) fn is_about(&self, cell: &Cell) -> bool {
        cell.effect.is_err() && (cell.verdict, cell.reason.as_str()) == (self.verdict, self.reason)
    }

    /// Which cells they are, and why. `metrics` says whether the report has several of them.
    pub(crate) fn sentence(&self, metrics: bool) -> String {
        // Variants that lack the same cells are named together.
        let mut places: Vec<(String, Vec<&str>)> = Vec::new();
        let same = |a: &Place<'_>, b: &Place<'_>| {
            (&a.0.workload, &a.0.metric.name) == (&b.0.workload, &b.0.metric.name)
        };
        for of_table in self.cells.chunk_by(same) {
            let (table, ..) = of_table[0];
            for variant in &table.variants {
                let of_it = of_table.iter().filter(|(.., cell)| cell.variant == *variant);
                let points: Vec<String> =
                    of_it.map(|(_, row, _)| table.description.row_label(&row.point)).collect();
                let points = match points.len() {
                    0 => continue,
                    all if all > 1 && all == table.rows.len() => "every point".into(),
                    _ => points.join(", "),
                };
                let metric = if metrics { format!(" {}", table.metric.name) } else { String::new() };
                let place = format!("{}{metric} at {points}", table.workload);
                match places.iter_mut().find(|(known, _)| *known == place) {
                    Some((_, variants)) => variants.push(variant.as_str()),
                    None => places.push((place, vec![variant.as_str()])),
                }
            }
        }
        let places: Vec<String> =
            places.iter().map(|(place, variants)| format!("{place} under {}", variants.join(", "))).collect();
        format!(
            "{} {}: {} ({})",
            counted(self.cells.len(), "cell"),
            verdict_word(self.verdict),
            self.reason.trim_end_matches('.'),
            places.join("; ")
        )
    }
}
