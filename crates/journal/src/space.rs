use crate::JournalError;
use std::io;
use std::path::Path;

/// The bytes that an unprivileged user can still write on the file system that holds `path` or would hold it.
///
/// # Errors
/// When the file system does not say.
pub fn free_bytes(path: &Path) -> Result<u64, JournalError> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let space = rustix::fs::statvfs(existing)
        .map_err(|error| JournalError::of("ask for the free space of", existing, io::Error::from(error)))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Checks, before a run, that the file system of its directory has `wanted_bytes` left.
///
/// # Errors
/// `LittleSpace` when it has not.
pub fn check_space(directory: &Path, wanted_bytes: u64) -> Result<(), JournalError> {
    let free_bytes = free_bytes(directory)?;
    if free_bytes < wanted_bytes {
        return Err(JournalError::LittleSpace { path: directory.into(), free_bytes, wanted_bytes });
    }
    Ok(())
}
