use super::{broken, memory_file, timed, whole};
use crate::Failure;
use crate::clock::now_ns;
use crate::inversion::path::Path;
use crate::times::Times;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};
use std::os::fd::OwnedFd;

/// The mutex of a pipe: the owner splices a file into it and out again, the waiter asks for its size.
pub struct Pipe {
    pub(super) file: OwnedFd,
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
