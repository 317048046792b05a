//! The directory for the files of a trial.

use crate::Failure;
use machine::Scratch;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, ftruncate, open, unlink};
use rustix::io::Errno;
use std::ffi::CString;
use std::fmt::Display;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory that goes with the trial.
#[derive(Debug)]
pub struct Directory {
    scratch: Scratch,
}

impl Directory {
    /// A new one inside `parent`.
    ///
    /// # Errors
    /// When there can be none; the error says why.
    pub fn new(parent: &Path) -> Result<Directory, Failure> {
        let scratch = Scratch::new(parent).map_err(|error| refused(parent, error))?;
        Ok(Directory { scratch })
    }

    /// Whether files of `bytes` fit into it.
    ///
    /// # Errors
    /// When they do not.
    pub fn room_for(&self, bytes: u64) -> Result<(), Failure> {
        match self.scratch.free_bytes() {
            Ok(free) if free < bytes => Err(Failure::Refused(format!(
                "the files take {} MiB, and {} has {} MiB free; take fewer tasks, free space there, or set directory= to \
                 another place",
                bytes >> 20,
                self.scratch.path().parent().unwrap_or(self.scratch.path()).display(),
                free >> 20
            ))),
            Ok(_) => Ok(()),
            Err(error) => Err(refused(self.scratch.path(), error)),
        }
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The path of a file in it, in the form that system calls take.
    ///
    /// # Errors
    /// When the name cannot be one of a file.
    pub fn path(&self, name: &str) -> Result<CString, Failure> {
        let path = self.inside(name);
        CString::new(path.as_os_str().as_bytes()).map_err(|error| refused(&path, error))
    }

    /// Makes a directory in it.
    ///
    /// # Errors
    /// When the kernel does not.
    pub fn directory(&self, name: &str) -> Result<(), Failure> {
        let path = self.inside(name);
        fs::create_dir(&path).map_err(|error| refused(&path, error))
    }

    /// Makes an empty file of this name.
    ///
    /// # Errors
    /// When the kernel does not.
    pub fn file(&self, name: &str) -> Result<OwnedFd, Failure> {
        let path = self.inside(name);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| refused(&path, error))
    }

    /// An empty file that has lost its name.
    ///
    /// # Errors
    /// When the kernel does not make it.
    pub fn unnamed_file(&self, name: &str) -> Result<OwnedFd, Failure> {
        let file = self.file(name)?;
        let path = self.inside(name);
        unlink(&path).map_err(|error| refused(&path, error))?;
        Ok(file)
    }

    /// A file of `bytes` that has lost its name. Its space is there, so that memory that maps it can be written.
    ///
    /// # Errors
    /// When the kernel does not make it, above all where there is no space.
    pub fn file_with_space(&self, name: &str, bytes: u64) -> Result<OwnedFd, Failure> {
        let file = self.unnamed_file(name)?;
        let reserved = match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            // A file system that cannot reserve.
            Err(Errno::OPNOTSUPP) => ftruncate(&file, bytes),
            other => other,
        };
        match reserved {
            Ok(()) => Ok(file),
            Err(error) => Err(Failure::Refused(format!(
                "a file of {bytes} bytes in {} cannot be had: {error}; free space there, or set directory= to \
                 another place",
                self.scratch.path().display()
            ))),
        }
    }
}

fn refused(path: &Path, error: impl Display) -> Failure {
    Failure::Refused(format!(
        "{}: {error}; set directory= to a place where files can be made",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::alone;

    #[test]
    fn a_place_that_is_none_is_told() {
        for place in ["/no/such/place", "/proc/self", "/dev/null"] {
            let error = Directory::new(Path::new(place)).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains("set directory="), "{error}");
        }
    }

    #[test]
    fn a_full_file_system_is_told() {
        alone("scale::directory::tests::a_full_file_system_is_told", || {
            let place = tempfile::tempdir().unwrap();
            let path = CString::new(place.path().as_os_str().as_bytes()).unwrap();
            // SAFETY: the strings end with a zero; only this process and what it forks see the new mount.
            let mounted = unsafe {
                libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(
                        c"none".as_ptr(),
                        c"/".as_ptr(),
                        std::ptr::null(),
                        libc::MS_REC | libc::MS_PRIVATE,
                        std::ptr::null(),
                    ) == 0
                    && libc::mount(
                        c"tmpfs".as_ptr(),
                        path.as_ptr(),
                        c"tmpfs".as_ptr(),
                        0,
                        c"size=1m".as_ptr().cast(),
                    ) == 0
            };
            if !mounted {
                println!("skipped: only root can mount a small tmpfs");
                return;
            }
            let directory = Directory::new(place.path()).unwrap();
            directory.room_for(1 << 19).unwrap();
            let error = directory.room_for(2 << 20).unwrap_err().to_string();
            assert!(
                error.contains("take 2 MiB") && error.contains(place.path().to_str().unwrap()),
                "{error}"
            );
            let error = directory.file_with_space("large", 2 << 20).unwrap_err().to_string();
            assert!(error.contains("2097152 bytes") && error.contains("free space there"), "{error}");
            drop(directory);
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
            // SAFETY: the string ends with a zero.
            unsafe { libc::umount(path.as_ptr()) };
        });
    }
}
