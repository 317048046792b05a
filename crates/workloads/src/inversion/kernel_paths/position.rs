use super::{broken, memory_file, timed, whole};
use crate::Failure;
use crate::clock::now_ns;
use crate::inversion::path::Path;
use crate::times::Times;
use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::{Errno, read};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU8;

/// The mutex of a file position that threads share: the owner reads a file from its start to its end, the waiter asks for
/// the position.
pub struct Position {
    pub(super) file: OwnedFd,
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

    /// Reads the file as the owner does, into memory at which others may look meanwhile.
    ///
    /// # Errors
    /// When a call fails, or `buffer` is not as long as the file.
    pub fn read_to(&self, buffer: &[AtomicU8]) -> Result<(), Failure> {
        seek(&self.file, SeekFrom::Start(0)).map_err(|error| broken("lseek", error))?;
        let place = buffer.as_ptr().cast_mut().cast();
        // SAFETY: the kernel writes into bytes that live as long as the call, which may change under everybody's eyes.
        let got = unsafe { libc::read(self.file.as_raw_fd(), place, buffer.len()) };
        let got = usize::try_from(got).map_err(|_| {
            broken("read", Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
        })?;
        whole("read", got, self.bytes)
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
