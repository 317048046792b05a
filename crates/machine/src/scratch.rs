//! Directories for the files of a trial, which go when their maker does.

use crate::{Root, owner};
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What the names of all of them begin with; the machine, the pid namespace and the process id of the maker follow. A place
/// may be one that several machines share.
const PREFIX: &str = "kduel-trial";

/// A directory with a name of its own, readable for its user alone. It goes with all that is in it when this is
/// dropped by the process that made it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    maker: u32,
}

impl Scratch {
    /// Makes one in `parent`, and removes there what makers that died have left.
    ///
    /// # Errors
    /// When there can be none.
    pub fn new(parent: &Path) -> io::Result<Scratch> {
        remove_ownerless(parent);
        let maker = std::process::id();
        let machine = owner::machine_name(&Root::real());
        let namespace = owner::pid_namespace().unwrap_or_default();
        // A process may need several.
        for number in 0.. {
            let path = parent.join(format!("{PREFIX}.{machine}.{namespace}.{maker}.{number}"));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Scratch { path, maker }),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The bytes that this user may still write there.
    ///
    /// # Errors
    /// When the file system does not tell.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let space = rustix::fs::statvfs(&self.path)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.maker == std::process::id() {
            // What cannot be removed now, the next one that is made there removes.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the directories in `parent` that dead makers of this user, machine and pid namespace have left, and names them.
pub(crate) fn remove_ownerless(parent: &Path) -> Vec<String> {
    let root = Root::real();
    let (machine, namespace) = (owner::machine_name(&root), owner::pid_namespace());
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let is_ownerless = |path: &Path| {
        let mut parts = path.file_name()?.to_str()?.split('.');
        let ours = parts.next()? == PREFIX
            && parts.next()? == machine
            && Some(parts.next()?) == namespace.as_deref()
            && !owner::can_act(&root, parts.next()?.parse().ok()?);
        // Not through a link, which somebody else may have put there.
        Some(
            ours && fs::symlink_metadata(path).ok().filter(|found| found.is_dir())?.uid()
                == geteuid().as_raw(),
        )
    };
    let ownerless =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_ownerless(path) == Some(true));
    ownerless
        .filter(|path| fs::remove_dir_all(path).is_ok())
        .map(|path| format!("the directory {}", path.display()))
        .collect()
}
