//! Processes: forked, replaced, signalled; jumps out of many frames; what a process asks about itself.

use super::jump;
use super::user::failed;
use crate::Failure;
use crate::originals::on_path;
use crate::processes::Children;
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::ClockId;
use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// 100 times: a process is forked, ends at once, and is waited for.
pub fn fork_test() -> Result<(), Failure> {
    for _ in 0..100 {
        forked(|| 0)?;
    }
    Ok(())
}

/// Five times: a process is forked and becomes `true`.
pub fn exec_test() -> Result<(), Failure> {
    let path = on_path("true").ok_or_else(|| Failure::Refused("`true` is not on PATH".into()))?;
    let path = CString::new(path.as_os_str().as_bytes()).map_err(failed("the path of `true`"))?;
    for _ in 0..5 {
        forked(|| {
            // SAFETY: The path ends with a zero byte, and the list of arguments with a null pointer.
            unsafe { libc::execv(path.as_ptr(), [path.as_ptr(), std::ptr::null()].as_ptr()) };
            // It returns only where it fails.
            1
        })?;
    }
    Ok(())
}

fn forked(body: impl FnOnce() -> u8) -> Result<(), Failure> {
    let mut children = Children::default();
    children.fork(body).map_err(failed("a process cannot be forked"))?;
    children.wait_all().map_err(Failure::Invariant)
}

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_signal(signal: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: signal(2) may be called in a handler.
    unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
}

/// 1000 times: the process sends itself a signal, whose handler installs itself again.
pub fn signals() -> Result<(), Failure> {
    SIGNALS.store(0, Ordering::Relaxed);
    // SAFETY: The handler counts in an atomic and calls signal(2), which it may.
    unsafe { libc::signal(libc::SIGUSR2, on_signal as *const () as libc::sighandler_t) };
    for _ in 0..1000 {
        // A process with one thread has handled its signal when this returns.
        kill_process(getpid(), Signal::USR2).map_err(failed("no signal can be sent"))?;
    }
    // SAFETY: The default handling takes no function of ours.
    unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
    match SIGNALS.load(Ordering::Relaxed) {
        1000 => Ok(()),
        count => Err(Failure::Invariant(format!("{count} signals were handled, of 1000"))),
    }
}

/// 1000 jumps out of 10 frames.
pub fn jumps() -> Result<(), Failure> {
    for number in 1..=1000 {
        let landed = jump::out_of(10, black_box(number));
        if landed != number {
            return Err(Failure::Invariant(format!("a jump brought {landed} and not {number}")));
        }
    }
    Ok(())
}

/// Ten times a batch of questions about the process, its user and the machine.
pub fn miscellaneous() -> Result<(), Failure> {
    for _ in 0..10 {
        let directory = std::env::current_dir().map_err(failed("the working directory is not known"))?;
        let user = rustix::process::getuid();
        let ids = (rustix::process::geteuid(), rustix::process::getgid(), rustix::process::getegid());
        let processes = (getpid(), rustix::process::getppid());
        // SAFETY: This process has one thread, so nobody else uses the record that these return, and it is not used here.
        let known =
            unsafe { (libc::getpwuid(user.as_raw()).is_null(), libc::getgrgid(ids.1.as_raw()).is_null()) };
        let system = rustix::system::uname();
        black_box((directory, ids, processes, known, rustix::time::clock_gettime(ClockId::ProcessCPUTime)));
        if system.sysname().to_bytes() != b"Linux" {
            return Err(Failure::Invariant(format!("the system is called {:?}", system.sysname())));
        }
    }
    Ok(())
}
