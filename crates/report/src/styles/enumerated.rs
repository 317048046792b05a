//! The style of the rwsem mail: the variants in a numbered list, each with its value.

use super::{further, shown};
use crate::document::{Block, Cell, Head, Row, Table};
use crate::figures::{signed_pct, thousands, verdict_word, wrap};
use crate::reader::{
    Gather, Import, ImportError, Page, Workload, blank, direction_of, is_named_after, number, words_of,
};
use crate::style::Layout;
use crate::{Options, resolution};
use analysis::{Analysis, State, Verdict};
use experiment::{Direction, Metric, Summary};

/// The metric of the CPU share of some functions with their callees.
const SHARE: &str = "cpu_share";

/// How many lines the name of a variant may take.
const NAME_LINES: usize = 5;

pub(crate) struct Enumerated;

impl Layout for Enumerated {
    fn name(&self) -> &'static str {
        "enumerated"
    }

    fn summary(&self) -> &'static str {
        "a numbered list of the variants with their values, for one or two points"
    }

    fn is_usual(&self, _: &Analysis) -> bool {
        false
    }

    fn body(&self, analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, String> {
        let mut blocks = Vec::new();
        let mut places = Vec::new();
        for (place, table) in super::tables(analysis, options) {
            places.push(place);
            if table.metric.name == SHARE {
                continue;
            }
            let share = analysis
                .tables
                .iter()
                .find(|other| other.metric.name == SHARE && other.workload == table.workload);
            let sentences: Vec<&String> = share.iter().map(|share| &share.metric.help).collect();
            for (order, row) in table.rows.iter().enumerate() {
                let mut list = list(analysis, table, row, options);
                // The sentence on the shares stands once, below the last row.
                if order + 1 == table.rows.len() {
                    let lines = list.text.get_or_insert_with(Vec::new);
                    for sentence in &sentences {
                        lines.extend(wrap(sentence, options.width, 0));
                        lines.push(String::new());
                        list.notes.push((*sentence).clone());
                    }
                }
                list.plot = (order > 0 && order + 1 == table.rows.len()).then_some(place);
                blocks.push(Block::Table(list));
            }
        }
        blocks.extend(further(analysis, &places));
        Ok(blocks)
    }

    fn knows(&self, page: &Page<'_>) -> bool {
        let mut lines = page.lines().map(|(_, line)| line).peekable();
        while let Some(line) = lines.next() {
            if item(line).is_some() && lines.peek().is_some_and(|next| value(next).is_some()) {
                return true;
            }
        }
        false
    }

    fn read(&self, page: &Page<'_>) -> Result<Import, ImportError> {
        read(page)
    }
}

/// The sentences above a list, in the words that the reader finds again.
fn intro(table: &analysis::Table, row: &analysis::Row) -> String {
    let metric = &table.metric;
    let unit = if metric.unit.is_empty() { "relative" } else { metric.unit.as_str() };
    format!(
        "The {} workload was run with {} {}. The {} ({unit}, {} is better) of the following variants was as follows:",
        table.workload,
        row.point,
        table.description.axis.name,
        metric.name,
        match metric.direction {
            Direction::Lower => "lower",
            Direction::Higher => "higher",
        }
    )
}

fn list(analysis: &Analysis, table: &analysis::Table, row: &analysis::Row, options: &Options<'_>) -> Table {
    let intro = intro(table, row);
    let mut lines = wrap(&intro, options.width, 0);
    lines.push(String::new());
    let mut rows = Vec::new();
    for (number, place) in shown(analysis, table).into_iter().enumerate() {
        let Some(cell) = row.cells.get(place) else { continue };
        let words =
            analysis.header.imported.as_ref().and_then(|imported| words_of(&imported.notes, &cell.variant));
        let name = words.filter(|words| is_named_after(&cell.variant, words)).unwrap_or(&cell.variant);
        let value = match &cell.value {
            Ok(value) => thousands(*value),
            Err(missing) => format!("n/a: {}", missing.why),
        };
        let told = told(analysis, table, row, cell);
        lines.extend(wrap(&format!("{}) {name}", number + 1), options.width, 3));
        let told_text = told.as_ref().map_or(String::new(), |told| format!("  ({told})"));
        lines.extend(wrap(&format!("    - {value}{told_text}"), options.width, 6));
        rows.push(Row::of(vec![
            Cell::of((number + 1).to_string()),
            Cell::of(name),
            Cell::of(value),
            Cell::of(told.unwrap_or_default()).judged(cell.verdict),
        ]));
    }
    lines.push(String::new());
    let head = vec![
        Head::figures("#"),
        Head::words("variant"),
        Head::figures(table.metric.unit.clone()),
        Head::words("change"),
    ];
    Table { title: Some(intro), head, rows, text: Some(lines), ..Table::default() }
}

/// What may be said of a cell beside its value.
fn told(
    analysis: &Analysis,
    table: &analysis::Table,
    row: &analysis::Row,
    cell: &analysis::Cell,
) -> Option<String> {
    // A source that has no more than the values gets nothing added.
    if cell.verdict == Verdict::Baseline || analysis.state == State::Imported {
        return None;
    }
    let change = match &cell.change_pct {
        Ok(percent) => signed_pct(*percent),
        Err(missing) => {
            format!("n/a: {}", resolution::below(table, row).unwrap_or_else(|| missing.why.clone()))
        }
    };
    Some(format!("{change}, {}", verdict_word(cell.verdict)))
}

/// `2) a name`
fn item(line: &str) -> Option<(usize, &str)> {
    let (number, name) = line.trim().split_once(')')?;
    let number = number.parse().ok().filter(|_| number.len() <= 4)?;
    (!name.trim().is_empty()).then(|| (number, name.trim()))
}

/// `- 8,092,486`, with whatever follows it.
fn value(line: &str) -> Option<Option<f64>> {
    let word = line.trim().strip_prefix("- ")?.split_whitespace().next()?;
    match word.trim_end_matches(':') {
        "n/a" => Some(None),
        word => number(&word.replace(',', "")).map(Some),
    }
}

/// A list that was read, with the prose around it.
struct Listed {
    intro: String,
    items: Vec<(usize, String, Option<f64>)>,
    after: String,
}

fn read(page: &Page<'_>) -> Result<Import, ImportError> {
    let mut gather = Gather::new(page);
    for list in lists(page)? {
        take(&mut gather, page, &list)?;
    }
    gather.finish("enumerated")
}

fn lists(page: &Page<'_>) -> Result<Vec<Listed>, ImportError> {
    let mut lists: Vec<Listed> = Vec::new();
    let mut prose: Vec<&str> = Vec::new();
    let mut pending: Option<(usize, String)> = None;
    for (at, line) in page.lines() {
        if let Some((line, name)) = pending.take() {
            match value(page.line(at)) {
                Some(value) => {
                    if let Some(list) = lists.last_mut() {
                        list.items.push((line, name, value));
                    }
                    continue;
                }
                // A long name goes on in the next line.
                None if at < line + NAME_LINES
                    && item(page.line(at)).is_none()
                    && !page.line(at).trim().is_empty() =>
                {
                    pending = Some((line, format!("{name} {}", page.line(at).trim())));
                    continue;
                }
                None => {
                    return Err(page.expected(at, "the value of the variant above, such as `- 8,092,486`"));
                }
            }
        }
        match item(line) {
            Some((number, name)) if number == 1 || prose.is_empty() && !lists.is_empty() => {
                if number == 1 {
                    let between = paragraphs(&prose);
                    prose.clear();
                    if let Some(list) = lists.last_mut() {
                        list.after = between.clone();
                    }
                    lists.push(Listed { intro: between, items: Vec::new(), after: String::new() });
                }
                pending = Some((at, name.to_string()));
            }
            _ if line.trim().is_empty() && prose.is_empty() => {}
            // The remark on the value above goes on.
            _ if prose.is_empty() && line.starts_with("      ") => {}
            _ => prose.push(line.trim()),
        }
    }
    if let Some(list) = lists.last_mut() {
        list.after = paragraphs(&prose);
    }
    match pending {
        Some((line, _)) => {
            Err(page.expected(line + 1, "the value of the variant above, such as `- 8,092,486`"))
        }
        None => Ok(lists),
    }
}

/// Lines of prose as one text, with a line break between paragraphs.
fn paragraphs(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        match line.is_empty() {
            true => text.push('\n'),
            false => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push(' ');
                }
                text.push_str(line);
            }
        }
    }
    text
}

fn take(gather: &mut Gather<'_>, page: &Page<'_>, list: &Listed) -> Result<(), ImportError> {
    // What is said of the list stands in the paragraph right above it.
    let intro = list.intro.trim().rsplit('\n').next().unwrap_or("");
    let (name, unit, declared) = metric_of(intro);
    let (row, axis) = point_of(intro);
    let label = workload_of(intro).unwrap_or_else(|| page.stem());
    let workload = gather.workload(&label, || Workload {
        label: label.clone(),
        name: label.clone(),
        heading: axis.clone(),
        axis: axis.clone(),
        metrics: Vec::new(),
        rows: Vec::new(),
    });
    let direction = declared.unwrap_or_else(|| direction_of(&name, &unit));
    let units_line = if unit.is_empty() { name.clone() } else { format!("{name} in {unit}") };
    gather.metric(workload, Metric::new(&name, &unit, direction, &units_line, "As printed by its source."));
    if declared.is_none() && !intro.is_empty() {
        gather.note(intro.to_string());
    }
    let mut variants = Vec::new();
    for (line, words, value) in &list.items {
        let variant = gather.variant(words);
        gather.add(workload, *line, Summary { value: *value, ..blank(&row, &variant, &name) })?;
        variants.push(variant);
    }
    let sentence = list.after.split('\n').find_map(|text| Some((text, shares_of(text, variants.len())?)));
    if let Some((sentence, shares)) = sentence {
        let metric = Metric::new(SHARE, "%", Direction::Lower, "CPU share in percent", sentence).secondary();
        gather.metric(workload, metric);
        let line = list.items.last().map_or(1, |(line, ..)| *line);
        for (variant, share) in variants.iter().zip(shares) {
            gather.add(workload, line, Summary { value: Some(share), ..blank(&row, variant, SHARE) })?;
        }
    }
    Ok(())
}

/// `The throughput (jobs/min)`, or `The time (s, lower is better)` as kduel writes it.
fn metric_of(intro: &str) -> (String, String, Option<Direction>) {
    let found = intro.rfind('(').and_then(|open| {
        let inside = intro.get(open + 1..)?.split(')').next()?;
        let name = intro.get(..open)?.split_whitespace().last()?;
        Some((name, inside))
    });
    let Some((name, inside)) = found else { return ("value".into(), String::new(), None) };
    let (unit, direction) = match inside.rsplit_once(", ") {
        Some((unit, "lower is better")) => (unit, Some(Direction::Lower)),
        Some((unit, "higher is better")) => (unit, Some(Direction::Higher)),
        _ => (inside, None),
    };
    (name.to_string(), if unit == "relative" { String::new() } else { unit.to_string() }, direction)
}

/// `with 7000 users`: the row and the axis.
fn point_of(intro: &str) -> (String, String) {
    let words: Vec<&str> = intro.split_whitespace().collect();
    // kduel writes names as well as numbers, always behind `was run` and up to the end of the sentence.
    let found = || {
        let (_, rest) = intro.split_once(" was run with ")?;
        rest.split_once(". ").map_or(rest, |(sentence, _)| sentence).rsplit_once(' ')
    };
    let counted =
        || words.windows(3).find(|w| w[0] == "with" && number(w[1]).is_some()).map(|w| (w[1], w[2]));
    let (row, axis) = found().or_else(counted).unwrap_or(("all", "case"));
    (row.to_string(), axis.trim_end_matches(['.', ',', ':']).to_string())
}

/// `the AIM7 shared_memory workload`
fn workload_of(intro: &str) -> Option<String> {
    let (before, _) = intro.split_once(" workload ")?;
    let begin = before.rfind("The ").or(before.rfind("the "))?;
    let label = before.get(begin + 4..)?.trim();
    (!label.is_empty()).then(|| label.to_string())
}

/// The shares in a sentence on CPU time that gives as many percentages as there are variants.
fn shares_of(sentence: &str, variants: usize) -> Option<Vec<f64>> {
    if !sentence.to_lowercase().contains("cpu") {
        return None;
    }
    let shares: Vec<f64> = sentence
        .split_whitespace()
        .filter_map(|word| number(word.trim_end_matches(['.', ',', ';']).strip_suffix('%')?))
        .collect();
    (shares.len() == variants && variants > 0).then_some(shares)
}
