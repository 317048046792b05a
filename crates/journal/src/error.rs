use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a run could not be written or read.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Nothing says where runs live.
    #[error("cannot tell where runs live: {0}; set KDUEL_HOME to a directory of your own")]
    NoHome(String),
    /// The system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `append to`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system or the quota is full. What was written before is whole.
    #[error(
        "no space is left for {}; what is there stays readable. Free some space on that file system, or set \
         KDUEL_HOME to another, and take the run up again with `kduel resume`",
        path.display()
    )]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Less space is free than a run is expected to take.
    #[error(
        "only {free_bytes} bytes are free for {}, and the run may take {wanted_bytes}; free some space there or \
         set KDUEL_HOME to another file system",
        path.display()
    )]
    LittleSpace {
        /// The directory that would hold the run.
        path: PathBuf,
        /// What is free, in bytes.
        free_bytes: u64,
        /// What was asked for, in bytes.
        wanted_bytes: u64,
    },
    /// A record that would not read back as it was: it holds NaN or infinity.
    #[error(
        "{what} is not a finite number, and a journal holds no others; record a missing value with its reason"
    )]
    NotFinite {
        /// Which number, in words.
        what: String,
    },
    /// A name that cannot be that of a directory of a run.
    #[error(
        "`{0}` cannot name a run: use letters, digits and any of `_ - + .`, not a dot in front, not `latest`"
    )]
    Name(String),
    /// The directory for a new run holds one already.
    #[error("{} is there already; name another directory for the run", path.display())]
    Exists {
        /// The file that is in the way.
        path: PathBuf,
    },
    /// No run is called so.
    #[error("there is no run `{run}` in {}; {hint}", runs.display())]
    Unknown {
        /// What was asked for.
        run: String,
        /// The directory of the runs.
        runs: PathBuf,
        /// What would be there.
        hint: String,
    },
    /// Several runs begin so.
    #[error("`{run}` may mean {}; give more of the name", names.join(" or "))]
    Ambiguous {
        /// What was asked for.
        run: String,
        /// The runs that begin with it.
        names: Vec<String>,
    },
    /// Another process writes this run.
    #[error("another kduel is writing {}; wait until it has ended, or stop it", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// The journal ends before its first record does.
    #[error("{} has no whole first record: the run was stopped as it began. Remove its directory and run again", path.display())]
    NoHeader {
        /// The journal.
        path: PathBuf,
    },
    /// A line that is not what was written.
    #[error(
        "{}, line {line}: {why}. The file was changed after it was written; restore it from a copy, or keep only \
         the lines before this one",
        path.display()
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A line that is as it was written, but means nothing to this build.
    #[error("{}, line {line}: {why}. It was probably written by another version of kduel; read it with that one", path.display())]
    Foreign {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What this build stumbled over.
        why: String,
    },
}

impl JournalError {
    /// The error of an action on a path, with a full disk told apart from the rest.
    pub(crate) fn of(action: &'static str, path: &Path, source: io::Error) -> JournalError {
        let full = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
        match source.raw_os_error() {
            Some(code) if full.contains(&code) => JournalError::DiskFull { path: path.into() },
            _ => JournalError::Io { action, path: path.into(), source },
        }
    }
}
