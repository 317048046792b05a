use crate::read::{Run, read_directory, scan};
use crate::{EXPERIMENT_FILE, JOURNAL_FILE, JournalError, line};
use experiment::{Header, Record};
use rustix::fs::FlockOperation;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The journal of a run, open for appending. While it lives, no other process can open the same one so.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    path: PathBuf,
    file: File,
    written: Extent,
    synced: Extent,
    /// Whether a failed write may have left bytes behind the whole records.
    torn: bool,
}

/// How much of the file is whole records.
#[derive(Debug, Clone, Copy)]
struct Extent {
    bytes: u64,
    records: u64,
}

impl Journal {
    /// A new run in `directory`, which is created and must not hold a run.
    pub(crate) fn create(directory: &Path, header: &Header) -> Result<Journal, JournalError> {
        fs::create_dir_all(directory).map_err(|error| JournalError::of("create", directory, error))?;
        let experiment = directory.join(EXPERIMENT_FILE);
        let path = directory.join(JOURNAL_FILE);
        let mut made = Made(Vec::new());
        let mut file = made.file(&experiment)?;
        file.write_all(experiment::to_toml(&header.experiment).as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| JournalError::of("write", &experiment, error))?;
        let mut journal = Journal::over(made.file(&path)?, directory, path.clone())?;
        journal.append(&Record::Header(Box::new(header.clone())))?;
        journal.sync()?;
        sync_directory(directory)?;
        if let Some(parent) = directory.parent().filter(|parent| *parent != Path::new("")) {
            sync_directory(parent)?;
        }
        made.0.clear();
        Ok(journal)
    }

    /// The run in `directory`, to go on with. A torn tail is cut off, and a notice in the journal says so.
    pub(crate) fn open(directory: &Path) -> Result<Journal, JournalError> {
        let path = directory.join(JOURNAL_FILE);
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|error| JournalError::of("open", &path, error))?;
        let mut journal = Journal::over(file, directory, path)?;
        let found = scan(&journal.path, |_| ())?;
        let whole = Extent { bytes: found.whole_bytes, records: found.records };
        (journal.written, journal.synced) = (whole, whole);
        if found.torn_bytes > 0 {
            journal.cut_to(whole)?;
            let text = format!(
                "the run was stopped while it wrote a record; its {} bytes were cut off when it was taken up again",
                found.torn_bytes
            );
            journal.append(&Record::Notice { text })?;
            journal.sync()?;
        }
        Ok(journal)
    }

    fn over(file: File, directory: &Path, path: PathBuf) -> Result<Journal, JournalError> {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => JournalError::Busy { path: path.clone() },
            _ => JournalError::of("lock", &path, io::Error::from(error)),
        })?;
        let none = Extent { bytes: 0, records: 0 };
        Ok(Journal { directory: directory.into(), path, file, written: none, synced: none, torn: false })
    }

    /// The directory of the run.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads back everything that the journal holds.
    ///
    /// # Errors
    /// As [`crate::Home::read`].
    pub fn read(&self) -> Result<Run, JournalError> {
        read_directory(&self.directory)
    }

    /// Writes a record. It survives the death of this process, and after [`Journal::sync`] that of the machine.
    ///
    /// # Errors
    /// `NotFinite` for a record that holds NaN or infinity, `DiskFull` when there is no space, `Io` for the rest. The
    /// file then ends with the last whole record, as before the call.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        let seq = self.written.records + 1;
        let bytes = line::encode(seq, record)?;
        if self.torn {
            self.cut_to(self.written)?;
        }
        if let Err(error) = self.file.write_all(&bytes) {
            self.torn = true;
            // Should this fail too, the file has a torn tail, which reading can deal with.
            let _ = self.cut_to(self.written);
            return Err(JournalError::of("append to", &self.path, error));
        }
        self.written = Extent { bytes: self.written.bytes + bytes.len() as u64, records: seq };
        Ok(())
    }

    /// Brings everything that was appended onto the disk.
    ///
    /// # Errors
    /// When the disk does not take it: what was appended since the last sync is taken back, so that the file stays
    /// readable.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        if let Err(error) = self.file.sync_data() {
            self.written = self.synced;
            self.torn = true;
            let _ = self.cut_to(self.written);
            return Err(JournalError::of("sync", &self.path, error));
        }
        self.synced = self.written;
        Ok(())
    }

    fn cut_to(&mut self, extent: Extent) -> Result<(), JournalError> {
        self.file.set_len(extent.bytes).map_err(|error| JournalError::of("shorten", &self.path, error))?;
        self.written = extent;
        self.torn = false;
        Ok(())
    }
}

/// The files that a run that is being created has so far. They go when it cannot be: half a run is of no use.
struct Made(Vec<PathBuf>);

impl Made {
    fn file(&mut self, path: &Path) -> Result<File, JournalError> {
        let opened = OpenOptions::new().append(true).create_new(true).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.into() },
            _ => JournalError::of("create", path, error),
        })?;
        self.0.push(path.into());
        Ok(file)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_file(path);
        }
        if let Some(directory) = self.0.first().and_then(|path| path.parent()) {
            // Refused when the user keeps other things there.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Makes the names inside `directory` survive the death of the machine.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| JournalError::of("sync", directory, error))
}
