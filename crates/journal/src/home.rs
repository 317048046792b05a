use crate::read::{Run, read_directory};
use crate::writer::{Journal, sync_directory};
use crate::{EXPERIMENT_FILE, JOURNAL_FILE, JournalError, RunInfo, listing};
use etcetera::BaseStrategy;
use experiment::{Header, nearest};
use std::fs;
use std::path::{Path, PathBuf};

const LATEST: &str = "latest";

/// The directory in which kduel keeps its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// `$KDUEL_HOME`, or `kduel` in the XDG data directory.
    ///
    /// # Errors
    /// `NoHome` when neither is known.
    pub fn from_environment() -> Result<Home, JournalError> {
        let no_home = |why: &dyn std::fmt::Display| JournalError::NoHome(why.to_string());
        let path = match std::env::var_os("KDUEL_HOME").filter(|value| !value.is_empty()) {
            Some(path) => std::path::absolute(path).map_err(|error| no_home(&error))?,
            None => {
                let strategy =
                    etcetera::base_strategy::choose_base_strategy().map_err(|error| no_home(&error))?;
                strategy.data_dir().join("kduel")
            }
        };
        Ok(Home { path })
    }

    /// The home at `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Home {
        Home { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that holds one directory per run.
    pub fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// Begins a run in a directory of its own under this home, and makes it the latest.
    ///
    /// # Errors
    /// When the name cannot be that of a directory, is taken, or the disk does not take it.
    pub fn create(&self, run: &str, header: &Header) -> Result<Journal, JournalError> {
        let legal = !run.is_empty()
            && run != LATEST
            && !run.starts_with('.')
            && run.chars().all(|c| c.is_ascii_alphanumeric() || "_-+.".contains(c));
        if !legal {
            return Err(JournalError::Name(run.into()));
        }
        let journal = Journal::create(&self.runs().join(run), header)?;
        self.make_latest(&Path::new("runs").join(run))?;
        Ok(journal)
    }

    /// Begins a run in `directory`, which may be empty or not exist, and makes it the latest of this home if the home
    /// can be written.
    ///
    /// # Errors
    /// When a run is there already or the disk does not take it.
    pub fn create_at(&self, directory: &Path, header: &Header) -> Result<Journal, JournalError> {
        let directory =
            std::path::absolute(directory).map_err(|error| JournalError::of("find", directory, error))?;
        let journal = Journal::create(&directory, header)?;
        // Somebody who names a directory may do so because the home cannot be written; the run is none the worse.
        let _ = self.make_latest(&directory);
        Ok(journal)
    }

    /// Opens a run to go on with it. A torn tail is cut off first.
    ///
    /// # Errors
    /// `Busy` while another process writes it, and as [`Home::read`].
    pub fn open(&self, run: &str) -> Result<Journal, JournalError> {
        Journal::open(&self.find(run)?)
    }

    /// Reads a run, by its name, the beginning of its name if there is just one, `latest`, or its directory.
    ///
    /// # Errors
    /// When there is no such run, or a line other than the last is not as it was written.
    pub fn read(&self, run: &str) -> Result<Run, JournalError> {
        read_directory(&self.find(run)?)
    }

    /// The runs under this home, by name. A run whose journal cannot be read is listed with the reason.
    ///
    /// # Errors
    /// When the directory of the runs cannot be read.
    pub fn list(&self) -> Result<Vec<RunInfo>, JournalError> {
        Ok(self.names()?.into_iter().map(|name| listing::look_at(&name, &self.runs().join(&name))).collect())
    }

    /// The directory of a run that is named as for [`Home::read`].
    ///
    /// # Errors
    /// When there is no such run, or several begin so.
    pub fn find(&self, run: &str) -> Result<PathBuf, JournalError> {
        let holds_run = |directory: &Path| directory.join(JOURNAL_FILE).is_file();
        let unknown = |hint: String| JournalError::Unknown { run: run.into(), runs: self.runs(), hint };
        if run == LATEST {
            let link = self.path.join(LATEST);
            return match fs::canonicalize(&link) {
                Ok(directory) if holds_run(&directory) => Ok(directory),
                _ => Err(unknown(
                    "nothing has run yet, or the latest was removed: see `kduel list runs`".into(),
                )),
            };
        }
        let names = self.names()?;
        if names.iter().any(|name| name == run) {
            return Ok(self.runs().join(run));
        }
        if holds_run(Path::new(run)) {
            return Ok(PathBuf::from(run));
        }
        let mut begin: Vec<String> =
            names.iter().filter(|name| !run.is_empty() && name.starts_with(run)).cloned().collect();
        match begin.len() {
            0 if names.is_empty() => Err(unknown("no run is there".into())),
            0 => Err(unknown(match nearest(run, names.iter().map(String::as_str)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`kduel list runs` shows all".into(),
            })),
            1 => Ok(self.runs().join(begin.remove(0))),
            _ => Err(JournalError::Ambiguous { run: run.into(), names: begin }),
        }
    }

    fn names(&self) -> Result<Vec<String>, JournalError> {
        let runs = self.runs();
        let entries = match fs::read_dir(&runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(JournalError::of("read", &runs, error)),
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.path().join(JOURNAL_FILE).is_file())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes a run that holds nothing worth keeping. The newest of the others is the latest again.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn discard(&self, journal: &Journal) -> Result<(), JournalError> {
        let directory = journal.directory();
        for file in [EXPERIMENT_FILE, JOURNAL_FILE] {
            let path = directory.join(file);
            fs::remove_file(&path).map_err(|error| JournalError::of("remove", &path, error))?;
        }
        // A directory that somebody named may hold other things, and then stays.
        let _ = fs::remove_dir(directory);
        match self.names()?.last() {
            Some(newest) => self.make_latest(&Path::new("runs").join(newest)),
            None => {
                // No run, no link: it led to the one that has gone.
                let _ = fs::remove_file(self.path.join(LATEST));
                Ok(())
            }
        }
    }

    /// Points the link `latest` at `directory`, at once or not at all.
    fn make_latest(&self, directory: &Path) -> Result<(), JournalError> {
        let link = self.path.join(LATEST);
        // No two runs share a directory, so no two processes share the name of the fresh link.
        let run = directory.file_name().unwrap_or_default().to_string_lossy();
        let fresh = self.path.join(format!(".{LATEST}.{run}"));
        let made = fs::create_dir_all(&self.path)
            .and_then(|()| std::os::unix::fs::symlink(directory, &fresh))
            .and_then(|()| fs::rename(&fresh, &link));
        if made.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        made.map_err(|error| JournalError::of("point at the run with", &link, error))?;
        sync_directory(&self.path)
    }
}
