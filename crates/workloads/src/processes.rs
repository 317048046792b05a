//! Child processes of a trial: forked from its single thread, bound to die with it, and always reaped.

use machine::{Rusage, Whose};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getppid, kill_process, set_parent_process_death_signal, wait,
    waitpid,
};
use std::collections::HashSet;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The children that were forked and not yet reaped. Dropping it kills and reaps the rest.
#[derive(Debug, Default)]
pub struct Children {
    alive: HashSet<Pid>,
}

impl Children {
    /// Forks a child that runs `body` and leaves with the status that it returns, without any clean-up of this
    /// program. The child is killed when this thread ends.
    ///
    /// # Errors
    /// When the kernel refuses another process.
    pub fn fork(&mut self, body: impl FnOnce() -> u8) -> io::Result<()> {
        self.alive.insert(fork(body)?);
        Ok(())
    }

    /// Waits until all have ended. Stops at the first that did not leave with status 0, and says how it ended;
    /// the others are then killed when this value is dropped.
    ///
    /// # Errors
    /// How the first bad one ended.
    pub fn wait_all(&mut self) -> Result<(), String> {
        while !self.alive.is_empty() {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => self.reaped(pid, status)?,
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(format!("waiting for the children failed: {error}")),
            }
        }
        Ok(())
    }

    /// Reaps those that have already ended, without waiting.
    ///
    /// # Errors
    /// How the first one ended that did not leave with status 0.
    pub fn reap_ended(&mut self) -> Result<(), String> {
        while !self.alive.is_empty() {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.reaped(pid, status)?,
                Ok(None) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(format!("waiting for the children failed: {error}")),
            }
        }
        Ok(())
    }

    fn reaped(&mut self, pid: Pid, status: WaitStatus) -> Result<(), String> {
        if !self.alive.remove(&pid) {
            return Ok(());
        }
        match ending(ExitStatus::from_raw(status.as_raw())) {
            None => Ok(()),
            Some(how) => Err(format!("process {} of the workload {how}", pid.as_raw_nonzero())),
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for pid in &self.alive {
            // It may have ended by itself.
            let _ = kill_process(*pid, Signal::KILL);
        }
        for pid in &self.alive {
            while let Err(Errno::INTR) = waitpid(Some(*pid), WaitOptions::empty()) {}
        }
    }
}

/// Forks a child that does nothing but leave with `status`. It is for the caller to reap.
///
/// # Errors
/// When the kernel refuses another process.
pub fn fork_to_leave(status: u8) -> io::Result<Pid> {
    // SAFETY: The child calls nothing but `_exit`, which is allowed after a fork whatever other threads did.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => leave(status),
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::Other.into()),
    }
}

/// Forks a child that runs `body` and leaves with the status that it returns, without any clean-up of this program. The
/// child is killed when this thread ends. Whoever calls has to reap it.
///
/// # Errors
/// When the kernel refuses another process.
pub fn fork(body: impl FnOnce() -> u8) -> io::Result<Pid> {
    let parent = rustix::process::getpid();
    // SAFETY: The child shares nothing but what it maps as shared. It runs `body` and leaves by `_exit`,
    // also when `body` panics, so it never returns into the frames that it copied. A trial has a single
    // thread when it forks, so no lock can be held by a thread that the child does not have; where a test
    // forks in a process with more threads, the bodies only make system calls on memory that they already
    // own.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let _no_way_back = LeaveOnUnwind;
            let bound = set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have died before the signal was asked for.
            if bound.is_err() || getppid() != Some(parent) {
                leave(PANICKED);
            }
            leave(body())
        }
        child => Pid::from_raw(child).ok_or_else(|| io::Error::other("fork gave no process id")),
    }
}

/// The status of a child whose body panicked or whose parent was already gone.
const PANICKED: u8 = 101;

/// A panic must not unwind into frames that belong to the parent.
struct LeaveOnUnwind;

impl Drop for LeaveOnUnwind {
    fn drop(&mut self) {
        leave(PANICKED)
    }
}

fn leave(status: u8) -> ! {
    // SAFETY: `_exit` takes any number, and it does not return.
    unsafe { libc::_exit(status.into()) }
}

/// How a process ended, as a clause; `None` for status 0.
pub fn ending(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("left with status {code}")),
        (None, Some(signal)) => Some(format!("was killed by signal {signal}{}", signal_name(signal))),
        (None, None) => Some(format!("ended in a way that wait does not explain ({status})")),
    }
}

/// The name of a signal in parentheses, or nothing where it has none.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGSYS => "SIGSYS",
        _ => return String::new(),
    };
    format!(" ({name})")
}

/// What the children that have been reaped used, with their own reaped children; nothing where the kernel does not tell.
pub fn usage_of_children() -> Rusage {
    machine::rusage(Whose::Children).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use std::fs;
    use std::io::{Read, Write};
    use std::time::Duration;

    #[test]
    fn p4_exact_status_and_signal() {
        alone("processes::tests::p4_exact_status_and_signal", || {
            let ended = |body: fn() -> u8| {
                leaving_nothing(|| {
                    let mut children = Children::default();
                    children.fork(body).unwrap();
                    children.wait_all()
                })
            };
            assert_eq!(ended(|| 0), Ok(()));
            assert!(ended(|| 3).unwrap_err().ends_with("left with status 3"));
            assert!(ended(|| panic!("on purpose")).unwrap_err().ends_with("left with status 101"));
            let killed = ended(|| {
                kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
                0
            });
            assert!(killed.unwrap_err().ends_with("was killed by signal 9 (SIGKILL)"));
        });
    }

    #[test]
    fn p2_no_child_outlives_its_parent() {
        alone("processes::tests::p2_no_child_outlives_its_parent", || {
            let (mut reader, mut writer) = io::pipe().unwrap();
            let mut children = Children::default();
            let body = || {
                let mut grandchildren = Children::default();
                grandchildren
                    .fork(|| {
                        writer.write_all(&std::process::id().to_ne_bytes()).unwrap();
                        std::thread::sleep(Duration::from_secs(600));
                        0
                    })
                    .unwrap();
                std::thread::sleep(Duration::from_secs(600));
                0
            };
            children.fork(body).unwrap();
            let mut pid = [0; 4];
            reader.read_exact(&mut pid).unwrap();
            drop(children);
            let stat = format!("/proc/{}/stat", u32::from_ne_bytes(pid));
            // Nobody may reap it here, so a zombie counts as gone.
            while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "))
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}
