//! Reads blocks of the normalized style: as kduel prints them, and squeezed to one space between columns, as mails
//! come out of archives.

use super::{ABSOLUTE, COLUMN, PERCENT};
use crate::reader::{Check, Gather, Import, ImportError, Page, Workload, blank, number};
use experiment::{Direction, Metric, Statistic, Summary};
use std::collections::{HashMap, HashSet};

/// A block with its caption, before anything in it is understood.
#[derive(Default)]
struct Block<'a> {
    caption: Vec<(usize, &'a str, &'a str)>,
    groups: Vec<Group<'a>>,
    /// `~1` and the name that it stands for.
    legend: Vec<(&'a str, &'a str)>,
    /// The unit of the absolute values, where the block has them.
    unit: Option<&'a str>,
}

/// Columns that stand under one head.
struct Group<'a> {
    line: usize,
    heading: &'a str,
    names: Vec<&'a str>,
    percent: bool,
    rows: Vec<PrintedRow<'a>>,
    /// The line, the label and a value per column.
    absolute: Vec<(usize, &'a str, Vec<Option<f64>>)>,
}

struct PrintedRow<'a> {
    line: usize,
    label: &'a str,
    cells: Vec<PrintedCell<'a>>,
}

/// The figures of a cell as they are printed; `n/a` where there is none.
#[derive(Clone, Copy)]
struct PrintedCell<'a> {
    ratio: &'a str,
    improvement: &'a str,
    cv: &'a str,
}

/// Whether `page` holds a block.
pub(super) fn knows(page: &Page<'_>) -> bool {
    page.lines()
        .any(|(_, line)| line.contains(COLUMN) || caption_line(line).is_some_and(|c| c.0 == "Interpretation"))
}

/// Reads every block.
pub(super) fn read(page: &Page<'_>) -> Result<Import, ImportError> {
    let mut gather = Gather::new(page);
    let mut check = Check::of("value over the baseline's, from the percent improvement");
    for block in blocks(page)? {
        take(page, &mut gather, &block, &mut check)?;
    }
    gather.check(check.sentence());
    gather.finish("normalized")
}

/// `Test : hackbench`, `Statistic     : AMean`.
fn caption_line(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    let known = ["Test", "Units", "Interpretation", "Statistic", "cmdline", "Why?"];
    // `Test:` also heads the first column of STREAM's table.
    (known.contains(&key) && !value.contains(COLUMN)).then_some((key, value.trim()))
}

fn blocks<'a>(page: &Page<'a>) -> Result<Vec<Block<'a>>, ImportError> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    // Whether the lines still belong to the last block, and whether they are its absolute values.
    let (mut open, mut absolute) = (false, false);
    for (at, line) in page.lines() {
        let line = line.trim();
        let rule = line.len() >= 10 && line.bytes().all(|byte| byte == b'=');
        if rule || line.is_empty() {
            // Below an empty line stands prose, unless the table has not begun.
            let begun = |block: &Block<'_>| block.groups.last().is_some_and(|group| !group.rows.is_empty());
            open &= rule || !blocks.last().is_some_and(begun);
            continue;
        }
        let is_head = line.contains(COLUMN);
        if is_head && !open {
            return Err(page.expected(at, "a line `Test : NAME` above the head of the table"));
        }
        let caption = caption_line(line);
        if let Some(("Test", _)) = caption {
            blocks.push(Block::default());
            (open, absolute) = (true, false);
        }
        let Some(block) = blocks.last_mut().filter(|_| open) else { continue };
        if let Some((key, value)) = caption {
            block.caption.push((at, key, value));
            continue;
        }
        let again = |first: &Group<'_>| first.percent && line.starts_with(&format!("{}:", first.heading));
        if is_head || (line.ends_with(PERCENT) && block.groups.first().is_none_or(again)) {
            block.groups.push(head(page, at, line)?);
            absolute = false;
            continue;
        }
        let Some(group) = block.groups.last_mut() else { continue };
        if line.starts_with("o ") || line.starts_with("-- ") {
            open = false;
        } else if let Some(unit) = line.strip_prefix(ABSOLUTE).and_then(|rest| rest.split_once(':')) {
            block.unit = Some(unit.0);
            absolute = true;
        } else if line.starts_with('~') {
            block.legend.extend(line.split_once(" = "));
        } else if line.starts_with('(') {
            // A note; its further lines are taken for rows unless nothing may follow it.
            open = false;
        } else if absolute {
            group.absolute.extend(absolute_row(line, group.names.len()).map(|(label, all)| (at, label, all)));
        } else {
            group.rows.push(row(page, at, line, group)?);
        }
    }
    Ok(blocks)
}

/// `Case: tip[pct imp](CV) patched[pct imp](CV)`, or `Benchmarks: %diff`.
fn head<'a>(page: &Page<'a>, at: usize, line: &'a str) -> Result<Group<'a>, ImportError> {
    let percent = !line.contains(COLUMN);
    let separator = if percent { PERCENT } else { COLUMN };
    let (heading, rest) = line
        .split_once(':')
        .ok_or_else(|| page.expected(at, "the head of the first column with a colon, such as `Case:`"))?;
    let mut names: Vec<&str> = rest.split(separator).map(str::trim).collect();
    let after = names.pop();
    if after.is_some_and(|after| !after.is_empty()) || (!percent && names.iter().any(|name| name.is_empty()))
    {
        return Err(page.expected(at, format!("the name of a variant before each `{separator}`")));
    }
    Ok(Group { line: at, heading: heading.trim(), names, percent, rows: Vec::new(), absolute: Vec::new() })
}

fn row<'a>(
    page: &Page<'a>,
    at: usize,
    line: &'a str,
    group: &Group<'_>,
) -> Result<PrintedRow<'a>, ImportError> {
    let parsed = if group.percent { percent_row(line, group.names.len()) } else { ratio_row(line) };
    match parsed.filter(|row: &(&str, Vec<PrintedCell<'_>>)| row.1.len() == group.names.len()) {
        Some((label, cells)) => Ok(PrintedRow { line: at, label, cells }),
        None if group.percent => Err(page.expected(at, "a row such as `ycsb-mongodb -0.45%`")),
        None => Err(page.expected(
            at,
            format!(
                "a label and {} such as `1.03 [ -3.20]( 8.80)`",
                experiment::counted(group.names.len(), "cell")
            ),
        )),
    }
}

/// A figure, or `n/a`.
fn is_figure(text: &str) -> bool {
    text == "n/a" || number(text).is_some()
}

fn ratio_row(line: &str) -> Option<(&str, Vec<PrintedCell<'_>>)> {
    let mut label = None;
    let mut cells = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        let before = before.trim_end();
        let (head, ratio) = before.rsplit_once(char::is_whitespace).unwrap_or(("", before));
        let (improvement, after) = after.split_once(']')?;
        let (cv, after) = after.trim_start().strip_prefix('(')?.split_once(')')?;
        let cell = PrintedCell { ratio, improvement: improvement.trim(), cv: cv.trim() };
        if ![cell.ratio, cell.improvement, cell.cv].into_iter().all(is_figure) {
            return None;
        }
        label = label.or(Some(head.trim()));
        cells.push(cell);
        rest = after;
    }
    Some((label?, cells))
}

fn percent_row(line: &str, columns: usize) -> Option<(&str, Vec<PrintedCell<'_>>)> {
    let mut rest = line;
    let mut cells = Vec::new();
    while cells.len() < columns {
        let (before, word) = rest.rsplit_once(char::is_whitespace)?;
        rest = before.trim_end();
        let figure = word.strip_suffix('%').filter(|figure| number(figure).is_some());
        match figure.or((word == "n/a").then_some(word)) {
            Some(improvement) => cells.push(PrintedCell { ratio: "n/a", improvement, cv: "n/a" }),
            // Behind a figure may stand its mark and the number of a note.
            None if word.len() == 1 || word.starts_with('(') => {}
            None => return None,
        }
    }
    cells.reverse();
    Some((rest, cells))
}

fn absolute_row(line: &str, columns: usize) -> Option<(&str, Vec<Option<f64>>)> {
    let mut rest = line;
    let mut values = Vec::new();
    while values.len() < columns {
        let (before, word) = rest.rsplit_once(char::is_whitespace)?;
        rest = before.trim_end();
        values.push(if word == "n/a" { None } else { Some(number(word)?) });
    }
    values.reverse();
    Some((rest, values))
}

/// Understands a block and takes its figures.
fn take(
    page: &Page<'_>,
    gather: &mut Gather<'_>,
    block: &Block<'_>,
    check: &mut Check,
) -> Result<(), ImportError> {
    let Some(first) = block.groups.first() else {
        if caption(block, "Interpretation").is_none() {
            // A line of prose that begins like a block.
            return Ok(());
        }
        let line = block.caption.last().map_or(1, |(line, ..)| line + 1);
        return Err(page.expected(line, format!("the head of a table, such as `Case: NAME{COLUMN}`")));
    };
    let metric = metric(page, block, first)?;
    let test = caption(block, "Test").map_or("", |(_, test)| test);
    let place = gather.workload(test, || Workload {
        label: test.into(),
        name: test.into(),
        heading: first.heading.into(),
        axis: first.heading.trim_start_matches('#').to_lowercase(),
        metrics: Vec::new(),
        rows: Vec::new(),
    });
    for key in ["cmdline", "Why?"] {
        if let Some((_, value)) = caption(block, key) {
            gather.note(format!("{test} {key}: {value}"));
        }
    }
    gather.metric(place, metric.clone());
    let mut seen: HashSet<&str> = HashSet::new();
    for (order, group) in block.groups.iter().enumerate() {
        let variants = variants(gather, block, group);
        let absolute: HashMap<&str, &Vec<Option<f64>>> =
            group.absolute.iter().map(|(_, label, values)| (*label, values)).collect();
        for row in &group.rows {
            for (column, (cell, variant)) in row.cells.iter().zip(&variants).enumerate() {
                // Further groups of columns repeat the baseline.
                if order > 0 && column == 0 && !group.percent && seen.contains(row.label) {
                    continue;
                }
                compare(check, &format!("{test} {} {variant}", row.label), cell, metric.direction);
                let value = match block.unit {
                    None => number(cell.ratio),
                    Some(_) => absolute.get(row.label).and_then(|values| *values.get(column)?),
                };
                let summary = Summary {
                    value,
                    cv_pct: number(cell.cv),
                    improvement_pct: number(cell.improvement),
                    ..blank(row.label, variant, &metric.name)
                };
                gather.add(place, row.line, summary)?;
            }
            seen.insert(row.label);
        }
    }
    Ok(())
}

fn caption<'a>(block: &Block<'a>, wanted: &str) -> Option<(usize, &'a str)> {
    let found = block.caption.iter().find(|(_, key, _)| *key == wanted);
    found.map(|(line, _, value)| (*line, *value))
}

/// The variants of a group. A single column of percentages compares the second variant with the first.
fn variants(gather: &mut Gather<'_>, block: &Block<'_>, group: &Group<'_>) -> Vec<String> {
    if group.percent && gather.variants().is_empty() {
        gather.variant("base");
    }
    let whole = |name: &str| {
        let legend = block.legend.iter().find(|(tag, _)| name.ends_with(tag));
        legend.map_or(name, |(_, whole)| *whole).to_string()
    };
    let mut names = Vec::new();
    for name in &group.names {
        let name = match (name.is_empty(), gather.variants()) {
            (false, _) => whole(name),
            (true, [_, second, ..]) => second.clone(),
            (true, _) => "new".into(),
        };
        names.push(gather.variant(&name));
    }
    names
}

fn metric(page: &Page<'_>, block: &Block<'_>, group: &Group<'_>) -> Result<Metric, ImportError> {
    let (_, units) = caption(block, "Units")
        .ok_or_else(|| page.expected(group.line, "a line `Units : ...` above the head of the table"))?;
    let (line, better) = caption(block, "Interpretation").ok_or_else(|| {
        page.expected(group.line, "a line `Interpretation: Lower is better` above the head")
    })?;
    let direction = match better.split_whitespace().next() {
        Some("Lower") => Direction::Lower,
        Some("Higher") => Direction::Higher,
        _ => return Err(page.expected(line, "`Lower is better` or `Higher is better`")),
    };
    let statistic = match caption(block, "Statistic") {
        None | Some((_, "AMean" | "Mean")) => Statistic::Amean,
        Some((_, "HMean")) => Statistic::Hmean,
        Some((_, "Median")) => Statistic::Median,
        Some((line, _)) => return Err(page.expected(line, "AMean, HMean or Median")),
    };
    let units = units.strip_prefix("Normalized ").unwrap_or(units);
    let name = match units {
        "time in seconds" => "time",
        "throughput" | "Throughput" | "Througput" | "%diff in throughput reported" => "throughput",
        "Bandwidth, MB/s" => "bandwidth",
        "Requests per second" => "requests",
        "99th percentile latency in us" => "latency_p99",
        _ => units,
    };
    let unit = block.unit.unwrap_or("");
    let help = match block.unit {
        Some(_) => "As measured by its source.",
        None => "As printed by its source: relative to the baseline.",
    };
    Ok(Metric::new(name, unit, direction, units, help).by(statistic))
}

/// The printed ratio must be one that the printed percentage can have come from.
fn compare(check: &mut Check, place: &str, cell: &PrintedCell<'_>, direction: Direction) {
    let (Some(ratio), Some(improvement)) = (number(cell.ratio), number(cell.improvement)) else { return };
    let change = match direction {
        Direction::Lower => -improvement,
        Direction::Higher => improvement,
    };
    let recomputed = 1.0 + change / 100.0;
    // Half a unit of the ratio's last digit, and half a unit of the percentage's.
    match (ratio - recomputed).abs() <= 0.005 + 0.00005 + 1e-9 {
        true => check.agreed(),
        false => check.disagreed(format!("{place} printed {}, recomputed {recomputed:.2}", cell.ratio)),
    }
}
