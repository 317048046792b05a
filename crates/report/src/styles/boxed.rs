//! The style of the futex tables: figures in a box, with their standard deviation.

use super::{Reasons, head_name, shown};
use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{short, wrap};
use crate::reader::{Check, Gather, Import, ImportError, Page, Workload, number};
use crate::style::Layout;
use crate::{Options, resolution};
use analysis::{Analysis, State};
use experiment::{Direction, Known, Metric, Point, Statistic, Summary};

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
        "value and standard deviation in a box; with two variants also the signed overhead"
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
        for (place, table) in analysis.tables.iter().enumerate() {
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
        Ok(blocks)
    }

    fn knows(&self, page: &Page<'_>) -> bool {
        page.lines().any(|(_, line)| cells(line).is_some_and(|cells| heads(&cells).is_some()))
    }

    fn read(&self, page: &Page<'_>) -> Result<Import, ImportError> {
        read(page)
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
    let columns = |heads: &[String]| shown.iter().copied().zip(heads.to_vec()).collect::<Vec<(usize, String)>>();
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

/// The words between the borders of a row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// What the heads of a table say.
struct Heads<'a> {
    axis: &'a str,
    /// The head of each variant's column, without `[stddev]`.
    variants: Vec<&'a str>,
    paired: bool,
}

fn heads<'a>(cells: &[&'a str]) -> Option<Heads<'a>> {
    if let [axis, base, "stddev", other, "stddev", "overhead" | "change"] = cells[..] {
        return Some(Heads { axis, variants: vec![base, other], paired: true });
    }
    let (&axis, columns) = cells.split_first()?;
    let variants: Option<Vec<&str>> = columns.iter().map(|head| head.strip_suffix(" [stddev]")).collect();
    variants.filter(|all| !all.is_empty()).map(|variants| Heads { axis, variants, paired: false })
}

/// `baseline time (ms)` is the variant `baseline` and the metric `time` in `ms`.
fn variant_head(head: &str) -> (&str, Option<(&str, &str)>) {
    let split = || {
        let (words, unit) = head.strip_suffix(')')?.rsplit_once(" (")?;
        let (variant, metric) = words.trim().rsplit_once(' ')?;
        Some((variant.trim(), Some((metric, unit))))
    };
    split().unwrap_or((head, None))
}

/// What a title line of kduel says of the table below it.
struct Title<'a> {
    label: &'a str,
    metric: &'a str,
    unit: &'a str,
    direction: Direction,
    statistic: Statistic,
}

fn title_line(line: &str) -> Option<Title<'_>> {
    let (label, rest) = line.strip_prefix("o ")?.split_once(": ")?;
    let mut parts = rest.rsplit(", ");
    let statistic = match parts.next()? {
        "AMean" => Statistic::Amean,
        "HMean" => Statistic::Hmean,
        "Median" => Statistic::Median,
        _ => return None,
    };
    let direction = match parts.next()? {
        "lower is better" => Direction::Lower,
        "higher is better" => Direction::Higher,
        _ => return None,
    };
    let (words, _) = rest.split_once(" by ")?;
    let (metric, unit) = match words.strip_suffix(')').and_then(|words| words.rsplit_once(" (")) {
        Some((metric, unit)) => (metric, unit),
        None => (words, ""),
    };
    Some(Title { label, metric, unit, direction, statistic })
}

fn read(page: &Page<'_>) -> Result<Import, ImportError> {
    let mut gather = Gather::new(page);
    let mut open: Option<OpenTable> = None;
    let mut title: Option<Title<'_>> = None;
    let mut legend: Vec<(&str, &str)> = Vec::new();
    let mut comment: Option<&str> = None;
    for (at, line) in page.lines() {
        let Some(row) = cells(line) else {
            if let Some(known) = title_line(line) {
                title = Some(known);
                legend.clear();
            } else if line.starts_with('~') {
                legend.extend(line.split_once(" = "));
            } else if let Some(text) = line.trim().strip_prefix('#') {
                comment = Some(text.trim());
            }
            if !line.trim().starts_with("+-") {
                open.take().into_iter().for_each(|table| table.close(&mut gather));
            }
            continue;
        };
        if let Some(heads) = heads(&row) {
            open.take().into_iter().for_each(|table| table.close(&mut gather));
            open = Some(OpenTable::begin(
                page,
                at,
                &mut gather,
                &heads,
                title.as_ref(),
                &legend,
                comment.take(),
            )?);
        } else if let Some(table) = open.as_mut() {
            table.row(page, at, &mut gather, &row)?;
        }
    }
    open.into_iter().for_each(|table| table.close(&mut gather));
    gather.finish("boxed")
}

struct OpenTable {
    workload: usize,
    metric: String,
    variants: Vec<String>,
    paired: bool,
    overhead: Check,
    /// Whether it has further columns of a table above, whose baseline it repeats.
    continues: bool,
}

impl OpenTable {
    fn begin(
        page: &Page<'_>,
        at: usize,
        gather: &mut Gather<'_>,
        heads: &Heads<'_>,
        title: Option<&Title<'_>>,
        legend: &[(&str, &str)],
        comment: Option<&str>,
    ) -> Result<OpenTable, ImportError> {
        let (mut name, mut unit) = title.map_or(("value", ""), |title| (title.metric, title.unit));
        let mut names = Vec::new();
        for head in &heads.variants {
            let (variant, metric) = match title {
                // A title names the metric, and the head repeats it unless it had to be shortened.
                Some(title) => {
                    let words = metric_words(title.metric, title.unit);
                    let unit = format!("({})", short(title.unit, METRIC));
                    let name = head.strip_suffix(&words).or(head.strip_suffix(&unit)).unwrap_or(head).trim();
                    let whole = legend.iter().find(|(tag, _)| name.ends_with(tag));
                    (whole.map_or(name, |(_, whole)| *whole), None)
                }
                None => variant_head(head),
            };
            if let Some((metric, its_unit)) = metric {
                (name, unit) = (metric, its_unit);
            }
            if variant.is_empty() {
                return Err(page.expected(at, "the name of a variant in the head of each column of values"));
            }
            names.push(variant);
        }
        let label = match title {
            Some(title) => title.label.to_string(),
            None => numbered(gather, &page.stem()),
        };
        if let Some(comment) = comment {
            gather.note(format!("{label}: {comment}"));
        }
        let continues = gather.has_workload(&label);
        let workload = gather.workload(&label, || Workload {
            label: label.clone(),
            name: if title.is_some() { label.clone() } else { page.stem() },
            heading: heads.axis.into(),
            axis: heads.axis.to_lowercase(),
            metrics: Vec::new(),
            rows: Vec::new(),
        });
        let direction = title.map(|title| title.direction).unwrap_or_else(|| direction_of(name, unit));
        let statistic = title.map_or(Statistic::Amean, |title| title.statistic);
        let units_line = match unit.is_empty() {
            true => name.to_string(),
            false => format!("{name} in {unit}"),
        };
        gather.metric(
            workload,
            Metric::new(name, unit, direction, &units_line, "As printed by its source.").by(statistic),
        );
        let variants: Vec<String> = names.iter().map(|name| gather.variant(name)).collect();
        let overhead = Check::of(format!(
            "{} of {label}",
            if direction == Direction::Lower { "overhead" } else { "change" }
        ));
        Ok(OpenTable { workload, metric: name.into(), variants, paired: heads.paired, overhead, continues })
    }

    fn row(
        &mut self,
        page: &Page<'_>,
        at: usize,
        gather: &mut Gather<'_>,
        row: &[&str],
    ) -> Result<(), ImportError> {
        let columns = if self.paired { 6 } else { 1 + self.variants.len() };
        if row.len() != columns {
            return Err(page.expected(at, format!("a row of {columns} cells between `|`")));
        }
        let printed: Vec<(&str, &str)> = match self.paired {
            true => vec![(row[1], row[2]), (row[3], row[4])],
            false => row[1..].iter().map(|cell| cell.split_once(" [").unwrap_or((cell, "n/a"))).collect(),
        };
        let figure = |text: &str| {
            let text = text.split(']').next().unwrap_or(text).trim();
            match text.starts_with("n/a") {
                true => Ok(None),
                false => number(text).map(Some).ok_or_else(|| {
                    page.expected(
                        at,
                        "figures such as `4.2410`, or `2.8360 [0.5168]` under a head with [stddev]",
                    )
                }),
            }
        };
        let mut values = Vec::new();
        for ((value, stddev), variant) in printed.iter().zip(&self.variants) {
            let (value, stddev) = (figure(value)?, figure(stddev)?);
            values.push(value);
            let summary = Summary {
                workload: String::new(),
                point: Point::new(row[0]),
                variant: variant.clone(),
                metric: self.metric.clone(),
                value,
                stddev,
                cv_pct: None,
                improvement_pct: None,
            };
            let is_baseline = Some(variant) == self.variants.first();
            if self.continues && is_baseline && gather.has(self.workload, &summary) {
                continue;
            }
            gather.add(self.workload, at, summary)?;
        }
        if let (true, [Some(base), Some(new)]) = (self.paired, &values[..]) {
            let printed = row[5].strip_suffix('%').unwrap_or(row[5]).trim();
            if !printed.starts_with("n/a") && *base != 0.0 {
                self.overhead.compare(&format!("at {}", row[0]), printed, (new - base) / base * 100.0);
            }
        }
        Ok(())
    }

    fn close(self, gather: &mut Gather<'_>) {
        gather.check(self.overhead.sentence());
    }
}

/// `futex-wake`, and `futex-wake-2` for the second table of a file.
fn numbered(gather: &Gather<'_>, stem: &str) -> String {
    let name = |n: usize| if n == 1 { stem.to_string() } else { format!("{stem}-{n}") };
    (1..).map(name).find(|name| !gather.has_workload(name)).unwrap_or_default()
}

/// Which way a metric is good whose source does not say: times and latencies are better when lower.
pub(super) fn direction_of(name: &str, unit: &str) -> Direction {
    let time = matches!(unit, "s" | "sec" | "ms" | "us" | "ns" | "seconds") || unit.ends_with("/op");
    let words = name.to_lowercase();
    match time || ["time", "latency", "delay"].iter().any(|word| words.contains(word)) {
        true => Direction::Lower,
        false => Direction::Higher,
    }
}
