use crate::{JOURNAL_FILE, JournalError, line};
use experiment::{Ending, Header, Known, Missing, Record};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// One run of a listing, told from the first and last lines of its journal alone.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInfo {
    /// The name by which commands take it.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
    /// What was asked, or why that cannot be read.
    pub header: Known<Header>,
    /// How it ended; `None` while it runs, and after it was killed.
    pub ending: Option<Ending>,
    /// The size of its journal in bytes.
    pub bytes: u64,
}

/// An end record is far shorter than this.
const TAIL_BYTES: u64 = 4096;

pub(crate) fn look_at(name: &str, directory: &Path) -> RunInfo {
    let path = directory.join(JOURNAL_FILE);
    let bytes = path.metadata().map_or(0, |about| about.len());
    RunInfo {
        name: name.into(),
        path: directory.into(),
        header: header(&path),
        ending: ending(&path, bytes),
        bytes,
    }
}

fn header(path: &Path) -> Known<Header> {
    let mut line = Vec::new();
    File::open(path)
        .and_then(|file| BufReader::new(file).read_until(b'\n', &mut line))
        .map_err(|error| Missing::because(JournalError::of("read", path, error).to_string()))?;
    match line::decode(&line) {
        Ok((_, Record::Header(header))) => Ok(*header),
        _ => Err(Missing::because(format!("the first record of {} cannot be read", path.display()))),
    }
}

fn ending(path: &Path, bytes: u64) -> Option<Ending> {
    let mut tail = Vec::new();
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES))).ok()?;
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let last = tail.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    match line::decode(last) {
        Ok((_, Record::End { ending, .. })) => Some(ending),
        _ => None,
    }
}
