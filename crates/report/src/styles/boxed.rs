//! The style of the futex tables: figures in a box, with their standard deviation.

mod read;

use super::{Reasons, further, head_name, shown, tables as chosen_tables};
use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{short, wrap};
use crate::reader::{Import, ImportError, Page};
use crate::style::Layout;
use crate::{Options, resolution};
use analysis::{Analysis, State};
use experiment::{Direction, Known};

/// A longer name of a variant is shortened in the heads and given in full above the table.
const NAME: usize = 20;
/// A longer metric is cut in the heads.
const METRIC: usize = 16;

pub(crate) struct Boxed;

impl Layout for Boxed {
    fn name(&self) -> &'static str {
        "boxed"
    }

    fn summary(&self) -> &'static str {
        "value and standard deviation in a box; of two variants also the overhead"
    }

    fn is_usual(&self, analysis: &Analysis) -> bool {
        // One time per number of threads, as with futex-wake.
        let mut judged = analysis.tables.iter().filter(|table| table.metric.primary);
        let first = judged.next().filter(|_| judged.next().is_none());
        first.is_some_and(|table| {
            table.description.axis.name == "threads" && table.metric.direction == Direction::Lower
        })
    }

    fn body(&self, analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, String> {
        let mut blocks = Vec::new();
        let chosen = chosen_tables(analysis, options);
        let places: Vec<usize> = chosen.iter().map(|(place, _)| *place).collect();
        for (place, table) in chosen {
            let shown = shown(analysis, table);
            let title = title(table);
            let (forms, legend) = variant_heads(table, &shown);
            let made = tables(analysis, table, &shown, &forms, options.width);
            let last = made.len().saturating_sub(1);
            for (order, mut block) in made.into_iter().enumerate() {
                let mut lines = wrap(&format!("o {title}"), options.width, 2);
                // Above the table, since its reader needs the names before the columns.
                lines.extend(legend.iter().cloned());
                lines.extend(boxed(&block));
                lines.extend(block.notes.iter().flat_map(|note| wrap(note, options.width, 4)));
                lines.push(String::new());
                block.text = Some(lines);
                block.title = Some(title.clone());
                block.plot = (order == last).then_some(place);
                blocks.push(Block::Table(block));
            }
        }
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

/// `futex-wake: time (ms) by threads, lower is better, AMean`
fn title(table: &analysis::Table) -> String {
    let metric = &table.metric;
    format!(
        "{}: {} by {}, {} is better, {}",
        table.workload,
        match metric.unit.is_empty() {
            true => metric.name.clone(),
            false => format!("{} ({})", metric.name, metric.unit),
        },
        table.description.axis.name,
        match metric.direction {
            Direction::Lower => "lower",
            Direction::Higher => "higher",
        },
        metric.statistic.label()
    )
}

/// `time (ms)`, cut to what a head has room for.
fn metric_words(name: &str, unit: &str) -> String {
    let words = if unit.is_empty() { name.to_string() } else { format!("{name} ({unit})") };
    short(&words, METRIC)
}

/// How many decimals a table needs: four, fewer where figures are large, more where they are small.
fn decimals(table: &analysis::Table) -> usize {
    let values = table.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.value.as_ref().ok());
    let sizes: Vec<f64> = values.map(|value| value.abs()).filter(|size| *size > 0.0).collect();
    let most = sizes.iter().copied().fold(0.0, f64::max);
    let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    match most {
        most if most >= 1e7 => 0,
        most if most >= 1e5 => 2,
        _ if least < 0.01 => 3 + (-least.log10()).ceil().clamp(0.0, 9.0) as usize,
        _ => 4,
    }
}

fn figure(known: &Known<f64>, decimals: usize, reasons: &mut Reasons) -> String {
    match known {
        Ok(value) => format!("{value:.decimals$}"),
        Err(missing) => format!("n/a {}", reasons.mark(&missing.why)),
    }
}

fn label(table: &analysis::Table, row: &analysis::Row) -> String {
    short(&table.description.row_label(&row.point), 30)
}

/// The heads of the shown columns without what follows them, in forms that name ever less of the metric, and the
/// lines that give shortened names in full.
fn variant_heads(table: &analysis::Table, shown: &[usize]) -> ([Vec<String>; 3], Vec<String>) {
    let mut legend = Vec::new();
    let mut names = Vec::new();
    for (column, place) in shown.iter().enumerate() {
        let (name, whole) = head_name(table.variants.get(*place).map_or("", String::as_str), column, NAME);
        legend.extend(whole);
        names.push(name);
    }
    let all = |words: String| -> Vec<String> { names.iter().map(|name| format!("{name} {words}")).collect() };
    let whole = all(metric_words(&table.metric.name, &table.metric.unit));
    // The title names the metric all the same.
    ([whole, all(format!("({})", short(&table.metric.unit, METRIC))), names], legend)
}

/// The table in the form for its variants, with as much of the metric in the heads as there is room for. What is
/// still too wide is taken apart, each part with the baseline first.
fn tables(
    analysis: &Analysis,
    table: &analysis::Table,
    shown: &[usize],
    forms: &[Vec<String>; 3],
    width: usize,
) -> Vec<Table> {
    let fits = |made: &Table| boxed(made).first().is_none_or(|rule| rule.len() <= width);
    if let [base, other] = shown[..] {
        let mut made = forms.iter().filter_map(|heads| match &heads[..] {
            [a, b] => Some(paired(analysis, table, [base, other], [a, b])),
            _ => None,
        });
        if let Some(made) = made.find(fits) {
            return vec![made];
        }
    }
    let columns =
        |heads: &[String]| shown.iter().copied().zip(heads.to_vec()).collect::<Vec<(usize, String)>>();
    if let Some(made) = forms.iter().map(|heads| listed(table, &columns(heads))).find(fits) {
        return vec![made];
    }
    let all = columns(&forms[2]);
    let Some((base, others)) = all.split_first() else { return Vec::new() };
    let mut made = Vec::new();
    let mut group = vec![base.clone()];
    for column in others {
        group.push(column.clone());
        if group.len() > 2 && !fits(&listed(table, &group)) {
            group.pop();
            made.push(listed(table, &group));
            group = vec![base.clone(), column.clone()];
        }
    }
    made.push(listed(table, &group));
    made
}

/// The form for two variants: value and deviation in columns of their own, and the difference.
fn paired(
    analysis: &Analysis,
    table: &analysis::Table,
    [base, other]: [usize; 2],
    heads: [&String; 2],
) -> Table {
    let difference = match table.metric.direction {
        Direction::Lower => "overhead",
        Direction::Higher => "change",
    };
    let [base_head, other_head] = heads;
    let head = vec![
        Head::figures(table.description.axis.name.clone()),
        Head::words(base_head),
        Head::words("stddev"),
        Head::words(other_head),
        Head::words("stddev"),
        Head::figures(difference),
    ];
    let decimals = decimals(table);
    let mut reasons = Reasons::default();
    let mut rows = Vec::new();
    for row in &table.rows {
        let (Some(a), Some(b)) = (row.cells.get(base), row.cells.get(other)) else { continue };
        let percent = match (&b.change_pct, analysis.state == State::Imported, &b.improvement_pct) {
            (Ok(percent), ..) => format!("{percent:+.2}%"),
            // Of a percentage alone, only the improvement is known.
            (Err(_), true, Ok(percent)) if table.metric.direction == Direction::Higher => {
                format!("{percent:+.2}%")
            }
            (Err(missing), ..) => {
                let why = resolution::below(table, row).unwrap_or_else(|| missing.why.clone());
                format!("n/a {}", reasons.mark(&why))
            }
        };
        let cells = vec![
            Cell::of(label(table, row)),
            Cell::of(figure(&a.value, decimals, &mut reasons)),
            Cell::of(figure(&a.stddev, decimals, &mut reasons)),
            Cell::of(figure(&b.value, decimals, &mut reasons)),
            Cell::of(figure(&b.stddev, decimals, &mut reasons)),
            Cell::of(percent).judged(b.verdict),
        ];
        rows.push(Row::of(cells));
    }
    Table { head, rows, notes: reasons.notes(), ..Table::default() }
}

/// The form for any number of variants: value and deviation in one column per variant.
fn listed(table: &analysis::Table, group: &[(usize, String)]) -> Table {
    let mut head = vec![Head::figures(table.description.axis.name.clone())];
    head.extend(group.iter().map(|(_, head)| Head::words(format!("{head} [stddev]"))));
    let decimals = decimals(table);
    let mut reasons = Reasons::default();
    let mut rows = Vec::new();
    for row in &table.rows {
        let mut cells = vec![Cell::of(label(table, row))];
        for cell in group.iter().filter_map(|(place, _)| row.cells.get(*place)) {
            let value = figure(&cell.value, decimals, &mut reasons);
            let text = match &cell.stddev {
                Ok(stddev) => format!("{value} [{stddev:.decimals$}]"),
                Err(missing) if cell.value.is_ok() => format!("{value} [n/a] {}", reasons.mark(&missing.why)),
                Err(_) => value,
            };
            cells.push(Cell::of(text).judged(cell.verdict));
        }
        rows.push(Row::of(cells));
    }
    Table { head, rows, notes: reasons.notes(), ..Table::default() }
}

/// The table in its box. Figures of the first and last column stand to the right, the others to the left.
fn boxed(table: &Table) -> Vec<String> {
    let text =
        |row: &Row, column: usize| row.cells.get(column).map_or("", |cell| cell.text.as_str()).to_string();
    let widths: Vec<usize> = (0..table.head.len())
        .map(|column| {
            let cells = table.rows.iter().map(|row| text(row, column).len());
            cells.chain([table.head[column].text.len()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..widths.len())
            .map(|column| match table.head[column].figures {
                true => format!("{:>width$}", cell(column), width = widths[column]),
                false => format!("{:<width$}", cell(column), width = widths[column]),
            })
            .collect();
        format!("| {} |", cells.join(" | "))
    };
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let rule = format!("+{}+", rules.join("+"));
    let mut lines = vec![rule.clone(), line(&|column| table.head[column].text.clone()), rule.clone()];
    lines.extend(table.rows.iter().map(|row| line(&|column| text(row, column))));
    lines.push(rule);
    lines
}
