//! Reads tables of the boxed style, in both forms.

use super::{METRIC, metric_words};
use crate::figures::short;
use crate::reader::{Check, Gather, Import, ImportError, Page, Workload, blank, cells, direction_of, number};
use experiment::{Direction, Metric, Statistic, Summary};

/// Whether `page` holds a table in this style.
pub(super) fn knows(page: &Page<'_>) -> bool {
    page.lines().any(|(_, line)| cells(line).is_some_and(|cells| heads(&cells).is_some()))
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

/// Reads every table.
pub(super) fn read(page: &Page<'_>) -> Result<Import, ImportError> {
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
            let summary = Summary { value, stddev, ..blank(row[0], variant, &self.metric) };
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
