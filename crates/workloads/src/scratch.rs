//! A directory for the files of a trial. It goes with the trial; should the trial be killed, the next one that takes a
//! directory at the same place removes it.

use crate::Failure;
use rustix::fs::{
    FallocateFlags, FlockOperation, Mode, OFlags, fallocate, flock, fstat, ftruncate, open, unlink,
};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the names of these directories begin.
const PREFIX: &str = "kduel-scratch-";

/// A directory of its own.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Locked as long as the trial or a process of it lives: so the next trial knows whether it is in use.
    _lock: OwnedFd,
}

impl Scratch {
    /// A new directory inside `place`, after removal of those that killed trials have left there.
    ///
    /// # Errors
    /// When there can be none; the error says why.
    pub fn new(place: &Path) -> Result<Scratch, Failure> {
        sweep(place);
        for n in 0..1000 {
            let path = place.join(format!("{PREFIX}{}-{n}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(refused(&path, &error)),
            }
            // Somebody who sweeps may have seen it before it was locked.
            if let Some(lock) = lock(&path).filter(|lock| fstat(lock).is_ok_and(|stat| stat.st_nlink > 0)) {
                return Ok(Scratch { path, _lock: lock });
            }
        }
        Err(Failure::Refused(format!("no name is free for a directory in {}", place.display())))
    }

    /// The path of a file in it, in the form that system calls take.
    ///
    /// # Errors
    /// When the name cannot be one of a file.
    pub fn path(&self, name: &str) -> Result<CString, Failure> {
        CString::new(self.path.join(name).as_os_str().as_bytes())
            .map_err(|_| Failure::Refused(format!("`{name}` in {} is no path", self.path.display())))
    }

    /// Makes a directory inside.
    ///
    /// # Errors
    /// When the kernel does not.
    pub fn directory(&self, name: &str) -> Result<(), Failure> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(|error| refused(&path, &error))
    }

    /// Makes a file of this name.
    ///
    /// # Errors
    /// When the kernel does not.
    pub fn file(&self, name: &str) -> Result<OwnedFd, Failure> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        open(self.path(name)?, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| refused(&self.path.join(name), &error))
    }

    /// An empty file that has lost its name.
    ///
    /// # Errors
    /// When the kernel does not make it.
    pub fn unnamed_file(&self, name: &str) -> Result<OwnedFd, Failure> {
        let file = self.file(name)?;
        let path = self.path.join(name);
        unlink(&path).map_err(|error| refused(&path, &error))?;
        Ok(file)
    }

    /// Makes `file` `bytes` long and has the space for them, so that memory that maps it can be written.
    ///
    /// # Errors
    /// When there is no space.
    pub fn reserve(&self, file: &OwnedFd, bytes: u64) -> Result<(), Failure> {
        let reserved = match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            // A file system that cannot reserve.
            Err(Errno::OPNOTSUPP) => ftruncate(file, bytes),
            other => other,
        };
        reserved.map_err(|error| {
            Failure::Refused(format!(
                "a file of {bytes} bytes in {} cannot be had: {error}; free space there, or set directory= to \
                 another place",
                self.path.display()
            ))
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Should it fail, the next sweep tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Refused(format!(
        "{}: {error}; set directory= to a place where files can be made",
        path.display()
    ))
}

/// The lock on the directory, if nobody has it.
fn lock(path: &Path) -> Option<OwnedFd> {
    let directory = open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

/// Removes the directories that killed trials have left in `place`.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
            && let Some(_unused) = lock(&entry.path())
        {
            // What belongs to another user stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::alone;
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    use std::io::Read;

    #[test]
    fn it_goes_with_its_owner_and_what_a_killed_one_left_goes_with_the_next() {
        alone("scratch::tests::it_goes_with_its_owner_and_what_a_killed_one_left_goes_with_the_next", || {
            let place = tempfile::tempdir().unwrap();
            let left = || fs::read_dir(place.path()).unwrap().count();
            let scratch = Scratch::new(place.path()).unwrap();
            let entries = || fs::read_dir(&scratch.path).unwrap().count();
            scratch.directory("inside").unwrap();
            scratch.file("file").unwrap();
            assert_eq!((entries(), left()), (2, 1));
            // Another one beside it leaves it alone.
            drop(Scratch::new(place.path()).unwrap());
            assert_eq!(entries(), 2);
            drop(scratch);
            assert_eq!(left(), 0);

            let (mut reader, writer) = std::io::pipe().unwrap();
            // SAFETY: this process has a single thread, and the child ends by a signal.
            let killed = unsafe { libc::fork() };
            if killed == 0 {
                let _scratch = Scratch::new(place.path()).unwrap();
                drop(writer);
                loop {
                    std::thread::sleep(std::time::Duration::from_secs(600));
                }
            }
            drop(writer);
            reader.read_to_end(&mut Vec::new()).unwrap();
            let killed = Pid::from_raw(killed).unwrap();
            kill_process(killed, Signal::KILL).unwrap();
            waitpid(Some(killed), WaitOptions::empty()).unwrap();
            assert_eq!(left(), 1);
            drop(Scratch::new(place.path()).unwrap());
            assert_eq!(left(), 0);
        });
    }

    #[test]
    fn a_place_that_is_none_is_told() {
        for place in ["/no/such/place", "/proc/self", "/dev/null"] {
            let error = Scratch::new(Path::new(place)).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains("set directory="), "{error}");
        }
    }

    #[test]
    fn a_full_file_system_is_told() {
        alone("scratch::tests::a_full_file_system_is_told", || {
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
            let scratch = Scratch::new(place.path()).unwrap();
            let file = scratch.unnamed_file("large").unwrap();
            let error = scratch.reserve(&file, 2 << 20).unwrap_err().to_string();
            assert!(error.contains("2097152 bytes") && error.contains("free space there"), "{error}");
            drop(scratch);
            // SAFETY: the string ends with a zero.
            unsafe { libc::umount(path.as_ptr()) };
        });
    }
}
