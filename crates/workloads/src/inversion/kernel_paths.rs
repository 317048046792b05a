//! Locks of the kernel, held through one long call and wanted by a short one.

use super::path::Path;
use crate::Failure;
use crate::clock::now_ns;
use crate::times::Times;
use rustix::fs::{MemfdFlags, Mode, OFlags, SeekFrom, ftruncate, memfd_create, open, seek};
use rustix::io::{Errno, pread, pwrite, read};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The mutex of a file position that threads share: the owner reads a file from its start to its end, the waiter asks for
/// the position.
pub struct Position {
    file: OwnedFd,
    bytes: usize,
}

impl Position {
    /// The position in a file of so many bytes.
    pub fn new(bytes: usize) -> Result<Position, Failure> {
        let made = memory_file(bytes)?;
        // A file position is locked only in files that were opened, and one in memory is made without that.
        let file = open(
            format!("/proc/self/fd/{}", made.as_raw_fd()),
            OFlags::RDWR | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| {
            Failure::Refused(format!("a file in memory cannot be opened through /proc: {error}"))
        })?;
        Ok(Position { file, bytes })
    }
}

impl Path for Position {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        let mut buffer = vec![0; self.bytes];
        move |holds| {
            seek(&self.file, SeekFrom::Start(0)).map_err(|error| broken("lseek", error))?;
            let got =
                timed(holds, || read(&self.file, &mut buffer)).map_err(|error| broken("read", error))?;
            whole("read", got, self.bytes)
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        let bytes = self.bytes as u64;
        move || {
            let start_ns = now_ns();
            let position = seek(&self.file, SeekFrom::Current(0)).map_err(|error| broken("lseek", error))?;
            let wait_ns = now_ns().saturating_sub(start_ns);
            match position == 0 || position == bytes {
                true => Ok(wait_ns),
                false => Err(Failure::Invariant(format!(
                    "the waiter saw the position {position} in a file of {bytes} bytes, in the middle of a read"
                ))),
            }
        }
    }

    fn check(self, _: u64, _: u64) -> Result<(), Failure> {
        Ok(())
    }
}

/// The rwsem of an inode: the owner overwrites a file, the waiter writes 8 bytes behind that.
pub struct Inode {
    file: OwnedFd,
    bytes: usize,
}

/// What the waiter writes.
const WORD_BYTES: usize = 8;

impl Inode {
    /// A file for so many bytes, in this directory, or in memory where it is empty. It has no name.
    pub fn new(bytes: usize, directory: &str) -> Result<Inode, Failure> {
        if directory.is_empty() {
            return Ok(Inode { file: memory_file(bytes)?, bytes });
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(directory, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
            Failure::Refused(format!(
                "no file without a name can be made in `directory={directory}`: {error}; name a directory that may be \
                 written, on a file system that has them (ext4, xfs, btrfs, tmpfs)"
            ))
        })?;
        let inode = Inode { file, bytes };
        whole("write", write_all(&inode.file, &vec![1; bytes])?, bytes)?;
        Ok(inode)
    }

    /// The word at `offset`, which was written last.
    fn word(&self, offset: usize) -> Result<u64, Failure> {
        let mut word = [0; WORD_BYTES];
        let got = pread(&self.file, &mut word, offset as u64).map_err(|error| broken("read", error))?;
        whole("read", got, WORD_BYTES)?;
        Ok(u64::from_ne_bytes(word))
    }
}

impl Path for Inode {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        let (mut buffer, mut count) = (vec![1; self.bytes], 0_u64);
        move |holds| {
            count += 1;
            // The last word is the number of the write, so that it can be seen afterwards that it was written to its end.
            if let Some(last) = buffer.last_chunk_mut::<WORD_BYTES>() {
                *last = count.to_ne_bytes();
            }
            let put =
                timed(holds, || pwrite(&self.file, &buffer, 0)).map_err(|error| broken("write", error))?;
            whole("write", put, self.bytes)
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        let (offset, mut count) = (self.bytes as u64, 0_u64);
        move || {
            count += 1;
            let start_ns = now_ns();
            let put =
                pwrite(&self.file, &count.to_ne_bytes(), offset).map_err(|error| broken("write", error))?;
            let wait_ns = now_ns().saturating_sub(start_ns);
            whole("write", put, WORD_BYTES).map(|()| wait_ns)
        }
    }

    fn check(self, holds: u64, waits: u64) -> Result<(), Failure> {
        for (who, calls, offset) in [("owner", holds, self.bytes - WORD_BYTES), ("waiter", waits, self.bytes)]
        {
            let found = if calls == 0 { 0 } else { self.word(offset)? };
            if found != calls {
                return Err(Failure::Invariant(format!(
                    "the {who} wrote {calls} times, but the file has its write number {found}"
                )));
            }
        }
        Ok(())
    }
}

/// The mutex of a pipe: the owner splices a file into it and out again, the waiter asks for its size.
pub struct Pipe {
    file: OwnedFd,
    reader: OwnedFd,
    writer: OwnedFd,
    nowhere: OwnedFd,
    bytes: usize,
    pipe_bytes: usize,
}

impl Pipe {
    /// A pipe that takes so many bytes.
    pub fn new(bytes: usize) -> Result<Pipe, Failure> {
        let refused = |error: Errno| Failure::Refused(format!("no pipe can be made: {error}"));
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(refused)?;
        let set = fcntl_setpipe_size(&writer, bytes);
        let pipe_bytes = fcntl_getpipe_size(&writer).map_err(refused)?;
        if pipe_bytes < bytes {
            let why = set.err().map_or(String::new(), |error| format!(" ({error})"));
            return Err(Failure::Refused(format!(
                "a pipe of {} KiB cannot be had{why}; lower `size-kib`, or raise the sysctl fs.pipe-max-size",
                bytes / 1024
            )));
        }
        let nowhere = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Failure::Refused(format!("/dev/null cannot be opened: {error}")))?;
        Ok(Pipe { file: memory_file(bytes)?, reader, writer, nowhere, bytes, pipe_bytes })
    }
}

impl Path for Pipe {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        move |holds| {
            let mut offset = 0;
            // It would wait for ever in a pipe that is full, with nobody else to empty it.
            let flags = SpliceFlags::NONBLOCK;
            let put =
                timed(holds, || splice(&self.file, Some(&mut offset), &self.writer, None, self.bytes, flags));
            whole("splice into the pipe", put.map_err(|error| broken("splice", error))?, self.bytes)?;
            let got = splice(&self.reader, None, &self.nowhere, None, self.bytes, flags);
            whole("splice out of the pipe", got.map_err(|error| broken("splice", error))?, self.bytes)
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        move || {
            let start_ns = now_ns();
            let size = fcntl_getpipe_size(&self.writer).map_err(|error| broken("fcntl", error))?;
            let wait_ns = now_ns().saturating_sub(start_ns);
            match size == self.pipe_bytes {
                true => Ok(wait_ns),
                false => Err(Failure::Invariant(format!(
                    "the waiter saw a pipe of {size} bytes, which has {}",
                    self.pipe_bytes
                ))),
            }
        }
    }

    fn check(self, _: u64, _: u64) -> Result<(), Failure> {
        Ok(())
    }
}

/// The rwsem of the address space: the owner populates a mapping, for which it has the lock as one of many readers; the waiter
/// maps a page, which needs it alone.
pub struct Mmap {
    area: Area,
    /// Pages that were faulted in.
    faults: AtomicU64,
}

impl Mmap {
    /// A mapping of so many bytes.
    pub fn new(bytes: usize) -> Result<Mmap, Failure> {
        let refused = |error| Failure::Refused(format!("no {} KiB can be mapped: {error}", bytes / 1024));
        let area = Area::new(bytes).map_err(refused)?;
        // One page is one fault.
        let _ = area.advise(Advice::LinuxNoHugepage);
        area.advise(Advice::LinuxPopulateWrite).map_err(|error| match error {
            Errno::INVAL => Failure::Refused("`over=mmap` needs Linux 5.14, for MADV_POPULATE_WRITE".into()),
            error => refused(error),
        })?;
        Ok(Mmap { area, faults: AtomicU64::new(0) })
    }

    fn pages(&self) -> u64 {
        (self.area.bytes / page_size()) as u64
    }
}

impl Path for Mmap {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        move |holds| {
            self.area.advise(Advice::LinuxDontNeed).map_err(|error| broken("madvise", error))?;
            let before = minor_faults();
            timed(holds, || self.area.advise(Advice::LinuxPopulateWrite))
                .map_err(|error| broken("madvise", error))?;
            self.faults.fetch_add(minor_faults().saturating_sub(before), Ordering::Relaxed);
            Ok(())
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        move || {
            let start_ns = now_ns();
            let page = Area::new(page_size()).map_err(|error| broken("mmap", error))?;
            let wait_ns = now_ns().saturating_sub(start_ns);
            drop(page);
            Ok(wait_ns)
        }
    }

    fn check(self, holds: u64, _: u64) -> Result<(), Failure> {
        let (faults, wanted) = (self.faults.load(Ordering::Relaxed), holds * self.pages());
        match faults >= wanted {
            true => Ok(()),
            false => Err(Failure::Invariant(format!("{faults} pages were faulted in, of {wanted}"))),
        }
    }
}

/// A private mapping.
struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nobody reads or writes what is in it, and the calls that take its address may come from any thread.
unsafe impl Sync for Area {}

impl Area {
    fn new(bytes: usize) -> Result<Area, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
        NonNull::new(start.cast()).map(|start| Area { start, bytes }).ok_or(Errno::NOMEM)
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is the mapping, whose content means nothing to anybody.
        unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Faults of the calling thread for which nothing had to be read.
fn minor_faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::uninit();
    // SAFETY: the kernel fills a structure of the size that it is given here.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: the call succeeded.
    let usage: libc::rusage = unsafe { usage.assume_init() };
    usage.ru_minflt as u64
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let error = once(mmap(), 2, 1).unwrap_err().to_string();
        assert!(error.contains("8 pages were faulted in, of 16"), "{error}");
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
