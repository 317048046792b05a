//! Lines from a descriptor, with a deadline and without a thread.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Longest line that is taken: beyond it the other end is not one of ours.
const LONGEST: usize = 256 << 20;

/// Splits what a descriptor yields into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    scanned: usize,
}

impl Lines {
    /// The next whole line that is already here, without its newline.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let newline = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(length) = newline.map(|place| self.scanned + place) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line: Vec<u8> = self.buffer.drain(..=length).collect();
        line.pop();
        self.scanned = 0;
        Some(line)
    }

    /// Takes what the descriptor has now; false at its end.
    pub(crate) fn fill(&mut self, from: BorrowedFd<'_>) -> io::Result<bool> {
        let mut chunk = [0; 64 << 10];
        let read = match rustix::io::read(from, &mut chunk) {
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        self.buffer.extend_from_slice(&chunk[..read]);
        if self.buffer.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line of more than 256 MiB"));
        }
        Ok(read > 0)
    }

    /// What is here of a line that has not ended.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer
    }
}

/// Waits until one of `descriptors` can be read or has ended, at most until `until`. Says which.
pub(crate) fn wait_readable(descriptors: &[BorrowedFd<'_>], until: Instant) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> =
        descriptors.iter().map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
    let left = until.saturating_duration_since(Instant::now()).min(Duration::from_secs(3600));
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    #[test]
    fn lines_may_arrive_in_any_pieces() {
        let (read, write) = pipe().unwrap();
        let mut lines = Lines::default();
        rustix::io::write(&write, b"one\ntw").unwrap();
        assert!(lines.fill(read.as_fd()).unwrap());
        assert_eq!(lines.next().unwrap(), b"one");
        assert!(lines.next().is_none());
        rustix::io::write(&write, b"o\n\nthree").unwrap();
        lines.fill(read.as_fd()).unwrap();
        assert_eq!(lines.next().unwrap(), b"two");
        assert_eq!(lines.next().unwrap(), b"");
        assert!(lines.next().is_none());
        drop(write);
        assert!(!lines.fill(read.as_fd()).unwrap());
        assert_eq!(lines.rest(), b"three");
    }
}
