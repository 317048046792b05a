//! One self-contained page: style sheet and plots are in it, and nothing is fetched from anywhere.

use crate::document::{Block, Row, Table};
use crate::figures::{JUDGED, verdict_word};
use crate::head::judged;
use crate::plot::{self, escaped};
use crate::styles::shown;
use crate::{Options, footer};
use analysis::{Analysis, State, Verdict};

const STYLE_SHEET: &str = include_str!("page.css");

/// The blocks as a page.
pub(crate) fn print(blocks: &[Block], analysis: &Analysis, options: &Options<'_>) -> String {
    let title = escaped(&title(analysis));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE_SHEET}</style>\n</head>\n<body>\n<main>\n\
         <header><h1>{title}</h1><p>{}</p></header>\n",
        escaped(&subtitle(analysis))
    );
    let sections = sections(blocks);
    // Who opens a page wants the outcome first; a mail begins with the machine.
    for section in sections.iter().filter(|section| section.title == "Summary") {
        out += &format!("<section>\n<h2>Summary</h2>\n{}", tiles(analysis));
        section.blocks.iter().for_each(|block| out += &self::block(block, analysis));
        out += "</section>\n";
    }
    let about = ["Machine details", "Kernel details"];
    out += "<div class=\"pair\">\n";
    sections
        .iter()
        .filter(|section| about.contains(&section.title))
        .for_each(|section| out += &whole(section, analysis));
    out += "</div>\n";
    for section in &sections {
        match section.title {
            "Summary" => {}
            title if about.contains(&title) => {}
            "Benchmark results" => {
                out += &results(section, analysis);
                out += &aa(analysis);
            }
            _ => out += &whole(section, analysis),
        }
    }
    out += "<footer><pre>";
    for line in footer::lines(analysis, options.footer.as_deref(), options.width) {
        out += &escaped(&line);
        out.push('\n');
    }
    out + "</pre></footer>\n</main>\n</body>\n</html>\n"
}

fn title(analysis: &Analysis) -> String {
    let experiment = &analysis.header.experiment;
    if let Some(title) = &experiment.title {
        return title.clone();
    }
    let joined = |names: Vec<&str>| match names.len() > 4 {
        true => format!("{} and {} more", names[..3].join(", "), names.len() - 3),
        false => names.join(", "),
    };
    let workloads = joined(experiment.workloads.iter().map(|entry| entry.label.as_str()).collect());
    let others = experiment.variants.iter().skip(1).map(|variant| variant.name.as_str()).collect();
    match (experiment.baseline(), joined(others)) {
        (None, _) => workloads,
        (Some(baseline), others) if others.is_empty() => format!("{workloads}: {}", baseline.name),
        (Some(baseline), others) => format!("{workloads}: {} against {others}", baseline.name),
    }
}

fn subtitle(analysis: &Analysis) -> String {
    let header = &analysis.header;
    let mut parts = Vec::new();
    if !header.run.is_empty() {
        parts.push(format!("run {}", header.run));
    }
    if header.at_unix_ms > 0 {
        parts.push(date(header.at_unix_ms));
    }
    match (&analysis.state, &header.imported) {
        (State::Imported, Some(imported)) => parts.push(format!("imported from {}", imported.source)),
        (State::Interrupted(_), _) => parts.push("interrupted".into()),
        (State::Unfinished, _) => parts.push("not finished".into()),
        _ => {}
    }
    parts.push(format!("kduel {}", header.version));
    parts.join(" \u{b7} ")
}

/// Date and time of day, UTC.
fn date(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (days, minute) = ((minutes / 1440) as i64, minutes % 1440);
    // Days since 1 March of the year 0, in eras of 400 years, so that the leap day ends a year.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{}-{month:02}-{day:02} {:02}:{:02} UTC", era * 400 + year + next, minute / 60, minute % 60)
}

/// A heading with what belongs to it.
struct Section<'a> {
    title: &'a str,
    blocks: Vec<&'a Block>,
}

fn sections(blocks: &[Block]) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut in_results = false;
    for block in blocks {
        match block {
            // The headings of a style stand inside the results.
            Block::Section(title) if !in_results || is_own(title) => {
                in_results = title == "Benchmark results";
                sections.push(Section { title, blocks: Vec::new() });
            }
            block => match sections.last_mut() {
                Some(section) => section.blocks.push(block),
                None => sections.push(Section { title: "", blocks: vec![block] }),
            },
        }
    }
    // The title of the experiment is the head of the page.
    sections.retain(|section| !section.blocks.is_empty() || section.title == "Benchmark results");
    sections
}

/// Whether a heading ends the results.
fn is_own(title: &str) -> bool {
    title == "Verdicts" || title.starts_with("Beside ")
}

fn whole(section: &Section<'_>, analysis: &Analysis) -> String {
    let mut out = format!("<section>\n<h2>{}</h2>\n", escaped(section.title));
    section.blocks.iter().for_each(|block| out += &self::block(block, analysis));
    out + "</section>\n"
}

fn results(section: &Section<'_>, analysis: &Analysis) -> String {
    let mut out = format!("<section class=\"results\">\n<h2>{}</h2>\n", escaped(section.title));
    let (mut open, mut plotted) = (false, false);
    for block in &section.blocks {
        // Plots end a card but for sentences, and a heading of the style begins one.
        let begins = match block {
            Block::Table(_) => plotted,
            Block::Section(_) => true,
            _ => false,
        };
        if let Block::Table(table) = block {
            plotted = table.plot.is_some();
        }
        if begins || !open {
            out += if open { "</div>\n<div class=\"card\">\n" } else { "<div class=\"card\">\n" };
            open = true;
        }
        out += &self::block(block, analysis);
    }
    if open {
        out += "</div>\n";
    }
    out + "</section>\n"
}

fn aa(analysis: &Analysis) -> String {
    let Some((picture, note)) = plot::pairs(analysis) else { return String::new() };
    let mut out = String::from("<section>\n<h2>A/A: the baseline against itself</h2>\n");
    out += &figure(
        &picture,
        "Where the machine can be trusted, all intervals reach over no change. Red: the test fired.",
    );
    out += &note.map_or(String::new(), |note| format!("<p class=\"note\">{}</p>\n", escaped(&note)));
    out + "</section>\n"
}

/// How many cells are what.
fn tiles(analysis: &Analysis) -> String {
    let tile = |verdict: Verdict| {
        let count = judged(analysis).filter(|(.., cell)| cell.verdict == verdict).count();
        (count > 0).then(|| {
            format!(
                "<li class=\"{}\"><b>{count}</b><span>{}</span></li>",
                class(verdict),
                verdict_word(verdict)
            )
        })
    };
    let tiles: String = JUDGED.into_iter().filter_map(tile).collect();
    if tiles.is_empty() { tiles } else { format!("<ul class=\"tiles\">{tiles}</ul>\n") }
}

fn class(verdict: Verdict) -> String {
    verdict_word(verdict).replace(' ', "-")
}

fn block(block: &Block, analysis: &Analysis) -> String {
    let list = |items: Vec<String>| format!("<ul>{}</ul>\n", items.concat());
    match block {
        Block::Section(text) => format!("<h3>{}</h3>\n", escaped(text)),
        Block::Paragraph(text) => format!("<p>{}</p>\n", escaped(text)),
        Block::Warning(text) => format!("<p class=\"warning\" role=\"alert\">{}</p>\n", escaped(text)),
        Block::Items(items) => list(items.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect()),
        Block::Pairs(pairs) => list(
            pairs
                .iter()
                .map(|(name, text)| format!("<li><b>{}</b>: {}</li>", escaped(name), escaped(text)))
                .collect(),
        ),
        Block::Lines(lines) => format!("<pre>{}</pre>\n", escaped(&lines.join("\n"))),
        Block::Table(table) => html_table(table) + &plots(table, analysis),
    }
}

fn html_table(table: &Table) -> String {
    let mut out = String::new();
    if let Some((_, test)) = table.caption.first() {
        let rest: Vec<String> = table.caption.iter().skip(1).map(|(_, value)| escaped(value)).collect();
        out += &format!("<h3>{}</h3>\n<p class=\"caption\">{}</p>\n", escaped(test), rest.join(" \u{b7} "));
    }
    if let Some(title) = &table.title {
        out += &format!("<p class=\"caption\">{}</p>\n", escaped(title));
    }
    let remarks = table.rows.iter().any(|row| row.remark.is_some());
    out += "<div class=\"scroll\"><table>\n<thead><tr>";
    for head in &table.head {
        let class = if head.figures { " class=\"figures\"" } else { "" };
        out += &format!("<th scope=\"col\"{class}>{}</th>", escaped(&head.text));
    }
    out += if remarks { "<th scope=\"col\">why</th>" } else { "" };
    out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        out += &html_row(table, row, remarks);
    }
    out += "</tbody>\n</table></div>\n";
    for note in &table.notes {
        out += &format!("<p class=\"note\">{}</p>\n", escaped(note));
    }
    out
}

fn html_row(table: &Table, row: &Row, remarks: bool) -> String {
    let mut out = String::from("<tr>");
    for (head, cell) in table.head.iter().zip(&row.cells) {
        let text = escaped(&cell.text);
        out += &match cell.verdict.map(|verdict| (class(verdict), verdict_word(verdict))) {
            Some((class, word)) if cell.text == word => {
                format!("<td class=\"verdict\"><span class=\"badge {class}\">{text}</span></td>")
            }
            Some((class, word)) => {
                let figures = if head.figures { " figures" } else { "" };
                let detail = cell
                    .detail
                    .as_deref()
                    .map_or(String::new(), |d| format!("<small>{}</small>", escaped(d)));
                format!("<td class=\"{class}{figures}\" title=\"{word}\">{text}{detail}</td>")
            }
            None if head.figures => format!("<td class=\"figures\">{text}</td>"),
            None => format!("<td>{text}</td>"),
        };
    }
    if remarks {
        out += &format!("<td class=\"why\">{}</td>", row.remark.as_deref().map_or(String::new(), escaped));
    }
    out + "</tr>\n"
}

fn figure(picture: &str, caption: &str) -> String {
    format!("<figure>\n{picture}<figcaption>{}</figcaption>\n</figure>\n", escaped(caption))
}

/// The plots that belong to a table.
fn plots(table: &Table, analysis: &Analysis) -> String {
    let Some(table) = table.plot.and_then(|place| analysis.tables.get(place)) else { return String::new() };
    let shown = shown(analysis, table);
    let mut out = String::new();
    // Figures that are known only relative to the baseline say the same in both pictures.
    let relative = table.metric.unit.is_empty() && analysis.state == State::Imported;
    if let Some(picture) = plot::values(table, &shown).filter(|_| !relative) {
        let bars = match analysis.state {
            State::Imported => "Bars: one standard deviation, where the source gives it.",
            _ => "Bars: the interval of the comparison, laid on the baseline's value.",
        };
        out += &figure(&picture, bars);
    }
    let margin = analysis.header.experiment.margin_pct;
    if let Some(picture) = plot::changes(table, &shown, margin) {
        let caption = match analysis.state {
            State::Imported => "The band is the margin; nothing was tested.",
            _ => "Filled: decided. Hollow: not decided, or not judged. The band is the margin.",
        };
        out += &figure(&picture, caption);
    }
    if !out.is_empty() {
        out = format!("<div class=\"plots\">\n{out}</div>\n");
    }
    if let Some(blocks) = plot::blocks(table, &shown) {
        let caption = blocks
            .left_out
            .unwrap_or_else(|| "Each dot is the value of one block, in the colours above.".into());
        out += &format!(
            "<details{}>\n<summary>Every block</summary>\n<div class=\"panels\">\n{}</div>\n\
             <p class=\"note\">{}</p>\n</details>\n",
            if table.metric.primary { " open" } else { "" },
            blocks.panels.concat(),
            escaped(&caption)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_796_000_000_000), "2026-11-30 00:53 UTC");
        assert!(date(u64::MAX).ends_with(" UTC"));
    }
}
