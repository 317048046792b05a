//! Kernels to boot: what `kernel=` may name, opened and looked through.
//!
//! One file per form: [`directory`] for build trees and folders, [`file`] for images and for the running kernel, [`package`]
//! for what distributions ship. All of them read the image at once and whole, so that a build that goes on during the run
//! does not change the kernel that is measured.

mod directory;
mod error;
mod file;
mod image;
mod modules;
mod package;
mod rpm;
mod store;
mod unpack;

pub use error::KernelError;
pub(crate) use image::Version;
pub use modules::{Module, Modules};

use machine::Root;
use std::fmt;
use std::path::{Path, PathBuf};

/// What `kernel=` takes for the kernel that runs now.
pub const INSTALLED: &str = "installed";
/// A value of `kernel=` that begins so names an image that lies on the machine behind ssh.
pub(crate) const ON_HOST: &str = "host:";
/// A value of `kernel=` that begins so names an entry of that machine's boot loader.
pub(crate) const ENTRY: &str = "entry:";

/// A kernel for x86-64 that can be booted.
#[derive(Clone)]
pub struct Kernel {
    /// The bytes of the bzImage.
    pub image: Vec<u8>,
    /// What `uname -r` will say once it runs, as its image says.
    pub release: Option<String>,
    /// What `uname -v` will say: number, kind and date of the build. It tells apart two builds of one release.
    pub build: Option<String>,
    /// The text of the configuration that it was built with, where that lies beside it.
    pub config: Option<String>,
    /// Its modules.
    pub modules: Modules,
    /// What was asked for, to the letter.
    pub given_as: String,
}

impl fmt::Debug for Kernel {
    /// Without the megabytes of the image.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("given_as", &self.given_as)
            .field("release", &self.release)
            .field("build", &self.build)
            .field("image_bytes", &self.image.len())
            .field("config", &self.config.is_some())
            .field("modules", &self.modules)
            .finish()
    }
}

/// Opens the kernel that `given` names: a bzImage, a build tree or another directory that holds one, a `.deb` or `.rpm`
/// (several joined by `+` where its parts are packages of their own), or `installed`.
///
/// # Errors
/// When there is no kernel that this machine could boot; the text says what is there instead, and what to do.
pub fn open(given: &str) -> Result<Kernel, KernelError> {
    open_on(&Root::real(), given)
}

/// As [`open`], on a machine whose /boot, /lib/modules and /proc are below `root`. `given` itself is not.
///
/// # Errors
/// As [`open`].
pub fn open_on(root: &Root, given: &str) -> Result<Kernel, KernelError> {
    let path = Path::new(given);
    if given == INSTALLED {
        return file::installed(root);
    }
    let error = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return directory::open(root, path, given),
        Ok(found) if !found.is_file() => {
            return Err(KernelError::NotAKernel { path: path.into(), found: "no regular file".into() });
        }
        Ok(_) if package::is_package(path)? => return package::open(&[path.into()], given),
        Ok(_) => return file::open(root, path, given),
        Err(error) => error,
    };
    // A name may hold a `+`, as Debian's do, so only what is no file is taken apart.
    match joined(given) {
        parts if parts.len() > 1 => package::open(&parts, given),
        _ if error.kind() == std::io::ErrorKind::NotFound => Err(KernelError::Absent { path: path.into() }),
        _ => Err(KernelError::Read { path: path.into(), error }),
    }
}

/// The name by which the kernel that is `given` in a directory can be opened from anywhere. What is no path stays as it is.
pub fn from_directory(directory: &Path, given: &str) -> String {
    if given == INSTALLED || given.starts_with(ON_HOST) || given.starts_with(ENTRY) {
        return given.into();
    }
    let parts = match directory.join(given).exists() {
        true => vec![given.into()],
        false => joined(given),
    };
    parts.iter().map(|part| directory.join(part).display().to_string()).collect::<Vec<String>>().join("+")
}

/// The packages of `one.deb+other.deb`. A `+` parts them only where it follows the end of a package's name.
fn joined(given: &str) -> Vec<PathBuf> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, _) in given.match_indices('+') {
        let part = &given[begin..at];
        if part.ends_with(".deb") || part.ends_with(".rpm") {
            parts.push(part.into());
            begin = at + 1;
        }
    }
    parts.push(given[begin..].into());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_directory_calls_a_kernel_is_found_from_everywhere() {
        let top = tempfile::TempDir::new().unwrap();
        std::fs::write(top.path().join("a.deb+b.deb"), "").unwrap();
        let found = |given| from_directory(top.path(), given);
        let inside = |name: &str| top.path().join(name).display().to_string();
        assert_eq!(found("bzImage"), inside("bzImage"));
        assert_eq!(found("a.deb+b.deb"), inside("a.deb+b.deb"), "a file of that name");
        assert_eq!(found("c.deb+/x/d.deb"), format!("{}+/x/d.deb", inside("c.deb")));
        for given in [INSTALLED, "/boot/vmlinuz", "host:/boot/vmlinuz", "entry:linux-7"] {
            assert_eq!(found(given), given);
        }
    }

    #[test]
    fn a_plus_in_a_version_does_not_part_packages() {
        let parts = |given| joined(given).iter().map(|part| part.display().to_string()).collect::<Vec<_>>();
        assert_eq!(parts("a_6.12+deb13_amd64.deb"), ["a_6.12+deb13_amd64.deb"]);
        assert_eq!(parts("a_7.3+deb14.deb+b_7.3+deb14.deb"), ["a_7.3+deb14.deb", "b_7.3+deb14.deb"]);
        assert_eq!(parts("a.rpm+b.deb+c.rpm"), ["a.rpm", "b.deb", "c.rpm"]);
        assert_eq!(parts("a.deb+"), ["a.deb", ""]);
        assert_eq!(parts(""), [""]);
    }
}
