//! One file per style: how it lays an analysis out, and how it reads that layout back.

pub(crate) mod boxed;
pub(crate) mod enumerated;
pub(crate) mod normalized;
pub(crate) mod scaling;

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
