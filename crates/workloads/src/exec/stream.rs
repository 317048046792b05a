//! One output stream of a command: a pipe, so that the command finds what it finds under a shell.

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// More than this is not kept: figures do not stand in it, and a command that prints without end must not take the
/// memory of the machine.
const LARGEST_BYTES: usize = 256 << 20;

/// The reading end, and what came through it so far.
#[derive(Debug)]
pub struct Stream {
    reader: Option<PipeReader>,
    bytes: Vec<u8>,
}

impl Stream {
    /// A stream, and the end that the command writes to.
    ///
    /// # Errors
    /// When no pipe can be made.
    pub fn new() -> io::Result<(Stream, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        Ok((Stream { reader: Some(reader), bytes: Vec::with_capacity(1 << 16) }, writer))
    }

    /// The end to wait for, until nobody can write to it any more.
    pub fn open_end(&self) -> Option<BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    /// Takes in what is there now.
    ///
    /// # Errors
    /// When reading fails, or the command has printed more than is kept.
    pub fn take_in(&mut self) -> io::Result<()> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let room = LARGEST_BYTES.saturating_sub(self.bytes.len()) as u64;
        match reader.take(room + 1).read_to_end(&mut self.bytes) {
            Ok(_) if self.bytes.len() > LARGEST_BYTES => Err(io::Error::other(format!(
                "it printed more than {} MiB; let it print less, or send that to a file",
                LARGEST_BYTES >> 20
            ))),
            Ok(_) => {
                self.reader = None;
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// All that came.
    pub fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
