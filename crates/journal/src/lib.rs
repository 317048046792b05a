//! A run on disk: append, read, recover.
//!
//! A run is a directory with the experiment as it was given (`experiment.toml`) and a journal (`journal.jsonl`): one
//! record per line, each with a sequence number and a checksum. Records are only ever appended. What a crash or a
//! full disk can leave behind is a torn last line, which reading leaves out and says so; every other fault is an
//! error, because a number that nobody vouches for must not reach a report.

mod error;
mod finite;
mod home;
mod line;
mod listing;
mod read;
mod space;
mod writer;

pub use error::JournalError;
pub use home::Home;
pub use listing::RunInfo;
pub use read::Run;
pub use space::{check_space, free_bytes};
pub use writer::Journal;

/// The name of the journal inside the directory of a run.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// The name of the experiment inside the directory of a run.
pub const EXPERIMENT_FILE: &str = "experiment.toml";
