use crate::line::{self, Fault};
use crate::{JOURNAL_FILE, JournalError};
use experiment::{Header, Record};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A run as its journal tells it: finished, interrupted or still growing.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What was asked, with what was accepted when the run was resumed.
    pub header: Header,
    /// Everything after the header, in the order in which it was written, each trial once.
    pub records: Vec<Record>,
    /// What reading it showed: a torn tail, a trial that was there twice. One sentence each.
    pub notices: Vec<String>,
}

/// What a journal was found to be.
pub(crate) struct Scan {
    /// Whole records.
    pub records: u64,
    /// The bytes of the whole records.
    pub whole_bytes: u64,
    /// The bytes behind them, of a record that never became whole.
    pub torn_bytes: u64,
}

/// Reads the journal at `path` line by line.
pub(crate) fn scan(path: &Path, mut each: impl FnMut(Record)) -> Result<Scan, JournalError> {
    let reading = |error| JournalError::of("read", path, error);
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(reading)?);
    let mut found = Scan { records: 0, whole_bytes: 0, torn_bytes: 0 };
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let length = file.read_until(b'\n', &mut bytes).map_err(reading)? as u64;
        if length == 0 {
            break;
        }
        let seq = found.records + 1;
        let Some(line) = bytes.strip_suffix(b"\n") else {
            found.torn_bytes = length;
            break;
        };
        let why = match line::decode(line) {
            Ok((number, record)) if number == seq => {
                each(record);
                found.records = seq;
                found.whole_bytes += length;
                continue;
            }
            Ok((number, _)) => format!("it has the number {number} where {seq} is due"),
            Err(Fault::Damaged(why)) => why,
            Err(Fault::Foreign(why)) => {
                return Err(JournalError::Foreign { path: path.into(), line: seq, why });
            }
        };
        // When the machine dies, a last line can be left with its newline and without its middle. It was never
        // synced, so it is as good as torn.
        if !file.fill_buf().map_err(reading)?.is_empty() {
            return Err(JournalError::Damaged { path: path.into(), line: seq, why });
        }
        found.torn_bytes = length;
    }
    if found.records == 0 {
        return Err(JournalError::NoHeader { path: path.into() });
    }
    Ok(found)
}

/// Reads the run in `directory`.
pub(crate) fn read_directory(directory: &Path) -> Result<Run, JournalError> {
    let path = directory.join(JOURNAL_FILE);
    let mut records = Vec::new();
    let found = scan(&path, |record| records.push(record))?;
    let mut notices = Vec::new();
    if found.torn_bytes > 0 {
        notices.push(format!("the last record was torn and has been dropped ({} bytes)", found.torn_bytes));
    }
    let mut records = records.into_iter();
    let Some(Record::Header(mut header)) = records.next() else {
        let why = "the first record is not a header".into();
        return Err(JournalError::Foreign { path, line: 1, why });
    };
    let (records, twice) = each_trial_once(records.collect());
    notices.extend(twice);
    for record in &records {
        if let Record::Resumed { accepted, .. } = record {
            header.experiment.accept(accepted);
        }
    }
    Ok(Run { header: *header, records, notices })
}

/// Drops trials that are there already, and says so.
fn each_trial_once(records: Vec<Record>) -> (Vec<Record>, Option<String>) {
    let mut seen = HashSet::new();
    let fresh: Vec<bool> = records
        .iter()
        .map(|record| match record {
            Record::Trial(trial) => seen.insert(trial.key()),
            _ => true,
        })
        .collect();
    let twice: Vec<String> = records
        .iter()
        .zip(&fresh)
        .filter_map(|(record, fresh)| match record {
            Record::Trial(trial) if !fresh => {
                Some(format!("{} {} {} block {}", trial.workload, trial.point, trial.variant, trial.block))
            }
            _ => None,
        })
        .collect();
    let notice = twice.first().map(|first| {
        let count = twice.len();
        format!("trials that stand in the journal again do not count: {count}, such as {first}")
    });
    let mut fresh = fresh.into_iter();
    let records = records.into_iter().filter(|_| fresh.next().unwrap_or(true)).collect();
    (records, notice)
}
