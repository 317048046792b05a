//! What the readers of all styles share: a page of numbered lines, the gathering of figures into a run, the
//! comparison of printed columns with recomputed ones.

mod check;
mod gather;
mod page;

pub(crate) use check::Check;
pub(crate) use gather::{Gather, NOTES, Workload, blank, is_named_after, words_of};
pub(crate) use page::{Page, cells, direction_of, number};

use crate::Style;
use experiment::{Header, Record};
use thiserror::Error;

/// Figures that somebody else measured, ready to be written as a run.
#[derive(Debug, Clone)]
pub struct Import {
    /// The header. The caller fills in `run`, `build` and `at_unix_ms`, which only it can know.
    pub header: Header,
    /// A summary per figure, in the order of the source, to be written after the header.
    pub records: Vec<Record>,
}

/// Why a text could not be imported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImportError {
    /// A line that breaks its table.
    #[error("{file}:{line}: {expected} is expected here, not `{found}`")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What would be right.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A text without any table that kduel reads.
    #[error(
        "{file}: no table in a style that kduel reads was found in its {lines} lines; one begins with {expected}"
    )]
    Unknown {
        /// The file.
        file: String,
        /// How many lines were read.
        lines: usize,
        /// What each style begins with.
        expected: String,
    },
    /// A table of a style that comes later.
    #[error(
        "{file}:{line}: this is a profile as `perf report` prints it; it belongs to the style `shares`, which \
         this version of kduel does not have yet"
    )]
    Later {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
    },
}

/// Reads published figures. The style is found from the text, which may hold prose around its tables and may be
/// quoted as in a mail. `source_name` is the name of the file.
///
/// # Errors
/// When no table is found, or a line breaks one; the error says which line and what was expected.
pub fn import(text: &str, source_name: &str) -> Result<Import, ImportError> {
    let page = Page::new(text, source_name);
    if let Some(style) = Style::all().find(|style| style.knows(&page)) {
        return style.read(&page);
    }
    if let Some((line, _)) = page.lines().find(|(_, line)| is_share(line)) {
        return Err(ImportError::Later { file: source_name.into(), line });
    }
    Err(ImportError::Unknown {
        file: source_name.into(),
        lines: page.lines().count(),
        expected: "`Case: NAME[pct imp](CV) ...` (normalized), `| Threads | Threaded (s) | Threaded/s |` (scaling), \
                   `| threads | NAME time (ms) [stddev] |` (boxed) or `1) NAME` with `- VALUE` below (enumerated)"
            .into(),
    })
}

/// Whether `line` is one of a perf report: a share, a command, an object, a kind and a symbol.
fn is_share(line: &str) -> bool {
    let mut words = line.trim_start_matches(['+', '-', ' ']).split_whitespace();
    let share = words.next().and_then(|word| word.strip_suffix('%')).and_then(number);
    share.is_some() && words.any(|word| matches!(word, "[k]" | "[.]"))
}
