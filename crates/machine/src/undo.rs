//! The undo journal: what machine-wide settings were before a knob was turned, written down first, so that they are
//! put back even when the process that turned them was killed.
//!
//! A directory holds one file per owner with one checksummed JSON object per line: who the owner is, then each
//! setting with its old value. A setting stands in at most one of them. Everything that reads or writes there
//! holds the lock of the directory.

use crate::owner::Owner;
use crate::undo_file::{Line, append, create, failed, is_trusted, journals, lock, read};
use crate::{ReadError, Root, value};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The settings that this process has turned, and how to put them back. Dropping it puts them back too, in the
/// process that made it; a child that inherited it by fork leaves them alone.
#[derive(Debug)]
pub struct Undo {
    directory: PathBuf,
    owner: Owner,
    /// Made at the first setting: a duel that turns none leaves no file.
    journal: Option<(PathBuf, File)>,
    noted: Vec<Noted>,
}

#[derive(Debug)]
struct Noted {
    was: Setting,
    /// The value that it is turned to; nothing while it is back.
    turned_to: Option<String>,
}

/// A setting of the machine with a value that it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The file.
    pub path: PathBuf,
    /// The value that belongs there, or was written back.
    pub value: String,
}

/// A setting that could not be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrestored {
    /// The file, and the value that belongs there.
    pub setting: Setting,
    /// What went wrong.
    pub why: String,
    /// Whether it was kept in the journal, so that a later command with more rights puts it back.
    pub kept: bool,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to `{}`", self.path.display(), self.value)
    }
}

impl fmt::Display for Unrestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let later = if self.kept { "; run any kduel command as root to put it back" } else { "" };
        write!(f, "{}: {}{later}", self.setting, self.why)
    }
}

/// What came of putting settings back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Those that have their old value again, in the order in which it was done.
    pub restored: Vec<Setting>,
    /// Those that have not.
    pub failed: Vec<Unrestored>,
}

/// Why the undo journal could not be used. No setting was turned.
#[derive(Debug, Error)]
pub enum UndoError {
    /// A file or directory of the journal.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another process has held the lock for long.
    #[error("{} stays locked by another kduel", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// Two runs would turn the same setting under each other.
    #[error("{} is already turned by another kduel, process {pid}; wait until it has ended", path.display())]
    Held {
        /// The setting.
        path: PathBuf,
        /// The owner.
        pid: u32,
    },
    /// This process could not be described.
    #[error(transparent)]
    Owner(#[from] ReadError),
}

impl Undo {
    /// Nothing is turned yet. `directory` is made when the first setting is.
    ///
    /// # Errors
    /// When this process cannot be told apart from others, since /proc is not there.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Undo, UndoError> {
        Ok(Undo::owned_by(Owner::this(&Root::real())?, directory))
    }

    fn owned_by(owner: Owner, directory: impl Into<PathBuf>) -> Undo {
        Undo { directory: directory.into(), owner, journal: None, noted: Vec::new() }
    }

    /// Writes down what the file `path` holds before it is turned to `value`, and returns when that is on disk. `was`
    /// reads it, and is called when no other run has the setting turned. What is written down first is what
    /// will be put back.
    ///
    /// # Errors
    /// When it could not be read or written down, or when another live run has turned the same setting.
    pub fn note<E: From<UndoError>>(
        &mut self,
        path: &Path,
        value: &str,
        was: impl FnOnce() -> Result<String, E>,
    ) -> Result<(), E> {
        if let Some(index) = self.noted.iter().position(|noted| noted.was.path == path) {
            let mut noted = self.noted.remove(index);
            // One that was back is turned last now, and so goes back first.
            let place = if noted.turned_to.is_some() { index } else { self.noted.len() };
            noted.turned_to = Some(value.into());
            self.noted.insert(place, noted);
            return Ok(());
        }
        fs::create_dir_all(&self.directory).map_err(failed("make", &self.directory))?;
        let _lock = lock(&self.directory)?;
        // What a dead run left turned must not be taken for the old value.
        recover_locked(&self.directory, &self.owner, &mut Recovery::default())?;
        for journal in journals(&self.directory)? {
            let (owner, settings) = read(&journal)?;
            if let Some(owner) = owner.filter(|owner| owner.same_boot(&self.owner))
                && Some(&journal) != self.journal.as_ref().map(|(name, _)| name)
                && settings.iter().any(|setting| setting.path == path)
            {
                return Err(UndoError::Held { path: path.into(), pid: owner.pid }.into());
            }
        }
        let was = Setting { path: path.into(), value: was()? };
        let (name, file) = match &mut self.journal {
            Some(open) => open,
            none => none.insert(create(&self.directory, &self.owner)?),
        };
        append(file, &Line::Was(was.clone())).map_err(failed("write", name))?;
        self.noted.push(Noted { was, turned_to: Some(value.into()) });
        Ok(())
    }

    /// The settings that are turned now, each with the value that it was turned to.
    pub fn turned(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.noted.iter().filter_map(|noted| Some((noted.was.path.as_path(), noted.turned_to.as_deref()?)))
    }

    /// Puts every setting back, the last one first, and keeps the journal: for the change from one variant to the
    /// next, which then costs no write to disk.
    pub fn rewind(&mut self) -> Recovery {
        let turned: Vec<&Setting> =
            self.noted.iter().filter(|noted| noted.turned_to.is_some()).map(|noted| &noted.was).collect();
        let recovery = put_back(&turned);
        for noted in &mut self.noted {
            if !recovery.failed.iter().any(|failed| failed.setting == noted.was) {
                noted.turned_to = None;
            }
        }
        recovery
    }

    /// Puts every setting back, the last one first, and ends the journal. What this user may not put back stays in
    /// it for [`recover`].
    pub fn restore(&mut self) -> Recovery {
        let recovery = self.rewind();
        self.noted.clear();
        if let Some((name, _)) = self.journal.take()
            && !recovery.failed.iter().any(|failed| failed.kept)
        {
            // If this fails the next recovery writes the same values again.
            let _ = fs::remove_file(name);
        }
        recovery
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.owner.pid == std::process::id() {
            self.restore();
        }
    }
}

/// Puts back what processes left turned that died on this machine in this boot. What a live process has turned is
/// left alone, and so is what belongs to another machine; what was turned before a reboot is forgotten, since
/// the reboot has undone it. Safe against any number of processes that do the same.
///
/// # Errors
/// When the directory is there and cannot be read or locked.
pub fn recover(directory: &Path) -> Result<Recovery, UndoError> {
    let mut recovery = Recovery::default();
    if !journals(directory)?.is_empty() {
        let _lock = lock(directory)?;
        recover_locked(directory, &Owner::this(&Root::real())?, &mut recovery)?;
    }
    Ok(recovery)
}

fn recover_locked(directory: &Path, this: &Owner, recovery: &mut Recovery) -> Result<(), UndoError> {
    for journal in journals(directory)? {
        let (owner, settings) = read(&journal)?;
        let keep = match owner {
            Some(owner) if owner.machine != this.machine => true,
            Some(owner) if owner.boot != this.boot => false,
            Some(owner) if owner.runs(&Root::real()) => true,
            Some(_) if !is_trusted(&journal) => true,
            Some(_) => {
                let settings: Vec<&Setting> = settings.iter().collect();
                let Recovery { restored, failed } = put_back(&settings);
                let kept = failed.iter().any(|failed| failed.kept);
                recovery.restored.extend(restored);
                recovery.failed.extend(failed);
                kept
            }
            // Its owner died before it had written down anything, and so before it had turned anything.
            None => false,
        };
        if keep {
            continue;
        }
        match fs::remove_file(&journal) {
            // Its owner may have put everything back and left while we looked.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &journal)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes old values back, the last one first.
fn put_back(settings: &[&Setting]) -> Recovery {
    let mut recovery = Recovery::default();
    for &setting in settings.iter().rev() {
        match write_setting(&setting.path, &setting.value) {
            Ok(()) => recovery.restored.push(setting.clone()),
            Err(error) => {
                let kept = matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                );
                recovery.failed.push(Unrestored { setting: setting.clone(), why: error.to_string(), kept });
            }
        }
    }
    recovery
}

/// Writes a value to a settings file of the kernel.
pub(crate) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    let write = |value: &str| {
        // Never creates: a misspelt name below a writable directory must not become a file.
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
        file.write_all(format!("{value}\n").as_bytes())
    };
    match value::is_feature_list(path) {
        // One word is taken at a time.
        true => value.split_whitespace().try_for_each(write),
        false => write(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode};
    use std::io::Read as _;

    /// Leaves a setting turned as if a process of this owner had been killed, and says what recovery makes of it.
    fn left_by(change: impl FnOnce(&mut Owner)) -> (Recovery, String, usize) {
        let home = tempfile::tempdir().unwrap();
        let setting = home.path().join("setting");
        fs::write(&setting, "new").unwrap();
        let mut owner = Owner::this(&Root::real()).unwrap();
        change(&mut owner);
        let mut undo = Undo::owned_by(owner, home.path().join("undo"));
        undo.note(&setting, "new", || Ok::<_, UndoError>("old".into())).unwrap();
        std::mem::forget(undo);
        let recovery = recover(&home.path().join("undo")).unwrap();
        let left = journals(&home.path().join("undo")).unwrap().len();
        (recovery, fs::read_to_string(&setting).unwrap().trim().to_string(), left)
    }

    #[test]
    fn only_what_a_dead_process_of_this_boot_left_is_put_back() {
        let (recovery, value, left) = left_by(|owner| owner.start_ticks += 1);
        assert_eq!(
            (recovery.restored.len(), value.as_str(), left),
            (1, "old", 0),
            "its number was used again"
        );
        let (recovery, value, left) = left_by(|_| ());
        assert_eq!((recovery.restored.len(), value.as_str(), left), (0, "new", 1), "it is alive");
        let (recovery, value, left) = left_by(|owner| owner.boot = "another".into());
        assert_eq!(
            (recovery.restored.len(), value.as_str(), left),
            (0, "new", 0),
            "the reboot has undone it"
        );
        let (recovery, value, left) = left_by(|owner| {
            owner.machine = "another".into();
            owner.boot = "another".into();
        });
        assert_eq!((recovery.restored.len(), value.as_str(), left), (0, "new", 1), "it is not ours to judge");
    }

    #[test]
    fn features_of_the_scheduler_are_put_back_word_by_word() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("sched")).unwrap();
        let features = tree.path().join("sched/features");
        // A pipe keeps every write, where a file would keep the last.
        rustix::fs::mknodat(rustix::fs::CWD, &features, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut reader = fs::OpenOptions::new().read(true).write(true).open(&features).unwrap();
        write_setting(&features, "PLACE_LAG NO_NEXT_BUDDY").unwrap();
        let mut written = [0; 64];
        let length = reader.read(&mut written).unwrap();
        assert_eq!(&written[..length], b"PLACE_LAG\nNO_NEXT_BUDDY\n");
    }

    #[test]
    fn what_cannot_be_put_back_is_told() {
        let home = tempfile::tempdir().unwrap();
        let gone = home.path().join("gone");
        let mut undo = Undo::new(home.path().join("undo")).unwrap();
        undo.note(&gone, "new", || Ok::<_, UndoError>("old".into())).unwrap();
        let recovery = undo.restore();
        assert_eq!(recovery.failed.len(), 1);
        assert!(!recovery.failed[0].kept, "nobody can put it back");
        assert!(
            recovery.failed[0].to_string().contains("gone to `old`: No such file"),
            "{}",
            recovery.failed[0]
        );
        assert!(!gone.exists(), "and it is not made");
        assert!(journals(&home.path().join("undo")).unwrap().is_empty());
    }

    #[test]
    fn damaged_lines_are_passed_over_and_the_others_count() {
        let home = tempfile::tempdir().unwrap();
        let settings = ["a", "b", "c"].map(|name| home.path().join(name));
        let mut owner = Owner::this(&Root::real()).unwrap();
        owner.start_ticks += 1;
        fs::create_dir(home.path().join("undo")).unwrap();
        let (journal, mut file) = create(&home.path().join("undo"), &owner).unwrap();
        for setting in &settings {
            fs::write(setting, "new").unwrap();
        }
        for setting in &settings[..2] {
            append(&mut file, &Line::Was(Setting { path: setting.clone(), value: "old".into() })).unwrap();
        }
        let text = fs::read_to_string(&journal).unwrap();
        let damaged = text.replacen("/b\",\"value\":\"old\"", "/c\",\"value\":\"old\"", 1);
        assert_ne!(damaged, text);
        fs::write(&journal, damaged).unwrap();
        let recovery = recover(&home.path().join("undo")).unwrap();
        assert_eq!(recovery.restored, [Setting { path: settings[0].clone(), value: "old".into() }]);
        assert_eq!(
            fs::read_to_string(&settings[2]).unwrap(),
            "new",
            "a line with a wrong checksum does nothing"
        );
    }
}
