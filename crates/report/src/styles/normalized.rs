//! The style of K Prateek Nayak's mails: one block per workload and metric, each cell relative to the baseline.

mod percent;
mod read;

use super::{Reasons, further, head_name, shown, tables};
use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{short, significant, verdict_mark, wrap};
use crate::reader::{Import, ImportError, Page};
use crate::style::Layout;
use crate::{Options, resolution};
use analysis::Analysis;
use experiment::{Direction, Known, Metric};

/// `%.2f [%6.2f](%5.2f)`.
const CELL: usize = 20;
/// What stands between two cells.
const GAP: usize = 5;
/// The least width of the first column, under which `#workers:` and `16-groups` line up.
const LABEL: usize = 9;
/// A longer name of a variant is shortened in the head and given in full below.
const NAME: usize = 26;
const RULE: &str = "==================================================================";
/// What follows a variant's name in the head.
const COLUMN: &str = "[pct imp](CV)";
/// Units of metrics that are known as a percentage only.
const PERCENT: &str = "%diff";
/// The head of the lines with values as they were measured.
const ABSOLUTE: &str = "Absolute, ";

pub(crate) struct Normalized;

impl Layout for Normalized {
    fn name(&self) -> &'static str {
        "normalized"
    }

    fn summary(&self) -> &'static str {
        "per workload and metric: value over the baseline's, percent improvement, CV"
    }

    fn is_usual(&self, _: &Analysis) -> bool {
        // It is taken where no other style is.
        false
    }

    fn body(&self, analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, String> {
        let tables = tables(analysis, options);
        let places: Vec<usize> = tables.iter().map(|(place, _)| *place).collect();
        let shares = |a: &(usize, &analysis::Table), b: &(usize, &analysis::Table)| shares_block(a.1, b.1);
        let mut blocks: Vec<Block> =
            tables.chunk_by(shares).map(|tables| Block::Table(block(analysis, tables, options))).collect();
        blocks.extend(unnamed_points(&tables));
        blocks.extend(further(analysis, &places));
        Ok(blocks)
    }

    fn knows(&self, page: &Page<'_>) -> bool {
        read::knows(page)
    }

    fn read(&self, page: &Page<'_>) -> Result<Import, ImportError> {
        read::read(page)
    }
}

/// Whether two tables stand in one block: benchmarks that are known by a percentage, and metrics of one workload that
/// are rows.
fn shares_block(a: &analysis::Table, b: &analysis::Table) -> bool {
    let are_rows = a.metric.row.is_some() && b.metric.row.is_some();
    let alike =
        is_percent(&a.metric) || (are_rows && a.workload == b.workload && a.metric.unit == b.metric.unit);
    alike && caption(a) == caption(b) && a.variants == b.variants
}

/// The label of a row: its point, or the name that its metric has as a row, with the point where there are several.
fn row_label(table: &analysis::Table, row: &analysis::Row) -> String {
    let point = table.description.row_label(&row.point);
    let label = match &table.metric.row {
        None => point,
        Some(name) if table.rows.len() == 1 => name.clone(),
        Some(name) => format!("{name} {point}"),
    };
    short(&label, 40)
}

/// A sentence for each point that stands in no row, because the metrics of its workload are the rows.
fn unnamed_points(tables: &[(usize, &analysis::Table)]) -> Vec<Block> {
    let mut sentences: Vec<String> = Vec::new();
    for (_, table) in tables.iter().filter(|(_, table)| table.metric.row.is_some()) {
        if let [row] = table.rows.as_slice() {
            let point = table.description.row_label(&row.point);
            let sentence = format!("{} was measured at the point {point}.", test(table));
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    sentences.into_iter().map(Block::Paragraph).collect()
}

/// The name of the block of a table.
fn test(table: &analysis::Table) -> &str {
    table.metric.test.as_ref().unwrap_or(&table.workload)
}

/// A block with its caption, of one table or of several that share it.
fn block(analysis: &Analysis, tables: &[(usize, &analysis::Table)], options: &Options<'_>) -> Table {
    let Some((place, table)) = tables.first() else { return Table::default() };
    let mut block = match is_percent(&table.metric) {
        true => percent::table(analysis, tables, options),
        false => ratio_table(analysis, tables, options),
    };
    block.caption = caption(table);
    block.plot = (tables.len() == 1).then_some(*place);
    let mut lines = vec![RULE.to_string()];
    lines.extend(block.caption.iter().map(|(key, value)| format!("{key:<14}: {}", short(value, 80))));
    lines.push(RULE.into());
    lines.extend(block.text.take().unwrap_or_default());
    lines.extend(block.notes.iter().flat_map(|note| wrap(note, options.width, 4)));
    block.text = Some(lines);
    block
}

fn is_percent(metric: &Metric) -> bool {
    metric.units_line.starts_with(PERCENT)
}

fn caption(table: &analysis::Table) -> Vec<(String, String)> {
    let metric = &table.metric;
    let units = match is_percent(metric) {
        true => metric.units_line.clone(),
        false => format!("Normalized {}", metric.units_line),
    };
    let better = match metric.direction {
        Direction::Lower => "Lower is better",
        Direction::Higher => "Higher is better",
    };
    [
        ("Test", test(table)),
        ("Units", &units),
        ("Interpretation", better),
        ("Statistic", metric.statistic.label()),
    ]
    .map(|(key, value)| (key.to_string(), value.to_string()))
    .into()
}

/// The cell as it is posted: `%.2f [%6.2f](%5.2f)`.
fn core(cell: &analysis::Cell) -> String {
    let figure = |known: &Known<f64>, width: usize| match known {
        Ok(value) if value.is_finite() => format!("{value:width$.2}"),
        _ => format!("{:>width$}", "n/a"),
    };
    format!("{} [{}]({})", figure(&cell.ratio, 4), figure(&cell.improvement_pct, 6), figure(&cell.cv_pct, 5))
}

/// Why a figure of the cell is not there, if one that should be is not.
fn why_missing(table: &analysis::Table, row: &analysis::Row, cell: &analysis::Cell) -> Option<String> {
    if let Some(text) = resolution::below(table, row) {
        return Some(text);
    }
    let known = [&cell.value, &cell.ratio, &cell.improvement_pct, &cell.cv_pct];
    known.into_iter().find_map(|figure| figure.as_ref().err()).map(|missing| missing.why.clone())
}

/// What stands behind the cell: its mark, its interval, the number of a note.
fn behind(cell: &analysis::Cell, note: Option<String>, options: &Options<'_>) -> String {
    let mut text = String::new();
    if let Some(mark) = verdict_mark(cell.verdict).filter(|_| !options.plain) {
        text.push(' ');
        text.push(mark);
    }
    if let (true, Ok(effect)) = (options.intervals, &cell.effect)
        && !effect.exact
    {
        text += &match effect.scale {
            stats::Scale::Ratio => format!(" {:.3}..{:.3}", effect.low, effect.high),
            stats::Scale::Difference => {
                format!(" {}..{}", significant(effect.low, 3), significant(effect.high, 3))
            }
        };
    }
    if let Some(note) = note {
        text.push(' ');
        text += &note;
    }
    text
}

fn ratio_table(analysis: &Analysis, tables: &[(usize, &analysis::Table)], options: &Options<'_>) -> Table {
    let Some((_, table)) = tables.first() else { return Table::default() };
    let shown = shown(analysis, table);
    let mut reasons = Reasons::default();
    let mut rows = Vec::new();
    // Per row its label, and per cell the core and what stands behind it.
    let mut laid: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for (table, row) in tables.iter().flat_map(|(_, table)| table.rows.iter().map(move |row| (*table, row))) {
        let label = row_label(table, row);
        let mut cells = vec![Cell::of(label.clone())];
        let mut texts = Vec::new();
        for cell in shown.iter().filter_map(|place| row.cells.get(*place)) {
            let note = why_missing(table, row, cell).map(|why| reasons.mark(&why));
            let (core, behind) = (core(cell), behind(cell, note, options));
            let detail = cell.value.as_ref().ok().filter(|_| has_unit(&table.metric));
            cells.push(Cell {
                text: format!("{core}{behind}"),
                verdict: Some(cell.verdict),
                detail: detail.map(|value| format!("{} {}", significant(*value, 4), table.metric.unit)),
            });
            texts.push((core, behind));
        }
        rows.push(Row::of(cells));
        laid.push((label, texts));
    }

    // The reader takes what follows the first reason for more of it, so the names come first.
    let mut notes = Vec::new();
    let mut names = Vec::new();
    for (column, place) in shown.iter().enumerate() {
        let (name, legend) = head_name(table.variants.get(*place).map_or("", String::as_str), column, NAME);
        names.push(name);
        notes.extend(legend);
    }
    notes.extend(reasons.notes());
    let heading = &table.description.axis.heading;
    let mut head = vec![Head::words(heading.clone())];
    head.extend(names.iter().map(|name| Head::figures(name.clone())));

    let labels = laid.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let label_width = LABEL.max(labels).max(heading.len() + 1);
    let columns: Vec<Column> = (0..names.len())
        .map(|place| Column::fitting(&names[place], laid.iter().filter_map(|(_, cells)| cells.get(place))))
        .collect();
    let mut text = Vec::new();
    for group in groups(&columns, label_width, options.width) {
        text.push(head_line(heading, label_width, &group, &columns, &names));
        for (label, cells) in &laid {
            let mut line = format!("{label:>label_width$}");
            for place in group.iter().copied() {
                let (core, behind) = cells.get(place).cloned().unwrap_or_default();
                columns[place].put(&mut line, &core, &behind);
            }
            text.push(line.trim_end().to_string());
        }
        if has_unit(&table.metric) {
            text.extend(absolute(tables, &shown, &group, &columns, &names, label_width));
        }
    }
    Table { head, rows, text: Some(text), notes, ..Table::default() }
}

/// Whether the values are figures of their own, not only relative ones.
fn has_unit(metric: &Metric) -> bool {
    !metric.unit.is_empty()
}

/// One column of cells: how wide its cells are, and what may stand behind them.
struct Column {
    core: usize,
    stride: usize,
}

impl Column {
    fn fitting<'c>(name: &str, cells: impl Iterator<Item = &'c (String, String)> + Clone) -> Column {
        let core = cells.clone().map(|(core, _)| core.len()).max().unwrap_or(0).max(CELL);
        let behind = cells.map(|(_, behind)| behind.len()).max().unwrap_or(0);
        // A head may reach over its cell by two columns on either side, as in the mails.
        let head = (name.len() + COLUMN.len()).saturating_sub(core + GAP - 1);
        Column { core, stride: core + GAP.max(behind + 2) + head }
    }

    /// Writes a cell of this column behind `line`, which ends where the column begins.
    fn put(&self, line: &mut String, core: &str, behind: &str) {
        let begin = line.len();
        line.push_str(&" ".repeat(GAP));
        line.push_str(&format!("{core:>width$}{behind}", width = self.core));
        let missing = (begin + self.stride).saturating_sub(line.len());
        line.push_str(&" ".repeat(missing));
        // The gap before the next cell is its own.
    }
}

/// The columns that fit beside each other, each time with the baseline first.
fn groups(columns: &[Column], label_width: usize, width: usize) -> Vec<Vec<usize>> {
    let Some(first) = columns.first() else { return vec![Vec::new()] };
    let mut groups = vec![vec![0]];
    let start = label_width + first.stride;
    let mut used = start;
    for (place, column) in columns.iter().enumerate().skip(1) {
        let at = groups.len() - 1;
        if used + column.stride > width.max(60) + GAP && groups[at].len() > 1 {
            groups.push(vec![0, place]);
            used = start + column.stride;
        } else {
            groups[at].push(place);
            used += column.stride;
        }
    }
    groups
}

/// The head of a group, each name centred over its cells as far as its neighbours leave room.
fn head_line(heading: &str, label: usize, group: &[usize], columns: &[Column], names: &[String]) -> String {
    let mut line = format!("{heading}:");
    let mut at = label;
    for place in group {
        let head = format!("{}{COLUMN}", names[*place]);
        let centred = (at + GAP + columns[*place].core / 2).saturating_sub(head.len() / 2);
        let begin = centred.max(line.len() + 1);
        line.push_str(&" ".repeat(begin.saturating_sub(line.len())));
        line.push_str(&head);
        at += columns[*place].stride;
    }
    line
}

/// The values as they were measured, under the cells that they belong to.
fn absolute(
    tables: &[(usize, &analysis::Table)],
    shown: &[usize],
    group: &[usize],
    columns: &[Column],
    names: &[String],
    label_width: usize,
) -> Vec<String> {
    let unit = tables.first().map_or("", |(_, table)| table.metric.unit.as_str());
    let head = format!("{ABSOLUTE}{unit}:");
    let line = |label: &str, cell: &dyn Fn(usize) -> String| {
        let mut line = label.to_string();
        let mut end = label_width + GAP;
        for place in group.iter().copied() {
            end += columns[place].core;
            let text = cell(place);
            let gap = end.saturating_sub(line.len() + text.len()).max(1);
            line.push_str(&" ".repeat(gap));
            line.push_str(&text);
            end += columns[place].stride - columns[place].core;
        }
        line
    };
    let decimals = tables.iter().map(|(_, table)| crate::figures::decimals(table, 4)).max().unwrap_or(0);
    let mut lines = vec![line(&head, &|place| names[place].clone())];
    for (table, row) in tables.iter().flat_map(|(_, table)| table.rows.iter().map(move |row| (*table, row))) {
        let label = row_label(table, row);
        let cell = |place: usize| match shown.get(place).and_then(|place| row.cells.get(*place)) {
            Some(analysis::Cell { value: Ok(value), .. }) => format!("{value:.decimals$}"),
            _ => "n/a".into(),
        };
        lines.push(line(&format!("{label:>label_width$}"), &cell));
    }
    lines
}
