//! Installed programs.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The executable file of this name in one of the directories of PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    executable_in(env::split_paths(&env::var_os("PATH")?), name)
}

/// The first executable file of this name in these directories.
pub(crate) fn executable_in(mut directories: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    directories.find_map(|place| Some(place.join(name)).filter(|path| executable(path)))
}
