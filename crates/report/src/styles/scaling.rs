//! The style of the lock benchmark's tables: time for the fixed work and rate, one table per variant.

mod read;

use super::{Reasons, further, shown};
use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{bc, short, verdict_word, wrap};
use crate::reader::{Import, ImportError, Page, words_of};
use crate::style::Layout;
use crate::{Options, resolution};
use analysis::{Analysis, State, Verdict};
use experiment::{Direction, Metric, Point, counted};
use std::collections::HashMap;

/// What stands below a table with differences.
const BELOW: &str = "( Lower %diff is better )";
/// The workload whose own words head the columns.
const GLOBAL_LOCK: &str = "global-lock";

pub(crate) struct Scaling;

impl Layout for Scaling {
    fn name(&self) -> &'static str {
        "scaling"
    }

    fn summary(&self) -> &'static str {
        "time for fixed work and its rate, a table per variant, and the crossover"
    }

    fn is_usual(&self, analysis: &Analysis) -> bool {
        pairs(analysis).iter().any(|pair| pair.time.description.axis.name == "threads")
    }

    fn body(&self, analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, String> {
        let pairs = pairs(analysis);
        if pairs.is_empty() && !analysis.tables.is_empty() {
            return Err("none of its workloads yields both a time and a rate".into());
        }
        let mut blocks = Vec::new();
        for pair in &pairs {
            let (time, rate) = (&pair.time.metric, &pair.rate.metric);
            blocks.push(Block::Section(format!(
                "{}: {} ({}) and {} ({}) by {}",
                pair.time.workload,
                time.name,
                time.unit,
                rate.name,
                rate.unit,
                pair.time.description.axis.name
            )));
            let shown = shown(analysis, pair.time);
            for place in &shown {
                let mut table = variant_table(analysis, pair, *place, options);
                table.plot = (shown.last() == Some(place)).then_some(pair.place);
                blocks.push(Block::Table(table));
            }
            blocks.extend(crossovers(analysis, pair).into_iter().map(Block::Paragraph));
        }
        // A workload that is left out as a whole is named below.
        let told = |place: &usize| {
            let workload = &analysis.tables[*place].workload;
            let pair = pairs.iter().find(|pair| pair.time.workload == *workload);
            pair.is_none_or(|pair| [pair.place, pair.rate_place].contains(place))
        };
        let places: Vec<usize> = (0..analysis.tables.len()).filter(told).collect();
        blocks.extend(further(analysis, &places));
        let left_out: Vec<&str> = analysis
            .tables
            .iter()
            .map(|table| table.workload.as_str())
            .filter(|label| pairs.iter().all(|pair| pair.time.workload != *label))
            .collect();
        if !left_out.is_empty() {
            let mut labels = left_out;
            labels.dedup();
            blocks.push(Block::Paragraph(format!(
                "Left out, since the style scaling needs a time and a rate: {}.",
                labels.join(", ")
            )));
        }
        Ok(blocks)
    }

    fn knows(&self, page: &Page<'_>) -> bool {
        read::knows(page)
    }

    fn read(&self, page: &Page<'_>) -> Result<Import, ImportError> {
        read::read(page)
    }
}

/// The tables of one workload that belong together.
struct Pair<'a> {
    place: usize,
    rate_place: usize,
    time: &'a analysis::Table,
    rate: &'a analysis::Table,
    /// What makes seconds of the time's unit.
    to_seconds: f64,
    /// The rows of the rate, by point.
    rates: HashMap<&'a Point, &'a analysis::Row>,
}

impl<'a> Pair<'a> {
    fn rate_at(&self, point: &Point) -> Option<&'a analysis::Row> {
        self.rates.get(point).copied()
    }
}

fn pairs(analysis: &Analysis) -> Vec<Pair<'_>> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for (place, time) in analysis.tables.iter().enumerate() {
        let taken = pairs.iter().any(|pair| pair.time.workload == time.workload);
        let Some(to_seconds) = seconds(&time.metric).filter(|_| !taken) else { continue };
        let is_rate = |table: &analysis::Table| {
            table.workload == time.workload
                && table.metric.direction == Direction::Higher
                && table.metric.unit.ends_with("/s")
        };
        if let Some((rate_place, rate)) = analysis.tables.iter().enumerate().find(|(_, table)| is_rate(table))
        {
            let rates = rate.rows.iter().map(|row| (&row.point, row)).collect();
            pairs.push(Pair { place, rate_place, time, rate, to_seconds, rates });
        }
    }
    pairs
}

/// What makes seconds of a metric that is a time for some work.
fn seconds(metric: &Metric) -> Option<f64> {
    let factor = match metric.unit.as_str() {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    };
    (metric.direction == Direction::Lower && metric.name.starts_with("time")).then_some(factor)
}

fn variant_table(analysis: &Analysis, pair: &Pair<'_>, place: usize, options: &Options<'_>) -> Table {
    let name = pair.time.variants.get(place).map_or("", String::as_str);
    let is_baseline = place == 0;
    let heading = capital(&pair.time.description.axis.name);
    let (time_head, rate_head) = match pair.time.description.name.as_str() {
        GLOBAL_LOCK => ("Threaded (s)".to_string(), "Threaded/s".to_string()),
        _ => ("Time (s)".to_string(), short(&capital(&pair.rate.metric.unit), 20)),
    };
    let mut head = vec![Head::words(heading), Head::figures(time_head), Head::figures(rate_head)];
    if !is_baseline {
        head.push(Head::figures("%diff (s)"));
    }

    let mut reasons = Reasons::default();
    let all =
        pair.time.rows.iter().flat_map(|row| row.cells.iter().filter_map(|cell| cell.value.as_ref().ok()));
    let least = all.map(|value| value.abs() * pair.to_seconds).filter(|s| *s > 0.0).fold(1.0, f64::min);
    // Six decimals as in the original, and more where they would not show four digits.
    let decimals = 6.max(3 - least.log10().floor().max(-12.0) as i64) as usize;
    let mut rows = Vec::new();
    for row in &pair.time.rows {
        let Some(time) = row.cells.get(place) else { continue };
        let rate = pair.rate_at(&row.point).and_then(|row| row.cells.get(place));
        let mut cells = vec![Cell::of(short(&pair.time.description.row_label(&row.point), 30))];
        cells.push(Cell::of(match &time.value {
            Ok(value) => bc(value * pair.to_seconds, decimals),
            Err(missing) => format!("n/a {}", reasons.mark(&missing.why)),
        }));
        cells.push(Cell::of(match rate.map(|cell| &cell.value) {
            Some(Ok(value)) => format!("{value:.2}"),
            Some(Err(missing)) => format!("n/a {}", reasons.mark(&missing.why)),
            None => format!("n/a {}", reasons.mark("the rate has no such row")),
        }));
        if !is_baseline {
            let diff = match &time.change_pct {
                Ok(percent) => format!("{percent:.0}%").replace("-0%", "0%"),
                Err(missing) => {
                    let why = resolution::below(pair.time, row).unwrap_or_else(|| missing.why.clone());
                    format!("n/a {}", reasons.mark(&why))
                }
            };
            cells.push(Cell::of(diff).judged(verdict(pair, row, place)));
        }
        rows.push(Row::of(cells));
    }
    let words = analysis.header.imported.as_ref().and_then(|imported| words_of(&imported.notes, name));
    let knobs = analysis.header.experiment.variants.iter().find(|variant| variant.name == name);
    let title = match (words, knobs) {
        (Some(words), _) => format!("{name}: {words}"),
        (None, Some(variant)) if analysis.state != State::Imported => {
            format!("{name}: {}", variant.knobs_in_words())
        }
        _ => format!("{name}:"),
    };
    let mut table =
        Table { title: Some(title.clone()), head, rows, notes: reasons.notes(), ..Table::default() };
    table.text = Some(lines(&table, &title, !is_baseline, options.width));
    if !is_baseline {
        table.notes.insert(0, BELOW.into());
    }
    table
}

/// The table as it is posted: indented by two, the first rule under the head and none below.
fn lines(table: &Table, title: &str, has_diff: bool, width: usize) -> Vec<String> {
    // The widths of the original, which hold what a cell usually needs.
    let least = [9, 17, 14, 11];
    // The percentages of the original stand three columns from the border.
    let right = |column: usize, row: Option<&Row>| if column == 3 && row.is_some() { 3 } else { 1 };
    let text =
        |row: &Row, column: usize| row.cells.get(column).map_or(String::new(), |cell| cell.text.clone());
    let columns = table.head.len();
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| least.get(column).copied().unwrap_or(9).max(table.head[column].text.len() + 2))
        .collect();
    for row in &table.rows {
        for (column, width) in widths.iter_mut().enumerate() {
            *width = (*width).max(text(row, column).len() + 1 + right(column, Some(row)));
        }
    }
    let line = |row: Option<&Row>| {
        let cell = |column: usize| {
            let text = row.map_or_else(|| table.head[column].text.clone(), |row| text(row, column));
            let right = right(column, row);
            format!("{text:>width$}{:right$}|", "", width = widths[column] - right)
        };
        let cells: Vec<String> = (0..columns).map(cell).collect();
        format!("  |{}", cells.concat())
    };
    let mut lines = wrap(&format!("o {title}"), width, 2);
    lines.push(String::new());
    lines.push(line(None));
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    lines.push(format!("  +{}+", rules.join("+")));
    lines.extend(table.rows.iter().map(|row| line(Some(row))));
    lines.push(String::new());
    if has_diff {
        lines.push(format!("  {BELOW}"));
    }
    lines.extend(table.notes.iter().flat_map(|note| wrap(&format!("  {note}"), width, 6)));
    if has_diff || !table.notes.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The verdict on a row: that on the time, or on the rate where only that is judged.
fn verdict(pair: &Pair<'_>, row: &analysis::Row, place: usize) -> Verdict {
    let of = |row: &analysis::Row| row.cells.get(place).map_or(Verdict::Missing, |cell| cell.verdict);
    match of(row) {
        Verdict::Unjudged => pair.rate_at(&row.point).map_or(Verdict::Missing, of),
        verdict => verdict,
    }
}

/// A sentence per variant on where the sign turns. With imported figures it is the printed sign.
fn crossovers(analysis: &Analysis, pair: &Pair<'_>) -> Vec<String> {
    let axis = &pair.time.description.axis.name;
    let mut order: Vec<&analysis::Row> = pair.time.rows.iter().collect();
    if order.iter().all(|row| row.point.number().is_some()) {
        order.sort_by_key(|row| row.point.number());
    }
    let imported = analysis.state == State::Imported;
    let mut sentences = Vec::new();
    for place in shown(analysis, pair.time).into_iter().skip(1) {
        let name = pair.time.variants.get(place).map_or("", String::as_str);
        // The decided points, with whether the variant is the slower one there.
        let decided: Vec<(&Point, bool)> = order
            .iter()
            .filter_map(|row| {
                let slower = match (imported, verdict(pair, row, place)) {
                    (true, _) => {
                        let percent = row.cells.get(place)?.change_pct.as_ref().ok()?.round();
                        (percent != 0.0).then_some(percent > 0.0)?
                    }
                    (false, Verdict::Worse) => true,
                    (false, Verdict::Better) => false,
                    (false, _) => return None,
                };
                Some((&row.point, slower))
            })
            .collect();
        let word = |slower: bool| match (imported, slower) {
            (true, true) => "slower",
            (true, false) => "faster",
            (false, true) => verdict_word(Verdict::Worse),
            (false, false) => verdict_word(Verdict::Better),
        };
        let turns: Vec<String> = decided
            .windows(2)
            .filter(|pair| pair[0].1 != pair[1].1)
            .map(|pair| {
                let between: Vec<String> = order
                    .iter()
                    .map(|row| &row.point)
                    .skip_while(|point| *point != pair[0].0)
                    .skip(1)
                    .take_while(|point| *point != pair[1].0)
                    .map(Point::to_string)
                    .collect();
                let open = match between.is_empty() {
                    true => String::new(),
                    false => format!("; not decided in between: {}", between.join(", ")),
                };
                format!(
                    "between {} and {} {axis} (from {} to {}{open})",
                    pair[0].0,
                    pair[1].0,
                    word(pair[0].1),
                    word(pair[1].1)
                )
            })
            .collect();
        let tested = if imported { " By the printed signs; nothing was tested." } else { "" };
        sentences.push(match (turns.is_empty(), decided.first()) {
            (false, _) => format!("Crossover of {name}: {}.{tested}", turns.join(", and ")),
            (true, Some((_, slower))) => format!(
                "Crossover of {name}: none; the sign does not turn ({} at {} of {}).{tested}",
                word(*slower),
                decided.len(),
                counted(order.len(), "point")
            ),
            (true, None) => {
                format!("Crossover of {name}: none; no difference is decided at any point.{tested}")
            }
        });
    }
    sentences
}
