//! Between processes, here within one: pipes, local sockets, System V shared memory and semaphores.

use super::user::{LARGEST, failed, pattern, sizes};
use crate::Failure;
use rustix::io::{Errno, read, write};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

/// Messages of a job.
const MESSAGES: usize = 99;

/// A pipe.
pub fn pipe() -> Result<(), Failure> {
    let (reader, writer) = io::pipe().map_err(failed("a pipe cannot be opened"))?;
    pass_messages(MESSAGES, &reader, &writer)
}

/// A pair of stream sockets.
pub fn stream() -> Result<(), Failure> {
    let (reader, writer) = UnixStream::pair().map_err(failed("a pair of sockets cannot be opened"))?;
    pass_messages(MESSAGES, &reader, &writer)
}

/// A pair of datagram sockets.
pub fn datagrams() -> Result<(), Failure> {
    let (reader, writer) = UnixDatagram::pair().map_err(failed("a pair of sockets cannot be opened"))?;
    pass_messages(MESSAGES, &reader, &writer)
}

/// Writes `messages` messages and reads each back before the next.
pub fn pass_messages(messages: usize, reader: &impl AsFd, writer: &impl AsFd) -> Result<(), Failure> {
    let sent = pattern();
    let mut received = [0; LARGEST];
    for size in sizes().take(messages) {
        let mut left = &sent[..size];
        while !left.is_empty() {
            match write(writer, left) {
                Ok(count) => left = &left[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("a message cannot be written")(error)),
            }
        }
        let mut count = 0;
        while count < size {
            match read(reader, &mut received[count..size]) {
                Ok(0) => {
                    return Err(Failure::Invariant(format!("{count} bytes of a message arrived, of {size}")));
                }
                Ok(more) => count += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::Invariant(format!("a message did not arrive: {error}"))),
            }
        }
        if received[..size] != sent[..size] {
            return Err(Failure::Invariant(format!("a message of {size} bytes arrived with others")));
        }
        received[..size].fill(0);
    }
    Ok(())
}

pub const SEGMENT_BYTES: usize = 64 << 10;

/// Makes a segment of shared memory and a semaphore, copies 100 times into it and out of it under the semaphore, and
/// removes both. Nothing is shared with another user but the kernel's tables of such objects.
pub fn shared_memory() -> Result<(), Failure> {
    let key = machine::system_v_key(std::process::id());
    let segment = Segment::make(key)?;
    let semaphore = Semaphore::make(key)?;
    let attached = segment.attach()?;
    semaphore.set(1)?;
    let sent = pattern();
    let mut received = [0; LARGEST];
    for size in sizes().take(100) {
        semaphore.add(-1)?;
        attached.write(&sent[..size]);
        semaphore.add(1)?;
        semaphore.add(-1)?;
        attached.read(&mut received[..size]);
        semaphore.add(1)?;
    }
    attached.detach()?;
    segment.remove()?;
    semaphore.remove()?;
    match received == sent {
        true => Ok(()),
        false => Err(Failure::Invariant("other bytes were read from the segment than written".into())),
    }
}

/// A segment of shared memory; removed at the latest when this is dropped.
struct Segment(Option<i32>);

impl Segment {
    fn make(key: i32) -> Result<Segment, Failure> {
        // SAFETY: Touches no memory of ours.
        match unsafe { libc::shmget(key, SEGMENT_BYTES, libc::IPC_CREAT | 0o600) } {
            -1 => Err(refused("no segment of shared memory can be made")),
            id => Ok(Segment(Some(id))),
        }
    }

    fn attach(&self) -> Result<Attached, Failure> {
        // SAFETY: The kernel chooses a place where nothing is.
        let start = unsafe { libc::shmat(self.0.unwrap_or(-1), ptr::null(), 0) };
        // The error is the address -1.
        match NonNull::new(start.cast::<AtomicU8>()) {
            Some(start) if start.as_ptr() as isize != -1 => Ok(Attached(start)),
            _ => Err(refused("the segment of shared memory cannot be attached")),
        }
    }

    fn remove(mut self) -> Result<(), Failure> {
        self.remove_once()
    }

    fn remove_once(&mut self) -> Result<(), Failure> {
        let Some(id) = self.0.take() else { return Ok(()) };
        // SAFETY: The command does not look at its last argument.
        match unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) } {
            -1 => Err(refused("the segment of shared memory cannot be removed")),
            _ => Ok(()),
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // The job has failed already.
        let _ = self.remove_once();
    }
}

/// The segment in this process; detached at the latest when this is dropped.
struct Attached(NonNull<AtomicU8>);

impl Attached {
    fn write(&self, bytes: &[u8]) {
        // SAFETY: The segment is larger than every message, and lies apart from the memory of this program. No
        // other process knows its key.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.as_ptr().cast(), bytes.len().min(SEGMENT_BYTES))
        };
    }

    fn read(&self, bytes: &mut [u8]) {
        // SAFETY: As above.
        unsafe {
            ptr::copy_nonoverlapping(
                self.0.as_ptr().cast(),
                bytes.as_mut_ptr(),
                bytes.len().min(SEGMENT_BYTES),
            )
        };
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    fn detach(self) -> Result<(), Failure> {
        let start = self.0.as_ptr();
        std::mem::forget(self);
        // SAFETY: It is attached here, and nothing borrows from it.
        match unsafe { libc::shmdt(start.cast()) } {
            -1 => Err(refused("the segment of shared memory cannot be detached")),
            _ => Ok(()),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: As above.
        let _ = unsafe { libc::shmdt(self.0.as_ptr().cast()) };
    }
}

/// A set of one semaphore; removed at the latest when this is dropped.
struct Semaphore(Option<i32>);

impl Semaphore {
    fn make(key: i32) -> Result<Semaphore, Failure> {
        // SAFETY: Touches no memory of ours.
        match unsafe { libc::semget(key, 1, libc::IPC_CREAT | 0o600) } {
            -1 => Err(refused("no semaphore can be made")),
            id => Ok(Semaphore(Some(id))),
        }
    }

    fn set(&self, value: libc::c_int) -> Result<(), Failure> {
        // SAFETY: The command takes a number as its last argument.
        match unsafe { libc::semctl(self.0.unwrap_or(-1), 0, libc::SETVAL, value) } {
            -1 => Err(refused("the semaphore cannot be set")),
            _ => Ok(()),
        }
    }

    fn add(&self, difference: libc::c_short) -> Result<(), Failure> {
        let mut operation = libc::sembuf { sem_num: 0, sem_op: difference, sem_flg: 0 };
        // SAFETY: One operation is given, and one is there.
        while unsafe { libc::semop(self.0.unwrap_or(-1), &mut operation, 1) } == -1 {
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(Failure::Invariant(format!("the semaphore has gone: {error}"))),
            }
        }
        Ok(())
    }

    fn remove(mut self) -> Result<(), Failure> {
        self.remove_once()
    }

    fn remove_once(&mut self) -> Result<(), Failure> {
        let Some(id) = self.0.take() else { return Ok(()) };
        // SAFETY: The command takes no argument.
        match unsafe { libc::semctl(id, 0, libc::IPC_RMID) } {
            -1 => Err(refused("the semaphore cannot be removed")),
            _ => Ok(()),
        }
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // The job has failed already.
        let _ = self.remove_once();
    }
}

fn refused(what: &str) -> Failure {
    let error = io::Error::last_os_error();
    let hint = match error.raw_os_error() {
        Some(libc::ENOSPC) => "; all objects that kernel.sem and kernel.shmmni allow are in use",
        _ => "",
    };
    Failure::Refused(format!("{what}: {error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_lost_or_changed_is_told() {
        let (reader, writer) = io::pipe().unwrap();
        let other = std::fs::File::options().write(true).open("/dev/null").unwrap();
        drop(writer);
        let lost = pass_messages(1, &reader, &other).unwrap_err();
        assert!(lost.to_string().ends_with("0 bytes of a message arrived, of 1"), "{lost}");
        let changed = pass_messages(2, &std::fs::File::open("/dev/zero").unwrap(), &other).unwrap_err();
        assert!(changed.to_string().contains("arrived with others"), "{changed}");
    }

    #[test]
    fn a_semaphore_that_goes_in_the_middle_is_told() {
        let key = machine::system_v_key(std::process::id());
        let semaphore = Semaphore::make(key).unwrap();
        semaphore.set(1).unwrap();
        semaphore.add(-1).unwrap();
        Semaphore(semaphore.0).remove().unwrap();
        let error = semaphore.add(1).unwrap_err();
        assert!(matches!(error, Failure::Invariant(_)), "{error}");
    }
}
