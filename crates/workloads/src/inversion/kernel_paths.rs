//! Locks of the kernel, held through one long call and wanted by a short one.

mod inode;
mod mmap;
mod pipe;
mod position;

use crate::Failure;
use crate::clock::now_ns;
use crate::times::Times;
pub use inode::Inode;
pub use mmap::Mmap;
pub use pipe::Pipe;
pub use position::Position;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{Errno, pwrite};
use std::os::fd::OwnedFd;

/// Does a call, records its time and returns what it returned.
fn timed<T>(times: &mut Times, call: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let start_ns = now_ns();
    let result = call();
    times.record(now_ns().saturating_sub(start_ns));
    result
}

/// Why a call of the measured loop failed.
fn broken(call: &str, error: Errno) -> Failure {
    match error {
        Errno::NOSPC | Errno::DQUOT | Errno::NOMEM => {
            Failure::Refused(format!("{call} failed: {error}; make room, or lower `size-kib`"))
        }
        _ => Failure::Invariant(format!("{call} failed: {error}")),
    }
}

/// Checks that all of the bytes were moved.
fn whole(call: &str, moved: usize, bytes: usize) -> Result<(), Failure> {
    match moved == bytes {
        true => Ok(()),
        false => Err(Failure::Invariant(format!("{call} moved {moved} of {bytes} bytes"))),
    }
}

/// A file in memory, without a name, with so many bytes in it.
fn memory_file(bytes: usize) -> Result<OwnedFd, Failure> {
    let file = memfd_create("kduel", MemfdFlags::CLOEXEC)
        .and_then(|file| ftruncate(&file, bytes as u64).map(|()| file))
        .map_err(|error| Failure::Refused(format!("no file in memory can be made: {error}")))?;
    // Pages that nobody has written are not there, and reading them would be another path.
    whole("write", write_all(&file, &vec![1; bytes])?, bytes)?;
    Ok(file)
}

fn write_all(file: &OwnedFd, bytes: &[u8]) -> Result<usize, Failure> {
    pwrite(file, bytes, 0).map_err(|error| broken("write", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inversion::path::Path;
    use rustix::fs::{SeekFrom, seek};
    use rustix::param::page_size;

    /// Owner and waiter once, and then the check for so many of each.
    fn once(path: impl Path, holds: u64, waits: u64) -> Result<(), Failure> {
        path.owner()(&mut Times::default())?;
        path.waiter()()?;
        path.check(holds, waits)
    }

    #[test]
    fn work_that_was_not_done_is_an_invariant_failure() {
        let inode = || Inode::new(8192, "").unwrap();
        once(inode(), 1, 1).unwrap();
        let error = once(inode(), 2, 1).unwrap_err().to_string();
        assert!(error.contains("the owner wrote 2 times, but the file has its write number 1"), "{error}");
        assert!(matches!(once(inode(), 1, 2), Err(Failure::Invariant(_))));
        let mmap = || Mmap::new(8 * page_size()).unwrap();
        once(mmap(), 1, 1).unwrap();
        // A fault that had to be tried again counts twice, so there may be a few more than pages.
        let error = once(mmap(), 100, 1).unwrap_err().to_string();
        assert!(error.contains("pages were faulted in, of 800"), "{error}");
    }

    #[test]
    fn a_file_or_pipe_that_somebody_else_changes_is_an_invariant_failure() {
        let position = Position::new(8192).unwrap();
        seek(&position.file, SeekFrom::Start(77)).unwrap();
        let error = position.waiter()().unwrap_err().to_string();
        assert!(error.contains("position 77"), "{error}");
        ftruncate(&position.file, 4096).unwrap();
        let error = position.owner()(&mut Times::default()).unwrap_err().to_string();
        assert!(error.contains("read moved 4096 of 8192 bytes"), "{error}");
        let pipe = Pipe::new(8192).unwrap();
        ftruncate(&pipe.file, 4096).unwrap();
        let error = pipe.owner()(&mut Times::default()).unwrap_err().to_string();
        assert!(error.contains("moved 4096 of 8192 bytes"), "{error}");
    }

    #[test]
    fn a_file_in_a_directory_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        match Inode::new(8192, directory.path().to_str().unwrap()) {
            Ok(inode) => {
                once(inode, 1, 1).unwrap();
                assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            }
            Err(why) => println!("skipped: {why}"),
        }
    }
}
