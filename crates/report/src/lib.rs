//! Reports: an analysis in a style and a format, and published figures read back.
//!
//! A **style** says how results are laid out; it makes a document of blocks, which the formats text, markdown and
//! html print. The formats json, csv and benchstat come straight from the analysis and have no style. A style is one
//! file under `styles/` (its renderer and its reader) and one line in `style.rs`.

mod absent;
mod beside;
mod boots;
mod diff;
mod document;
mod figures;
mod footer;
mod format;
mod formats;
mod head;
mod machines;
mod options;
mod plot;
mod reader;
mod resolution;
mod style;
mod styles;
mod verdicts;
mod virtual_time;

pub use diff::{diff_json, diff_text};
pub use figures::{WIDTH, wrap};
pub use format::Format;
pub use options::{Options, ReportError};
pub use reader::{Import, ImportError, import};
pub use style::Style;

use analysis::{Analysis, State, Verdict};
use document::Block;
use std::borrow::Cow;

/// Renders `analysis` as a report. The text ends with a line break.
///
/// # Errors
/// When the style that was asked for does not fit the run; the error names those that fit.
pub fn render(analysis: &Analysis, options: &Options<'_>) -> Result<String, ReportError> {
    let options = &Options { width: options.width.max(60), ..options.clone() };
    match options.format {
        Format::Text => {
            let mut text = formats::text::print(&document(analysis, options)?, options.width, options.colour);
            text.push('\n');
            for line in footer::lines(analysis, options.footer.as_deref(), options.width) {
                text.push_str(&line);
                text.push('\n');
            }
            Ok(text)
        }
        Format::Markdown => Ok(formats::markdown::print(&document(analysis, options)?, analysis, options)),
        Format::Html => Ok(formats::html::print(&document(analysis, options)?, analysis, options)),
        Format::Json => formats::json::print(analysis, options),
        Format::Csv => Ok(formats::csv::cells(analysis)),
        Format::CsvSamples => Ok(formats::csv::samples(analysis)),
        Format::Benchstat => Ok(formats::benchstat::print(analysis)),
    }
}

/// The report as blocks, in the style that was asked for or that suits the run.
fn document(analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, ReportError> {
    let analysis = &*unjudged_if_imported(analysis);
    let style = options.style.unwrap_or_else(|| Style::of(analysis));
    let body = style.body(analysis, options)?;
    let mut blocks = head::blocks(analysis);
    blocks.push(Block::Section("Benchmark results".into()));
    match body.is_empty() {
        true => blocks.push(Block::Paragraph("There are no figures yet: no trial has yielded any.".into())),
        false => blocks.extend(body),
    }
    if let Some(other) = options.beside {
        blocks.extend(beside::blocks(analysis, other));
    }
    blocks.extend(verdicts::blocks(analysis, style, options));
    blocks.extend(virtual_time::blocks(analysis));
    Ok(blocks)
}

/// Imported figures were not tested, so a document gives them no verdict, not even that nothing is decided.
fn unjudged_if_imported(analysis: &Analysis) -> Cow<'_, Analysis> {
    if analysis.state != State::Imported {
        return Cow::Borrowed(analysis);
    }
    let mut analysis = analysis.clone();
    let rows = analysis.tables.iter_mut().flat_map(|table| &mut table.rows);
    for cell in rows.flat_map(|row| &mut row.cells).filter(|cell| cell.verdict == Verdict::Undecided) {
        cell.verdict = Verdict::Unjudged;
    }
    Cow::Owned(analysis)
}
