//! What tasks write to and read from.

use crate::Failure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A pair of connected stream sockets.
    Socket,
    /// A pipe.
    Pipe,
}

/// Both ends of a channel.
#[derive(Debug)]
pub struct Channel {
    pub reader: OwnedFd,
    pub writer: OwnedFd,
}

impl Channel {
    pub fn open(transport: Transport) -> Result<Channel, Failure> {
        let ends = match transport {
            Transport::Socket => UnixStream::pair().map(|(reader, writer)| (reader.into(), writer.into())),
            Transport::Pipe => io::pipe().map(|(reader, writer)| (reader.into(), writer.into())),
        };
        let (reader, writer) =
            ends.map_err(|error| Failure::Refused(format!("a channel could not be opened: {error}")))?;
        Ok(Channel { reader, writer })
    }
}

/// The two channels by which all tasks start together: each writes one byte to `ready`, then polls `wake`, to
/// which one byte is written that nobody reads.
#[derive(Debug)]
pub struct Start {
    ready: Channel,
    wake: Channel,
    cancelled: AtomicBool,
}

impl Start {
    pub fn new(transport: Transport) -> Result<Start, Failure> {
        Ok(Start {
            ready: Channel::open(transport)?,
            wake: Channel::open(transport)?,
            cancelled: AtomicBool::new(false),
        })
    }

    /// What a task does before its work.
    ///
    /// # Errors
    /// `ECANCELED` when the others could not be started.
    pub fn arrive_and_wait(&self) -> Result<(), Errno> {
        while let Err(error) = rustix::io::write(&self.ready.writer, b"*") {
            if error != Errno::INTR {
                return Err(error);
            }
        }
        while let Err(error) = poll(&mut [PollFd::new(&self.wake.reader, PollFlags::IN)], None) {
            if error != Errno::INTR {
                return Err(error);
            }
        }
        if self.cancelled.load(Ordering::Acquire) { Err(Errno::CANCELED) } else { Ok(()) }
    }

    /// Waits until `tasks` tasks have arrived. `all_well` is asked five times a second whether one has been
    /// lost.
    pub fn wait_for_all(
        &self,
        tasks: usize,
        mut all_well: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let broken = |error: Errno| Failure::Refused(format!("waiting for the tasks failed: {error}"));
        let mut arrived = 0;
        let mut bytes = [0_u8; 4096];
        let patience = rustix::time::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        while arrived < tasks {
            match poll(&mut [PollFd::new(&self.ready.reader, PollFlags::IN)], Some(&patience)) {
                Ok(0) => all_well()?,
                Ok(_) => match rustix::io::read(&self.ready.reader, &mut bytes[..]) {
                    Ok(count) => arrived += count,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(broken(error)),
                },
                Err(Errno::INTR) => {}
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(())
    }

    /// Lets all tasks go: one byte, which stays in the channel.
    pub fn wake(&self) -> Result<(), Failure> {
        match rustix::io::write(&self.wake.writer, b"*") {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Refused(format!("the wake-up byte could not be written: {error}"))),
        }
    }

    /// Lets all threads that have arrived, or still will, leave without doing their work.
    pub fn cancel(&self) -> Result<(), Failure> {
        self.cancelled.store(true, Ordering::Release);
        self.wake()
    }
}
