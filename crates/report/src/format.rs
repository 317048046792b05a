use crate::ReportError;
use std::fmt;

/// A report format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// ASCII for a terminal or a mail.
    Text,
    /// Pipe tables.
    Markdown,
    /// One self-contained page with plots.
    Html,
    /// One object with every cell; `docs/json.md` says what its fields mean.
    Json,
    /// A row per cell.
    Csv,
    /// A row per sample: the value of one block.
    CsvSamples,
    /// Go benchmark lines, which benchstat reads.
    Benchstat,
}

impl Format {
    const ALL: [Format; 7] = [
        Format::Text,
        Format::Markdown,
        Format::Html,
        Format::Json,
        Format::Csv,
        Format::CsvSamples,
        Format::Benchstat,
    ];

    /// Every format, in the order of the help.
    pub fn all() -> impl Iterator<Item = Format> {
        Format::ALL.into_iter()
    }

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Html => "html",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::CsvSamples => "csv-samples",
            Format::Benchstat => "benchstat",
        }
    }

    /// One line: what it is for.
    pub fn summary(self) -> &'static str {
        match self {
            Format::Text => "ASCII for a terminal or a mail",
            Format::Markdown => "pipe tables, for an issue or a README",
            Format::Html => "one self-contained page with plots",
            Format::Json => "one object with every cell, for programs",
            Format::Csv => "a row per cell",
            Format::CsvSamples => "a row per sample, for a statistics package",
            Format::Benchstat => "Go benchmark lines; try `benchstat -col variant FILE`",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    /// When there is none; the error names the nearest.
    pub fn parse(name: &str) -> Result<Format, ReportError> {
        Format::all().find(|format| format.name() == name).ok_or_else(|| ReportError::Format {
            name: name.into(),
            hint: experiment::did_you_mean(name, Format::ALL.map(Format::name)),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
