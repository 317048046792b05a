//! The block of benchmarks that are known by a percentage each.

use super::super::{Reasons, shown};
use super::{GAP, PERCENT, behind};
use crate::Options;
use crate::document::{Cell, Head, Row, Table};
use crate::figures::short;
use analysis::Analysis;

/// One percentage per row and variant. Several workloads with a point each stand as rows of one table.
pub(super) fn table(
    analysis: &Analysis,
    tables: &[(usize, &analysis::Table)],
    options: &Options<'_>,
) -> Table {
    let Some((_, first)) = tables.first() else { return Table::default() };
    let shown: Vec<usize> = shown(analysis, first).into_iter().filter(|place| *place > 0).collect();
    let heading = &first.description.axis.heading;
    let heads: Vec<String> = shown
        .iter()
        .map(|place| match shown.len() {
            1 => PERCENT.to_string(),
            _ => format!("{} {PERCENT}", short(first.variants.get(*place).map_or("", String::as_str), 40)),
        })
        .collect();
    let label = |table: &analysis::Table, row: &analysis::Row| match (tables.len(), table.rows.len()) {
        (1, _) => table.description.row_label(&row.point),
        (_, 1) => table.workload.clone(),
        _ => format!("{} {}", table.workload, table.description.row_label(&row.point)),
    };
    let mut reasons = Reasons::default();
    let mut rows = Vec::new();
    for (_, table) in tables {
        for row in &table.rows {
            let mut cells = vec![Cell::of(short(&label(table, row), 40))];
            for cell in shown.iter().filter_map(|place| row.cells.get(*place)) {
                let figure = match &cell.improvement_pct {
                    Ok(percent) => format!("{percent:.2}%"),
                    Err(_) => "n/a".into(),
                };
                let note = cell.improvement_pct.as_ref().err().map(|missing| reasons.mark(&missing.why));
                cells.push(Cell::of(format!("{figure}{}", behind(cell, note, options))).judged(cell.verdict));
            }
            rows.push(Row::of(cells));
        }
    }
    let text = lines(heading, &heads, &rows, options.width);
    let mut head = vec![Head::words(heading.clone())];
    head.extend(heads.iter().map(Head::figures));
    Table { head, rows, text: Some(text), notes: reasons.notes(), ..Table::default() }
}

/// The percentages under their heads, in as many groups of columns as the width asks for.
fn lines(heading: &str, heads: &[String], rows: &[Row], width: usize) -> Vec<String> {
    let figure_of = |cell: &Cell| cell.text.split(' ').next().unwrap_or("").len();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.cells.get(column + 1));
    // The figures end below the ends of their heads; what stands behind them reaches into the gap.
    let columns: Vec<(usize, usize)> = (0..heads.len())
        .map(|column| {
            let figures = cells(column).map(figure_of).chain([heads[column].len(), 8]).max().unwrap_or(8);
            let behind = cells(column).map(|cell| cell.text.len() - figure_of(cell)).max().unwrap_or(0);
            (figures, GAP.max(behind + 1))
        })
        .collect();
    let labels =
        rows.iter().filter_map(|row| row.cells.first()).map(|cell| cell.text.len()).max().unwrap_or(0);
    let label_width = labels.max(heading.len() + 1);
    let mut lines = Vec::new();
    let mut begin = 0;
    while begin < columns.len() {
        let mut end = begin + 1;
        let used =
            |end: usize| label_width + columns[begin..end].iter().map(|(f, gap)| f + gap).sum::<usize>();
        while end < columns.len() && used(end + 1) + GAP <= width {
            end += 1;
        }
        let line = |label: &str, text: &dyn Fn(usize) -> (String, String)| {
            let mut line = format!("{label:<label_width$}");
            let mut at = label_width;
            for (column, (figures, _)) in columns.iter().enumerate().take(end).skip(begin) {
                let (figure, behind) = text(column);
                at += if column == begin { GAP } else { columns[column - 1].1 } + figures;
                line += &format!("{figure:>missing$}{behind}", missing = at.saturating_sub(line.len()));
            }
            line
        };
        lines.push(line(&format!("{heading}:"), &|column| (heads[column].clone(), String::new())));
        for row in rows {
            let label = row.cells.first().map_or("", |cell| cell.text.as_str());
            lines.push(line(label, &|column| {
                let cell = row.cells.get(column + 1).cloned().unwrap_or_default();
                let (figure, behind) = cell.text.split_at(figure_of(&cell));
                (figure.to_string(), behind.to_string())
            }));
        }
        begin = end;
    }
    lines
}
