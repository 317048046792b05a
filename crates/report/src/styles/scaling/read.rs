//! Reads tables of the scaling style.

use super::GLOBAL_LOCK;
use crate::reader::{Check, Gather, Import, ImportError, Page, Workload, blank, cells, number};
use experiment::{Direction, Metric, Summary};
use std::collections::HashMap;

/// How much the mean of rates may exceed the rate of the mean: as much as runs that vary by a fifth make.
const MOST_EXCESS_PCT: f64 = 5.0;

/// Whether `page` holds a table in this style.
pub(super) fn knows(page: &Page<'_>) -> bool {
    page.lines().any(|(_, line)| columns(line).is_some())
}

/// The heads of a table in this style: axis, time, rate and, where there is one, the difference.
struct Columns<'a> {
    axis: &'a str,
    has_diff: bool,
    global_lock: bool,
}

fn columns(line: &str) -> Option<Columns<'_>> {
    let heads = cells(line)?;
    let (axis, time, rate, diff) = match heads[..] {
        [axis, time, rate] => (axis, time, rate, None),
        [axis, time, rate, diff] => (axis, time, rate, Some(diff)),
        _ => return None,
    };
    let known = time.ends_with("(s)") && rate.ends_with("/s") && diff.is_none_or(|diff| diff == "%diff (s)");
    known.then_some(Columns { axis, has_diff: diff.is_some(), global_lock: time == "Threaded (s)" })
}

/// `o global-lock: time (s) and rate (ops/s) by threads`
fn workload_line(line: &str) -> Option<(String, String)> {
    let (label, rest) = line.strip_prefix("o ")?.split_once(": time (")?;
    let (_, rest) = rest.split_once(") and ")?;
    let (rate, _) = rest.rsplit_once(") by ")?;
    let (_, unit) = rate.split_once(" (")?;
    Some((label.trim().into(), unit.into()))
}

/// Reads every table.
pub(super) fn read(page: &Page<'_>) -> Result<Import, ImportError> {
    let mut gather = Gather::new(page);
    let mut declared: Option<(String, String)> = None;
    let mut title = String::new();
    let mut open: Option<OpenTable<'_>> = None;
    let mut products: Vec<(String, f64)> = Vec::new();
    let mut tables: Vec<OpenTable<'_>> = Vec::new();
    for (at, line) in page.lines() {
        if let Some(columns) = columns(line) {
            tables.extend(open.take());
            let (label, unit) = declared.clone().unwrap_or_else(|| match columns.global_lock {
                true => (GLOBAL_LOCK.into(), "ops/s".into()),
                false => (page.stem(), "ops/s".into()),
            });
            let name = if columns.global_lock { GLOBAL_LOCK.to_string() } else { label.clone() };
            let axis = columns.axis.to_lowercase();
            let workload = gather.workload(&label, || Workload {
                label: label.clone(),
                name,
                heading: columns.axis.into(),
                axis,
                metrics: Vec::new(),
                rows: Vec::new(),
            });
            gather.metric(
                workload,
                Metric::new("time", "s", Direction::Lower, "time in seconds", "As printed."),
            );
            gather.metric(
                workload,
                Metric::new("rate", &unit, Direction::Higher, "rate", "As printed.").secondary(),
            );
            let variant = variant(&mut gather, &title);
            open = Some(OpenTable { workload, variant, has_diff: columns.has_diff, rows: Vec::new() });
            continue;
        }
        if let Some(words) = line.strip_prefix("o ") {
            declared = workload_line(line).or(declared);
            title = words.to_string();
            tables.extend(open.take());
            continue;
        }
        let Some(table) = open.as_mut() else { continue };
        match cells(line) {
            Some(row) => table.rows.push(read_row(page, at, &row, table.has_diff)?),
            None if line.trim_start().starts_with("+-") || table.rows.is_empty() => {}
            None => tables.extend(open.take()),
        }
    }
    tables.extend(open);
    for place in 0..tables.len() {
        let table = &tables[place];
        let first = tables.iter().find(|other| other.workload == table.workload).unwrap_or(table);
        let base_times: HashMap<&str, f64> = first
            .rows
            .iter()
            .filter_map(|row| Some((row.label, row.time.filter(|time| *time != 0.0)?)))
            .collect();
        let mut check = Check::of(format!("%diff (s) of {}", table.variant));
        for row in &table.rows {
            for (metric, value) in [("time", row.time), ("rate", row.rate)] {
                let Some(value) = value else { continue };
                let figure = Summary { value: Some(value), ..blank(row.label, &table.variant, metric) };
                gather.add(table.workload, row.line, figure)?;
            }
            if let (Some(time), Some(rate)) = (row.time, row.rate) {
                products.push((format!("{} at {}", table.variant, row.label), time * rate));
            }
            if let (Some(diff), Some(time), Some(base)) = (row.diff, row.time, base_times.get(row.label)) {
                check.compare(row.label, diff, (time - base) / base * 100.0);
            }
        }
        gather.check(check.sentence());
    }
    gather.check(work_sentence(&products));
    gather.finish("scaling")
}

struct OpenTable<'a> {
    workload: usize,
    variant: String,
    has_diff: bool,
    rows: Vec<PrintedRow<'a>>,
}

struct PrintedRow<'a> {
    line: usize,
    label: &'a str,
    time: Option<f64>,
    rate: Option<f64>,
    /// The difference without its percent sign.
    diff: Option<&'a str>,
}

fn read_row<'a>(
    page: &Page<'_>,
    at: usize,
    row: &[&'a str],
    has_diff: bool,
) -> Result<PrintedRow<'a>, ImportError> {
    let figure = |text: &str, what: &str| match text.starts_with("n/a") {
        true => Ok(None),
        false => number(text).map(Some).ok_or_else(|| page.expected(at, what)),
    };
    let wanted = if has_diff { 4 } else { 3 };
    match row {
        [label, time, rate, rest @ ..] if row.len() == wanted => {
            let diff = match rest.first() {
                Some(diff) if !diff.starts_with("n/a") => {
                    let figure =
                        diff.strip_suffix('%').map(str::trim).filter(|figure| number(figure).is_some());
                    Some(figure.ok_or_else(|| page.expected(at, "a percentage in the fourth column"))?)
                }
                _ => None,
            };
            Ok(PrintedRow {
                line: at,
                label,
                time: figure(time, "a time in seconds in the second column")?,
                rate: figure(rate, "a rate per second in the third column")?,
                diff,
            })
        }
        _ => Err(page.expected(at, format!("a row of {wanted} cells between `|`"))),
    }
}

/// The variant that a title names: `o NAME: words`, as kduel prints it; else what stands in quotes in it; else a
/// number.
fn variant(gather: &mut Gather<'_>, title: &str) -> String {
    let legal = |name: &str| experiment::Variant::new(name, Vec::new()).is_ok();
    if let Some((name, words)) = title.split_once(':').filter(|(name, _)| legal(name)) {
        return gather.variant_named(name, words.trim());
    }
    let quoted = title.split('"').nth(1).filter(|quoted| !quoted.trim().is_empty());
    match (quoted, title.is_empty() || title == "Benchmark results") {
        (Some(quoted), _) => gather.variant_called(quoted, title),
        (None, false) => gather.variant(title),
        (None, true) if gather.variants().is_empty() => gather.variant("base"),
        (None, true) => gather.variant(&format!("variant-{}", gather.variants().len() + 1)),
    }
}

/// Whether time × rate is the same amount of work in all rows. The mean of the rates of several runs is a little
/// more than the rate of their mean time, so a small excess is in order.
fn work_sentence(products: &[(String, f64)]) -> Option<String> {
    let mut sorted: Vec<f64> = products.iter().map(|(_, work)| *work).filter(|work| *work > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let least = *sorted.first()?;
    // The work is a round number; two digits are enough to find it.
    let scale = 10f64.powf(least.log10().floor() - 1.0);
    let total = (least / scale).round() * scale;
    let excess = |work: f64| (work / total - 1.0) * 100.0;
    let agree =
        products.iter().filter(|(_, work)| (-0.05..=MOST_EXCESS_PCT).contains(&excess(*work))).count();
    let (place, most) = products.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut text = format!(
        "rate x time: {agree} of {} rows come to {:.3e} operations or a little more, at most {:.2} % ({place}): the \
         mean of the rates of several runs lies above the rate of their mean time",
        products.len(),
        total,
        excess(*most),
    );
    if agree < products.len() {
        text += &format!("; {} DIFFER", products.len() - agree);
    }
    Some(text + ".")
}
