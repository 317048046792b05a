//! Figures of another source set beside those of the run.

use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::verdict_word;
use analysis::{Analysis, State, Verdict};
use experiment::{Known, counted};

/// What the two sources say of the same workload, point and metric, and what could not be matched.
pub(crate) fn blocks(own: &Analysis, other: &Analysis) -> Vec<Block> {
    let source = source_of(other);
    let mut blocks = vec![Block::Section(format!("Beside {source}"))];
    blocks.push(Block::Paragraph(format!(
        "The figures of {source} come from another machine, other kernels and other builds than those of this run. \
         Only what each source says of its own variants can be compared (percent improvement, positive is good); \
         its absolute values cannot."
    )));
    let mut lost = Vec::new();
    for theirs in &other.tables {
        let Some(ours) = own.tables.iter().find(|ours| matches(ours, theirs)) else {
            lost.push(format!("{} {}: this run has no such figures", theirs.workload, theirs.metric.name));
            continue;
        };
        let (table, unmatched) = side_by_side(ours, theirs, other.state == State::Imported);
        if !unmatched.is_empty() {
            lost.push(format!(
                "{} {}: only one source has the {} {}",
                theirs.workload,
                theirs.metric.name,
                if unmatched.len() == 1 { "point" } else { "points" },
                unmatched.join(", ")
            ));
        }
        if !table.rows.is_empty() {
            blocks.push(Block::Table(table));
        }
    }
    for ours in own.tables.iter().filter(|ours| ours.metric.primary) {
        if !other.tables.iter().any(|theirs| matches(ours, theirs)) {
            lost.push(format!("{} {}: {source} has no such figures", ours.workload, ours.metric.name));
        }
    }
    if !lost.is_empty() {
        blocks.push(Block::Paragraph(format!("Not matched ({}):", counted(lost.len(), "item"))));
        blocks.push(Block::Items(lost));
    }
    blocks
}

fn source_of(analysis: &Analysis) -> String {
    match &analysis.header.imported {
        Some(imported) => imported.source.clone(),
        None => format!("run {}", analysis.header.run),
    }
}

/// Whether two tables are about the same: one name among label, workload and block, and one metric.
pub(crate) fn matches(a: &analysis::Table, b: &analysis::Table) -> bool {
    let names = |table: &analysis::Table| {
        [Some(table.workload.clone()), Some(table.description.name.clone()), table.metric.test.clone()]
    };
    let shared = names(a).into_iter().flatten().any(|name| names(b).contains(&Some(name)));
    let same_metric =
        a.metric.name == b.metric.name || a.metric.units_line.eq_ignore_ascii_case(&b.metric.units_line);
    shared && same_metric && a.metric.direction == b.metric.direction
}

fn side_by_side(ours: &analysis::Table, theirs: &analysis::Table, imported: bool) -> (Table, Vec<String>) {
    let head_of = |table: &analysis::Table, whose: &str| {
        let names: Vec<Head> =
            table.variants.iter().skip(1).map(|name| Head::figures(format!("{whose} {name}"))).collect();
        names
    };
    let mut head = vec![Head::words(ours.description.axis.heading.clone())];
    head.extend(head_of(ours, "ours:"));
    head.extend(head_of(theirs, "theirs:"));
    let mut rows = Vec::new();
    let mut unmatched = Vec::new();
    for row in &ours.rows {
        let Some(other) = theirs.rows.iter().find(|other| other.point == row.point) else {
            unmatched.push(row.point.to_string());
            continue;
        };
        let mut cells = vec![Cell::of(ours.description.row_label(&row.point))];
        cells.extend(row.cells.iter().skip(1).map(|cell| told(cell, true)));
        cells.extend(other.cells.iter().skip(1).map(|cell| told(cell, !imported)));
        rows.push(Row::of(cells));
    }
    for other in &theirs.rows {
        if !ours.rows.iter().any(|row| row.point == other.point) {
            unmatched.push(other.point.to_string());
        }
    }
    let title = format!("{}, {}", ours.workload, ours.metric.units_line);
    (Table { title: Some(title), head, rows, ..Table::default() }, unmatched)
}

fn told(cell: &analysis::Cell, judged: bool) -> Cell {
    let figure: &Known<f64> = &cell.improvement_pct;
    let text = match figure {
        Ok(percent) => format!("{percent:+.2} %"),
        Err(_) => "n/a".into(),
    };
    match judged && cell.verdict != Verdict::Unjudged {
        true => Cell::of(format!("{text} {}", verdict_word(cell.verdict))).judged(cell.verdict),
        false => Cell::of(text),
    }
}
