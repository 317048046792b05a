use crate::document::Block;
use crate::reader::{Import, ImportError, Page};
use crate::styles::{boxed, enumerated, normalized, scaling};
use crate::{Options, ReportError};
use analysis::Analysis;
use std::fmt;

/// The styles, in the order of `kduel list styles`, which is also the order in which they are asked whether they
/// know a text that is to be imported. A new one is its file and a line here.
static STYLES: &[&dyn Layout] =
    &[&normalized::Normalized, &scaling::Scaling, &boxed::Boxed, &enumerated::Enumerated];

/// What a style is made of: one file that lays an analysis out, and reads that layout back.
pub(crate) trait Layout: Sync {
    /// The name that users type.
    fn name(&self) -> &'static str;

    /// One line: what it shows, and whose mail it comes from.
    fn summary(&self) -> &'static str;

    /// Whether figures of this shape are usually posted in this style, when nothing else stands in the report.
    fn is_usual(&self, analysis: &Analysis) -> bool;

    /// The results, laid out; or why the analysis does not fit the style, as a clause.
    fn body(&self, analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, String>;

    /// Whether `page` holds a table in this style.
    fn knows(&self, page: &Page<'_>) -> bool;

    /// Reads every table of `page`.
    fn read(&self, page: &Page<'_>) -> Result<Import, ImportError>;
}

/// A report style.
#[derive(Clone, Copy)]
pub struct Style(&'static dyn Layout);

impl Style {
    /// Every style, in the order of `kduel list styles`.
    pub fn all() -> impl Iterator<Item = Style> {
        STYLES.iter().map(|layout| Style(*layout))
    }

    /// The style of this name.
    ///
    /// # Errors
    /// When there is none; the error names the nearest.
    pub fn parse(name: &str) -> Result<Style, ReportError> {
        Style::all().find(|style| style.name() == name).ok_or_else(|| ReportError::Style {
            name: name.into(),
            hint: experiment::did_you_mean(name, STYLES.iter().map(|layout| layout.name())),
        })
    }

    /// The style that a report takes when none is asked for: that of the imported figures; where one workload
    /// stands alone, the style in which its figures are usually posted; else normalized.
    pub fn of(analysis: &Analysis) -> Style {
        let imported = analysis.header.imported.as_ref();
        if let Some(Ok(style)) = imported.map(|imported| Style::parse(&imported.style)) {
            return style;
        }
        let alone = analysis.header.experiment.workloads.len() == 1;
        let usual = Style::all().find(|style| alone && style.0.is_usual(analysis));
        usual.unwrap_or(Style(&normalized::Normalized))
    }

    /// The name that users type.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// One line: what it shows.
    pub fn summary(self) -> &'static str {
        self.0.summary()
    }

    /// The results in this style.
    pub(crate) fn body(self, analysis: &Analysis, options: &Options<'_>) -> Result<Vec<Block>, ReportError> {
        self.0.body(analysis, options).map_err(|why| {
            let fits = Style::all().filter(|style| style.0.body(analysis, options).is_ok());
            let names: Vec<&str> = fits.map(Style::name).collect();
            ReportError::Unfit {
                style: self.name(),
                why,
                fits: if names.is_empty() { "none".into() } else { names.join(", ") },
            }
        })
    }

    /// Whether `page` is written in this style.
    pub(crate) fn knows(self, page: &Page<'_>) -> bool {
        self.0.knows(page)
    }

    /// Reads `page` as this style.
    pub(crate) fn read(self, page: &Page<'_>) -> Result<Import, ImportError> {
        self.0.read(page)
    }
}

impl PartialEq for Style {
    fn eq(&self, other: &Style) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Style {}

impl fmt::Debug for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Style").field(&self.name()).finish()
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
