//! QEMU as a process that cannot outlive this one.

use super::VmError;
use agent::TOKEN_VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_parent_process_death_signal,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The emulator of PCs.
pub(super) const PROGRAM: &str = "qemu-system-x86_64";

/// A running QEMU. It ends when this is dropped; when the thread that started it ends, even by SIGKILL; and, should all
/// that fail, by the token in its environment at the next start of any kduel.
#[derive(Debug)]
pub(super) struct Qemu {
    child: Child,
    pidfd: OwnedFd,
}

impl Qemu {
    /// Starts it. `log` gets what it says.
    pub(super) fn start(
        arguments: &[OsString],
        input: Stdio,
        log: &File,
        token: &str,
    ) -> Result<Qemu, VmError> {
        let action = || format!("start {PROGRAM}");
        let failed = |error| VmError::Io { action: action(), error };
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .env(TOKEN_VARIABLE, token)
            .stdin(input)
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log.try_clone().map_err(failed)?)
            // A terminal's Ctrl-C is for the coordinator.
            .process_group(0);
        let coordinator = getpid();
        let tie = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have died before the kernel was told.
            match getppid() {
                Some(parent) if parent == coordinator => Ok(()),
                _ => Err(io::Error::from(Errno::SRCH)),
            }
        };
        // SAFETY: the closure makes two system calls and allocates nothing, which is what may be done between fork and
        // exec.
        unsafe { command.pre_exec(tie) };
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => VmError::NoQemu { program: PROGRAM },
            _ => failed(error),
        })?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Qemu { child, pidfd }),
            Err(error) => {
                end(&mut child);
                Err(failed(error.into()))
            }
        }
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A descriptor that is readable when it has ended.
    pub(super) fn ended(&self) -> io::Result<OwnedFd> {
        self.pidfd.try_clone()
    }

    /// Waits until it has ended, but not longer than that.
    pub(super) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let timeout =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        // A signal that cuts the wait short is one that asks this process to stop.
        let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&timeout));
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // Both fail only when it is gone already.
    let _ = child.kill();
    let _ = child.wait();
}

/// A file that is nowhere but in memory, for QEMU to read while this is kept.
#[derive(Debug)]
pub(super) struct MemoryFile {
    file: File,
}

impl MemoryFile {
    /// One with this content.
    pub(super) fn new(name: &str, content: &[u8]) -> Result<MemoryFile, VmError> {
        let made = memfd_create(name, MemfdFlags::CLOEXEC).map_err(io::Error::from).and_then(|memory| {
            let mut file = File::from(memory);
            file.write_all(content)?;
            Ok(MemoryFile { file })
        });
        made.map_err(|error| VmError::Io { action: format!("make a file in memory for the {name}"), error })
    }

    /// Its name for other processes of this user.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }
}
