//! Processes of a trial that outlived those who should have ended them, found by a mark in their environment.

use crate::Root;
use crate::owner::{self, Owner};
use experiment::Missing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, wait};
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long killed processes may take to be gone, and others that they started meanwhile to be found.
const PATIENCE: Duration = Duration::from_secs(2);

/// A process that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Its id.
    pub pid: u32,
    /// Its command line, shortened.
    pub command: String,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.command)
    }
}

/// A mark for the processes of a run, different from all others. It tells who made it, so that others can see whether
/// that process still lives.
///
/// # Errors
/// When this process cannot be described, since /proc is not there.
pub fn new_token(root: &Root) -> Result<String, Missing> {
    let owner = Owner::this(root).map_err(|error| Missing::because(error.to_string()))?;
    let random: u64 = fs::File::open("/dev/urandom")
        .and_then(|mut source| {
            let mut bytes = [0; 8];
            source.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
        })
        .map_err(|error| Missing::because(format!("cannot read /dev/urandom: {error}")))?;
    let namespace = owner::pid_namespace().unwrap_or_default();
    Ok(format!("{}.{}.{namespace}.{}.{random:016x}", owner.pid, owner.start_ticks, owner.boot))
}

/// Kills every process whose environment has `variable=token`, except this one, and waits until they are gone.
pub fn kill_strays(variable: &str, token: &str) -> Vec<Stray> {
    kill_where(variable, |found| found == token)
}

/// Kills every process whose environment has `variable` with the token of a process that is dead, and waits until
/// they are gone. What was marked in another boot or in another pid namespace cannot be judged and is left alone.
pub fn kill_ownerless(variable: &str) -> Vec<Stray> {
    let root = Root::real();
    let Ok(this) = Owner::this(&root) else { return Vec::new() };
    let namespace = owner::pid_namespace();
    kill_where(variable, |token| {
        let mut parts = token.split('.');
        let mut next = || parts.next();
        let (Some(pid), Some(start), Some(marked_in), Some(boot)) = (next(), next(), next(), next()) else {
            return false;
        };
        let (Ok(pid), Ok(start_ticks)) = (pid.parse(), start.parse()) else { return false };
        let here = namespace.as_deref() == Some(marked_in) && boot == this.boot;
        here && !Owner { pid, start_ticks, ..this.clone() }.runs(&root)
    })
}

fn kill_where(variable: &str, mut is_stray: impl FnMut(&str) -> bool) -> Vec<Stray> {
    let mut killed: Vec<Stray> = Vec::new();
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let mut doomed = Vec::new();
        for pid in owner::all_pids(&Root::real()) {
            if pid == std::process::id() {
                continue;
            }
            // The descriptor first: it keeps meaning this process, whatever becomes of the number.
            let Some(descriptor) = open(pid) else { continue };
            if mark(pid, variable).is_some_and(|token| is_stray(&token)) {
                doomed.push((pid, descriptor));
            }
        }
        if doomed.is_empty() {
            break;
        }
        for (pid, descriptor) in &doomed {
            let stray = Stray { pid: *pid, command: command(*pid) };
            if pidfd_send_signal(descriptor, Signal::KILL).is_ok()
                && !killed.iter().any(|known| known.pid == *pid)
            {
                killed.push(stray);
            }
        }
        wait_until_gone(doomed.into_iter().map(|(_, descriptor)| descriptor).collect());
    }
    killed
}

fn open(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

/// The value of a variable in the environment with which a process was started. A process that is dead and only
/// waits for its parent has none.
fn mark(pid: u32, variable: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = std::str::from_utf8(entry).ok()?.strip_prefix(variable)?.strip_prefix('=')?;
        Some(value.to_string())
    })
}

fn command(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&line).replace('\0', " ");
    words.trim().chars().take(80).collect()
}

fn wait_until_gone(descriptors: Vec<OwnedFd>) {
    let deadline = Instant::now() + PATIENCE;
    for descriptor in &descriptors {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        // Readable when the process has ended. A process that hangs in the kernel is not waited for longer.
        let _ = poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout));
    }
}

/// Whether this process has children that live. Those that are dead are waited for on the way.
pub fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Waits for the children of this process that are dead, also those that came to it as a subreaper, up to a few
/// seconds for those that are still dying. Says whether all are gone. For a process that is waiting for none of its
/// own.
pub fn reap_orphans() -> bool {
    let start = Instant::now();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => return true,
            Ok(None) if start.elapsed() > PATIENCE => return false,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
