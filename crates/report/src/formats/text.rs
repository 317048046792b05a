//! Plain text, as it stands in a mail: ASCII, and no line longer than asked for.

use crate::document::{Block, Row, Table};
use crate::figures::{short, wrap};
use analysis::Verdict;

/// The blocks as lines of text.
pub(crate) fn print(blocks: &[Block], width: usize, colour: bool) -> String {
    let mut out = String::new();
    let mut put = |line: &str| {
        let line = line.trim_end();
        // One empty line is enough, and none at the top.
        if !line.is_empty() || !(out.is_empty() || out.ends_with("\n\n")) {
            out.push_str(line);
            out.push('\n');
        }
    };
    for block in blocks {
        match block {
            Block::Section(text) => {
                put("");
                wrap(&format!("o {text}"), width, 2).iter().for_each(|line| put(line));
            }
            Block::Paragraph(text) | Block::Warning(text) => {
                wrap(text, width, 0).iter().for_each(|line| put(line));
            }
            Block::Items(items) => {
                items
                    .iter()
                    .flat_map(|item| wrap(&format!("- {item}"), width, 2))
                    .for_each(|line| put(&line));
            }
            Block::Pairs(pairs) => pairs
                .iter()
                .flat_map(|(name, text)| wrap(&format!("{name}: {text}"), width, 2))
                .for_each(|line| put(&line)),
            Block::Lines(lines) => {
                lines.iter().flat_map(|line| wrap(line, width, 2)).for_each(|line| put(&line));
            }
            Block::Table(table) => match &table.text {
                Some(lines) => lines.iter().for_each(|line| put(&short(line, width))),
                None => columns(table, width, colour).iter().for_each(|line| put(line)),
            },
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The longest cell that is printed whole.
const CELL: usize = 32;

/// A table in columns without borders. A row that is too long goes on in an indented line.
fn columns(table: &Table, width: usize, colour: bool) -> Vec<String> {
    let heads: Vec<String> = table.head.iter().map(|head| short(&head.text, CELL)).collect();
    let mut widths: Vec<usize> = heads.iter().map(String::len).collect();
    let text_of =
        |row: &Row, place: usize| row.cells.get(place).map_or(String::new(), |cell| short(&cell.text, CELL));
    for row in &table.rows {
        for (place, width) in widths.iter_mut().enumerate() {
            *width = (*width).max(text_of(row, place).len());
        }
    }
    let padded = |text: String, place: usize| {
        let width = widths.get(place).copied().unwrap_or(0);
        match table.head.get(place).is_some_and(|head| head.figures) {
            true => format!("{text:>width$}"),
            false => format!("{text:<width$}"),
        }
    };
    let mut lines = Vec::new();
    lines.extend(table.title.iter().flat_map(|title| wrap(title, width, 2)));
    let head: Vec<String> = heads.into_iter().enumerate().map(|(place, text)| padded(text, place)).collect();
    lines.extend(fitted(head.join("  "), width));
    for row in &table.rows {
        let cells: Vec<String> = (0..widths.len()).map(|place| padded(text_of(row, place), place)).collect();
        let line = cells.join("  ");
        lines.extend(match colour && line.trim_end().len() <= width {
            true => vec![coloured(&cells, row).join("  ")],
            false => fitted(line, width),
        });
        lines.extend(row.remark.iter().flat_map(|remark| wrap(&format!("    {remark}"), width, 4)));
    }
    lines.extend(table.notes.iter().flat_map(|note| wrap(note, width, 4)));
    lines
}

fn fitted(line: String, width: usize) -> Vec<String> {
    match line.trim_end().len() <= width {
        true => vec![line],
        false => wrap(&line, width, 4),
    }
}

/// The cells with the colours of their verdicts.
fn coloured(cells: &[String], row: &Row) -> Vec<String> {
    let paint = |(place, cell): (usize, &String)| {
        let text = cell.trim();
        match row.cells.get(place).and_then(|cell| tone(cell.verdict?)) {
            Some(tone) if !text.is_empty() => cell.replacen(text, &format!("\x1b[{tone}m{text}\x1b[0m"), 1),
            _ => cell.clone(),
        }
    };
    cells.iter().enumerate().map(paint).collect()
}

/// The terminal's colour of a verdict.
fn tone(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Better => Some("32"),
        Verdict::Worse => Some("31"),
        Verdict::Undecided | Verdict::NotExercised => Some("33"),
        Verdict::Missing => Some("35"),
        Verdict::Baseline | Verdict::Same | Verdict::Unjudged => None,
    }
}
