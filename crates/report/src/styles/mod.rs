//! One file per style: how it lays an analysis out, and how it reads that layout back.

pub(crate) mod boxed;
pub(crate) mod enumerated;
pub(crate) mod normalized;
pub(crate) mod scaling;

use crate::Options;
use crate::document::Block;
use crate::figures::short;
use analysis::{Analysis, State, Table};

/// The places of the variants that a table shows: all of them, but for imported figures only those that have any.
pub(crate) fn shown(analysis: &Analysis, table: &Table) -> Vec<usize> {
    let has_figures = |place: usize| {
        table.rows.iter().filter_map(|row| row.cells.get(place)).any(|cell| {
            cell.value.is_ok() || cell.improvement_pct.is_ok() || cell.ratio.is_ok() || cell.cv_pct.is_ok()
        })
    };
    let imported = analysis.state == State::Imported;
    (0..table.variants.len()).filter(|place| !imported || has_figures(*place)).collect()
}

/// The tables that a report shows, with their places: those of primary metrics, all of them where that was asked for,
/// all of a workload that has no primary metric, and all imported ones.
pub(crate) fn tables<'a>(analysis: &'a Analysis, options: &Options<'_>) -> Vec<(usize, &'a Table)> {
    let is_judged = |table: &Table| {
        let mut others = analysis.tables.iter().filter(|other| other.workload == table.workload);
        table.metric.primary || !others.any(|other| other.metric.primary)
    };
    let all = options.all_metrics || analysis.state == State::Imported;
    analysis.tables.iter().enumerate().filter(|(_, table)| all || is_judged(table)).collect()
}

/// A sentence per workload on the metrics that are not among the `shown` tables.
pub(crate) fn further(analysis: &Analysis, shown: &[usize]) -> Vec<Block> {
    let mut left_out: Vec<(&str, Vec<&str>)> = Vec::new();
    for (place, table) in analysis.tables.iter().enumerate() {
        if shown.contains(&place) {
            continue;
        }
        let name = table.metric.name.as_str();
        match left_out.last_mut() {
            Some((workload, names)) if *workload == table.workload => names.push(name),
            _ => left_out.push((&table.workload, vec![name])),
        }
    }
    let sentence = |(workload, names): (&str, Vec<&str>)| {
        Block::Paragraph(format!(
            "Further metrics of {workload}, shown by --all-metrics --style normalized: {}.",
            names.join(", ")
        ))
    };
    left_out.into_iter().map(sentence).collect()
}

/// A name of at most `longest` columns for the head of a column, and where it had to be shortened a line that
/// gives it in full.
pub(crate) fn head_name(name: &str, column: usize, longest: usize) -> (String, Option<String>) {
    let whole = short(name, usize::MAX);
    match whole.len() > longest {
        true => {
            let tag = format!("~{}", column + 1);
            (format!("{}{tag}", &whole[..longest - tag.len()]), Some(format!("{tag} = {whole}")))
        }
        false => (whole, None),
    }
}

/// Reasons for what is not there, each with a number that stands in the table.
#[derive(Debug, Default)]
pub(crate) struct Reasons(Vec<String>);

impl Reasons {
    /// The mark for `why`: `(1)`.
    pub fn mark(&mut self, why: &str) -> String {
        let place = self.0.iter().position(|known| known == why).unwrap_or_else(|| {
            self.0.push(why.to_string());
            self.0.len() - 1
        });
        format!("({})", place + 1)
    }

    /// The notes below the table.
    pub fn notes(&self) -> Vec<String> {
        self.0.iter().enumerate().map(|(place, why)| format!("({}) n/a: {why}", place + 1)).collect()
    }
}
