//! Tests of channels: a task writes and reads back, or asks whether it could.

use super::{Site, Test, broken};
use crate::Failure;
use crate::counting::{Counted, Task};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{ioctl_fionread, read, write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub const TESTS: &[Test] = &[
    Test::new("eventfd1", "write to and read from an own eventfd", eventfd1).with_channels(1),
    Test::new("poll1", "poll of an own file, without waiting", poll1).with_files(1),
    Test::new("poll2", "poll of 128 own files, without waiting", poll2).with_files(128),
    Test::new("pipe1", "write of a byte to an own pipe and read of it", pipe1).with_channels(2),
    Test::new("unix1", "write of a byte to an own pair of UNIX sockets and read of it", unix1)
        .with_channels(2),
];

fn eventfd1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let event = eventfd(0, EventfdFlags::empty()).map_err(|error| broken("eventfd", error))?;
        to_and_fro(task, &event, &event, &1_u64.to_ne_bytes())?;
        // It is 0 after each read, so that it cannot be read again.
        match ready(&mut [polled(&event, libc::POLLIN)]) {
            0 => Ok(()),
            _ => Err(Failure::Invariant("the eventfd is not 0 at the end".into())),
        }
    })
}

fn pipe1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let (reader, writer) = std::io::pipe().map_err(|error| broken("pipe", error))?;
        to_and_fro(task, &reader, &writer, &[0])?;
        empty(&reader)
    })
}

fn unix1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let (reader, writer) = UnixStream::pair().map_err(|error| broken("socketpair", error))?;
        to_and_fro(task, &reader, &writer, &[0])?;
        empty(&reader)
    })
}

/// Writes the message and reads it back.
fn to_and_fro(task: &Task, reader: &impl AsFd, writer: &impl AsFd, message: &[u8]) -> Result<(), Failure> {
    let mut buffer = [0; 8];
    let buffer = buffer.get_mut(..message.len()).unwrap_or_default();
    task.repeat(1, || {
        let written = write(writer, message).map_err(|error| broken("write", error))?;
        let got = read(reader, &mut *buffer).map_err(|error| broken("read", error))?;
        match written == message.len() && got == message.len() {
            true => Ok(()),
            false => Err(Failure::Invariant(format!("{written} bytes were written and {got} read"))),
        }
    })
}

/// The invariant of a channel: all that was written has been read.
fn empty(channel: &impl AsFd) -> Result<(), Failure> {
    match ioctl_fionread(channel) {
        Ok(0) => Ok(()),
        left => Err(Failure::Invariant(format!("the channel is not empty at the end: {left:?}"))),
    }
}

fn poll1(site: &Site) -> Result<Counted, Failure> {
    polls::<1>(site, libc::POLLOUT)
}

fn poll2(site: &Site) -> Result<Counted, Failure> {
    polls::<128>(site, libc::POLLOUT)
}

/// Polls `N` files for `events`, all of which a file always has if it is to be written.
fn polls<const N: usize>(site: &Site, events: libc::c_short) -> Result<Counted, Failure> {
    site.run(|task| {
        let file = |n| site.directory()?.unnamed_file(&format!("{}.{n}", task.index()));
        let files = (0..N).map(file).collect::<Result<Vec<OwnedFd>, Failure>>()?;
        let descriptors: [libc::c_int; N] =
            std::array::from_fn(|n| files.get(n).map_or(-1, AsRawFd::as_raw_fd));
        task.repeat(1, || {
            let mut polled = descriptors.map(|fd| libc::pollfd { fd, events, revents: 0 });
            match ready(&mut polled) {
                ready if ready == N as libc::c_int => Ok(()),
                ready => Err(Failure::Invariant(format!("poll found {ready} of {N} files ready"))),
            }
        })
    })
}

fn polled(file: &impl AsRawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 }
}

/// How many are ready, without waiting. The call is poll itself, where safe interfaces take ppoll.
#[inline]
fn ready(polled: &mut [libc::pollfd]) -> libc::c_int {
    // SAFETY: the kernel reads and writes as many as the slice has.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::{UNTIL_IT_FAILS, patiently};
    use crate::scale::tests::site;
    use crate::shared::{Mode, Semantics};
    use std::io::Write;

    #[test]
    fn what_was_not_read_and_a_file_that_is_not_ready_are_found() {
        alone("scale::ipc::tests::what_was_not_read_and_a_file_that_is_not_ready_are_found", || {
            for mode in [Mode::Process, Mode::Thread] {
                let one_more = |task: &Task| {
                    let (reader, mut writer) = std::io::pipe().unwrap();
                    writer.write_all(&[1]).unwrap();
                    to_and_fro(task, &reader, &writer, &[0])?;
                    empty(&reader)
                };
                let run = |runtime| {
                    let site = site(mode, Semantics::Original, runtime);
                    leaving_nothing(|| site.run(one_more))
                };
                let error = patiently(run).unwrap_err().to_string();
                assert!(error.contains("not empty at the end: Ok(1)"), "{error}");
                let site = site(mode, Semantics::Original, UNTIL_IT_FAILS);
                // No file has this event.
                let error = leaving_nothing(|| polls::<3>(&site, libc::POLLPRI)).unwrap_err().to_string();
                assert!(error.contains("0 of 3 files"), "{error}");
            }
        });
    }
}
