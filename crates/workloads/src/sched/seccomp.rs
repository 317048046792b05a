//! System calls that another process answers: seccomp's user notification.

use crate::Failure;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::set_no_new_privs;
use std::io;

/// What the caller of a system call gets that was answered.
pub const ANSWER: i64 = i32::MAX as i64;

/// Has the next ioctl on the listener wake the caller on the CPU of who answers.
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// Where the system calls arrive that wait for an answer.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// From here on every call of system call `number` by this thread, and by what it forks, waits for an answer. That
    /// cannot be undone. The thread loses the right to gain privileges.
    ///
    /// # Errors
    /// When the kernel lacks what that needs, or does not allow it here.
    pub fn install(number: libc::c_long) -> Result<Listener, Failure> {
        set_no_new_privs(true)
            .map_err(|error| Failure::Refused(format!("no_new_privs cannot be set: {error}")))?;
        // Load the number of the call; if it is this one, notify, and else allow.
        let instruction = |code: u32, when: (u8, u8), k: u32| libc::sock_filter {
            code: code as u16,
            jt: when.0,
            jf: when.1,
            k,
        };
        let mut filter = [
            instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), 0),
            instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, (0, 1), number as u32),
            instruction(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_USER_NOTIF),
            instruction(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: The program and its filter outlive the call, which copies them.
        let listener = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        if listener < 0 {
            return Err(unavailable(&io::Error::last_os_error()));
        }
        // SAFETY: The kernel has just made this descriptor, and nobody else knows it.
        Ok(Listener(unsafe { OwnedFd::from_raw_fd(listener as i32) }))
    }

    /// Has callers woken on the CPU of who answers.
    ///
    /// # Errors
    /// Before Linux 6.6.
    pub fn wake_in_step(&self) -> Result<(), Failure> {
        // SAFETY: This ioctl takes a number in the place of a pointer.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) } {
            0 => Ok(()),
            _ => Err(Failure::Refused(format!(
                "sync=on needs SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP of Linux 6.6: {}; leave it out, or take a newer kernel",
                io::Error::last_os_error()
            ))),
        }
    }

    /// Waits for a call of system call `number`.
    ///
    /// # Errors
    /// What the kernel said; `EBADMSG` when another system call came.
    #[inline]
    pub fn receive(&self, number: libc::c_long) -> Result<Call, Errno> {
        // SAFETY: All bits of this structure mean something, also none. The kernel wants it empty.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: The structure outlives the call, which fills it.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) })?;
        if libc::c_long::from(call.data.nr) == number { Ok(Call(call.id)) } else { Err(Errno::BADMSG) }
    }

    /// Lets a call return with [`ANSWER`].
    ///
    /// # Errors
    /// What the kernel said.
    #[inline]
    pub fn answer(&self, call: Call) -> Result<(), Errno> {
        let mut answer = libc::seccomp_notif_resp { id: call.0, val: ANSWER, error: 0, flags: 0 };
        // SAFETY: The structure outlives the call, which reads it.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) })
    }
}

/// A system call that waits for its answer.
#[derive(Debug)]
pub struct Call(u64);

#[inline]
fn checked(status: libc::c_int) -> Result<(), Errno> {
    match status {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Makes sure that the kernel can do all this, without leaving a filter behind.
///
/// # Errors
/// What it lacks.
pub fn probe(sync: bool) -> Result<(), Failure> {
    /// No system call has this number, so that the thread is not stopped at its end.
    const NONE: libc::c_long = 0x3fff_ffff;
    // A filter binds the thread that installs it, and what that starts, and ends with it.
    let probe =
        || Listener::install(NONE).and_then(|listener| if sync { listener.wake_in_step() } else { Ok(()) });
    std::thread::scope(|scope| scope.spawn(probe).join())
        .unwrap_or_else(|_| Err(Failure::Invariant("the thread that tried seccomp panicked".into())))
}

fn unavailable(error: &io::Error) -> Failure {
    let cause = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel is built without CONFIG_SECCOMP_FILTER",
        Some(libc::EINVAL) => "user notification came with Linux 5.0",
        Some(libc::EBUSY) => {
            "this process already runs under a filter with a listener, as in some containers"
        }
        _ => "a container or a security module may forbid it",
    };
    Failure::Refused(format!("no filter with SECCOMP_RET_USER_NOTIF can be installed: {error}; {cause}"))
}
