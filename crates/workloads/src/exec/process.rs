//! One execution of a command.

use super::command_line::CommandLine;
use super::stream::Stream;
use crate::Failure;
use crate::clock::{elapsed_ns, now_ns};
use crate::descendants::end_all_children;
use crate::originals::{die_with_parent, failed_command};
use crate::processes::usage_of_children;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

/// A command that left with status 0.
#[derive(Debug)]
pub struct Ended {
    pub time_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub max_rss_mib: f64,
    pub stdout: String,
    pub stderr: String,
    /// Processes that it left running.
    pub left_behind: usize,
}

/// Runs `command` to its end. Processes that it leaves behind are killed.
///
/// # Errors
/// When it cannot be started, and when it does not leave with status 0: the error has the status or signal.
pub fn run(command: &CommandLine) -> Result<Ended, Failure> {
    let refused = |error: io::Error| Failure::Refused(format!("`{}`: {error}", command.in_words()));
    let (mut stdout, stdout_writer) = Stream::new().map_err(refused)?;
    let (mut stderr, stderr_writer) = Stream::new().map_err(refused)?;
    let mut process = Command::new(&command.program);
    process.args(&command.arguments).stdin(Stdio::null()).stdout(stdout_writer).stderr(stderr_writer);
    die_with_parent(&mut process);
    // Processes that outlive their parents come to this one, which can then account for them and end them.
    set_child_subreaper(Some(getpid())).map_err(|error| refused(error.into()))?;
    let before = usage_of_children();

    let start_ns = now_ns();
    let mut child = process.spawn().map_err(|error| {
        Failure::Refused(format!("`{}` could not be started: {error}", command.in_words()))
    })?;
    // Its copies of the writing ends would keep the streams open.
    drop(process);
    read_until_end(&child, &mut stdout, &mut stderr).map_err(refused)?;
    let status = child.wait().map_err(refused)?;
    let end_ns = now_ns();

    let left_behind = end_all_children();
    let after = usage_of_children();
    stdout.take_in().and_then(|()| stderr.take_in()).map_err(refused)?;
    let (stdout, stderr) = (stdout.into_text(), stderr.into_text());
    if let Some(failure) = failed_command(&command.in_words(), status, &stdout, &stderr) {
        return Err(failure);
    }
    Ok(Ended {
        time_s: elapsed_ns(start_ns, end_ns)? as f64 / 1e9,
        user_s: (after.user_ns as f64 - before.user_ns as f64) / 1e9,
        system_s: (after.system_ns as f64 - before.system_ns as f64) / 1e9,
        max_rss_mib: after.max_rss_bytes as f64 / f64::from(1 << 20),
        stdout,
        stderr,
        left_behind,
    })
}

/// Takes in what the process prints until it ends.
fn read_until_end(child: &Child, stdout: &mut Stream, stderr: &mut Stream) -> io::Result<()> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let streams = [&*stdout, &*stderr].into_iter().filter_map(Stream::open_end);
        let ends = [process.as_fd()].into_iter().chain(streams);
        let mut waited: Vec<PollFd> = ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)).collect();
        match poll(&mut waited, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if waited.first().is_some_and(|process| !process.revents().is_empty()) {
            return Ok(());
        }
        stdout.take_in()?;
        stderr.take_in()?;
    }
}
