//! Markdown with pipe tables, for an issue, a merge request or a README.

use crate::document::{Block, Head, Row, Table};
use crate::figures::ascii;
use crate::{Options, footer};
use analysis::Analysis;

/// The blocks as markdown, with the footer below.
pub(crate) fn print(blocks: &[Block], analysis: &Analysis, options: &Options<'_>) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Section(text) => out += &format!("### {}\n", escaped(text)),
            Block::Paragraph(text) => out += &format!("{}\n", escaped(text)),
            Block::Warning(text) => out += &format!("> **{}**\n", escaped(text)),
            Block::Items(items) => items.iter().for_each(|item| out += &format!("- {}\n", escaped(item))),
            Block::Pairs(pairs) => pairs
                .iter()
                .for_each(|(name, text)| out += &format!("- **{}**: {}\n", escaped(name), escaped(text))),
            // Two spaces at the end of a line keep the line.
            Block::Lines(lines) => lines.iter().for_each(|line| out += &format!("{}  \n", escaped(line))),
            Block::Table(table) => out += &pipe_table(table),
        }
        out.push('\n');
    }
    out += "---\n\n```\n";
    for line in footer::lines(analysis, options.footer.as_deref(), options.width) {
        out += &format!("{line}\n");
    }
    out + "```\n"
}

fn pipe_table(table: &Table) -> String {
    let mut out = String::new();
    let caption: Vec<String> = table
        .caption
        .iter()
        .map(|(key, value)| format!("**{}**: {}", escaped(key), escaped(value)))
        .collect();
    if !caption.is_empty() {
        out += &format!("{}\n\n", caption.join(" | ").replace(" | ", " \\| "));
    }
    if let Some(title) = &table.title {
        out += &format!("**{}**\n\n", escaped(title));
    }
    let remarks = table.rows.iter().any(|row| row.remark.is_some());
    let mut heads: Vec<&Head> = table.head.iter().collect();
    let why = Head::words("why");
    if remarks {
        heads.push(&why);
    }
    let names: Vec<String> = heads.iter().map(|head| escaped(&head.text)).collect();
    let rules: Vec<&str> = heads.iter().map(|head| if head.figures { "---:" } else { "---" }).collect();
    out += &format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
    for row in &table.rows {
        out += &format!("| {} |\n", cells(row, table.head.len(), remarks).join(" | "));
    }
    for note in &table.notes {
        out += &format!("\n{}\n", escaped(note));
    }
    out
}

fn cells(row: &Row, columns: usize, remarks: bool) -> Vec<String> {
    let cell = |place: usize| match row.cells.get(place) {
        Some(cell) => match &cell.detail {
            Some(detail) => format!("{} ({})", escaped(&cell.text), escaped(detail)),
            None => escaped(&cell.text),
        },
        None => String::new(),
    };
    let mut cells: Vec<String> = (0..columns).map(cell).collect();
    if remarks {
        cells.push(row.remark.as_deref().map_or(String::new(), escaped));
    }
    cells
}

/// `text` as markdown that shows it as it is.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in ascii(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '[' | ']' | '*' | '_' | '`' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
