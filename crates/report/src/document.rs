//! What a style makes and text, markdown and html print: a report as a list of blocks.

use analysis::Verdict;

/// A part of a report.
#[derive(Debug, Clone)]
pub enum Block {
    /// A heading: `o Machine details`.
    Section(String),
    /// A sentence or more.
    Paragraph(String),
    /// A sentence that nobody may miss.
    Warning(String),
    /// A list.
    Items(Vec<String>),
    /// Names with what belongs to them: `base: 6.12, as is`.
    Pairs(Vec<(String, String)>),
    /// Lines as they stood in a source.
    Lines(Vec<String>),
    /// A table.
    Table(Table),
}

/// A table of figures.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What stands above it, by name: Test, Units.
    pub caption: Vec<(String, String)>,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// The heads of its columns.
    pub head: Vec<Head>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The lines of the text format, where the style has a layout of its own. They hold caption, title and notes.
    pub text: Option<Vec<String>>,
    /// What stands below it.
    pub notes: Vec<String>,
    /// Where plots follow: the place in `Analysis::tables` of the figures that they show.
    pub plot: Option<usize>,
}

/// The head of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its words.
    pub text: String,
    /// Whether its cells are figures, which stand to the right.
    pub figures: bool,
}

impl Head {
    /// A column of words.
    pub fn words(text: impl Into<String>) -> Head {
        Head { text: text.into(), figures: false }
    }

    /// A column of figures.
    pub fn figures(text: impl Into<String>) -> Head {
        Head { text: text.into(), figures: true }
    }
}

/// A row of a table.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// A cell per column.
    pub cells: Vec<Cell>,
    /// What has to be said about the row as a whole.
    pub remark: Option<String>,
}

impl Row {
    /// A row without a remark.
    pub fn of(cells: Vec<Cell>) -> Row {
        Row { cells, remark: None }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// What may be claimed about it: its colour.
    pub verdict: Option<Verdict>,
    /// A figure that helps where there is room for it: the absolute value.
    pub detail: Option<String>,
}

impl Cell {
    /// A cell with these words.
    pub fn of(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), verdict: None, detail: None }
    }

    /// The same cell with a verdict.
    pub fn judged(mut self, verdict: Verdict) -> Cell {
        self.verdict = Some(verdict);
        self
    }
}
