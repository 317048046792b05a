use crate::{Format, Style, figures};
use analysis::Analysis;
use thiserror::Error;

/// How a report is wanted.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// The style; without one, that of the imported figures, else the one in which a run of this shape is usually
    /// posted (see [`Style::of`]). The formats json, csv and benchstat have no style.
    pub style: Option<Style>,
    /// The format.
    pub format: Format,
    /// Leave out the verdict marks after the cells of the normalized style.
    pub plain: bool,
    /// Put the interval of the ratio after each cell of the normalized style.
    pub intervals: bool,
    /// Show every metric; without it only those that are judged. The formats json, csv and benchstat hold all.
    pub all_metrics: bool,
    /// Colour the words of the verdicts in text.
    pub colour: bool,
    /// The longest line of text, in columns; at least 60 are taken.
    pub width: usize,
    /// Figures to set beside those of the run.
    pub beside: Option<&'a Analysis>,
    /// The experiment, packed, as `kduel reproduce` accepts it: the last line of the report.
    pub footer: Option<String>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            style: None,
            format: Format::Text,
            plain: false,
            intervals: false,
            all_metrics: false,
            colour: false,
            width: figures::WIDTH,
            beside: None,
            footer: None,
        }
    }
}

/// Why a report could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReportError {
    /// A style that kduel does not have.
    #[error("no style is called `{name}`; {hint}")]
    Style {
        /// The name that was given.
        name: String,
        /// The nearest, or all of them.
        hint: String,
    },
    /// A format that kduel does not have.
    #[error("no format is called `{name}`; {hint}")]
    Format {
        /// The name that was given.
        name: String,
        /// The nearest, or all of them.
        hint: String,
    },
    /// A style that this run does not fit.
    #[error("this run does not fit the style {style}: {why}; styles that fit: {fits}")]
    Unfit {
        /// The style that was asked for.
        style: &'static str,
        /// What it would need.
        why: String,
        /// The styles that fit, separated by commas.
        fits: String,
    },
    /// The report could not be put into JSON.
    #[error("the report could not be written as JSON: {0}")]
    Json(String),
}
