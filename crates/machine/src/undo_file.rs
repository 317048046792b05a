//! The undo journal on disk: one checksummed JSON object per line.

use crate::owner::Owner;
use crate::undo::{Setting, UndoError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const SUFFIX: &str = "undo";
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    Owner(Owner),
    Was(Setting),
}

/// Root writes nothing that somebody else has written down: a user could make it write any file.
pub fn is_trusted(journal: &Path) -> bool {
    let user = rustix::process::geteuid();
    !user.is_root() || fs::metadata(journal).is_ok_and(|metadata| metadata.uid() == user.as_raw())
}

/// The lock of the directory, held until the file is closed.
pub fn lock(directory: &Path) -> Result<File, UndoError> {
    let path = directory.join("lock");
    let file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        // Whoever owns the directory must not lead root to another file.
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)
        .map_err(failed("open", &path))?;
    let start = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(Errno::WOULDBLOCK) => return Err(UndoError::Locked { path }),
            Err(error) => return Err(failed("lock", &path)(error.into())),
        }
    }
}

pub fn create(directory: &Path, owner: &Owner) -> Result<(PathBuf, File), UndoError> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let boot: String = owner.boot.chars().take(8).filter(char::is_ascii_alphanumeric).collect();
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("{boot}-{}-{}-{number}.{SUFFIX}", owner.pid, owner.start_ticks);
    let path = directory.join(name);
    let mut file =
        fs::OpenOptions::new().create_new(true).append(true).open(&path).map_err(failed("make", &path))?;
    append(&mut file, &Line::Owner(owner.clone())).map_err(failed("write", &path))?;
    File::open(directory).and_then(|dir| dir.sync_all()).map_err(failed("sync", directory))?;
    Ok((path, file))
}

pub fn append(file: &mut File, line: &Line) -> io::Result<()> {
    let json = serde_json::to_string(line)?;
    // The first line break ends a line that was torn by a full disk, so that it cannot spoil this one.
    file.write_all(format!("\n{:08x} {json}\n", crc32fast::hash(json.as_bytes())).as_bytes())?;
    file.sync_data()
}

/// The journals in a directory, in the order of their names; none where there is no directory.
pub fn journals(directory: &Path) -> Result<Vec<PathBuf>, UndoError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("read", directory))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed("read", directory))?.path();
        if path.extension().is_some_and(|extension| extension == SUFFIX) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The owner and the settings of a journal. A line that is torn or damaged is passed over: each is on disk before
/// the setting that it speaks of is turned, so that a torn one speaks of none.
pub fn read(journal: &Path) -> Result<(Option<Owner>, Vec<Setting>), UndoError> {
    let bytes = match fs::read(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
        bytes => bytes.map_err(failed("read", journal))?,
    };
    let (mut owner, mut settings) = (None, Vec::new());
    for line in String::from_utf8_lossy(&bytes).lines() {
        match parse(line) {
            Some(Line::Owner(found)) => owner = Some(found),
            Some(Line::Was(setting)) => settings.push(setting),
            None => {}
        }
    }
    Ok((owner, settings))
}

fn parse(line: &str) -> Option<Line> {
    let (checksum, json) = line.split_once(' ')?;
    let whole = u32::from_str_radix(checksum, 16) == Ok(crc32fast::hash(json.as_bytes()));
    whole.then(|| serde_json::from_str(json).ok())?
}

pub fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> UndoError {
    let path = path.to_path_buf();
    move |source| UndoError::Io { action, path, source }
}
