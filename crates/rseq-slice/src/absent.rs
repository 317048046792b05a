use std::io;
use thiserror::Error;

/// Why a thread cannot have the extension, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Absent {
    /// Not Linux, or not x86-64.
    #[error("the time slice extension is used on Linux on x86-64 only")]
    Platform,
    /// The system call `rseq` is not there.
    #[error(
        "this kernel has no rseq, or a seccomp filter hides it; the time slice extension takes Linux 7.0 or newer with \
         CONFIG_RSEQ=y and CONFIG_RSEQ_SLICE_EXTENSION=y"
    )]
    NoRseq,
    /// The kernel does not know the extension.
    #[error(
        "this kernel is too old for the time slice extension; it takes Linux 7.0 or newer, built with \
         CONFIG_RSEQ_SLICE_EXTENSION=y"
    )]
    TooOld,
    /// The kernel knows the extension and was built without it.
    #[error(
        "this kernel was built without the time slice extension; it takes CONFIG_RSEQ_SLICE_EXTENSION=y, which is off \
         by default"
    )]
    NotBuilt,
    /// The kernel was booted with the extension turned off.
    #[error(
        "the time slice extension was turned off at boot; boot with rseq_slice_ext=1, or without that word"
    )]
    TurnedOff,
    /// Somebody else than libc has registered an area for this thread, and only the kernel knows where.
    #[error(
        "this thread has an rseq area that is not known here, so the time slice extension cannot be asked for there; \
         whoever has registered it must unregister it first (where it was a static libc: start the program with \
         GLIBC_TUNABLES=glibc.pthread.rseq=0)"
    )]
    Taken,
    /// A system call is forbidden.
    #[error("{call} is not permitted here ({}); seccomp filters, such as those of containers, do that", .errno.text())]
    Forbidden {
        /// The call.
        call: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
    /// A system call failed in a way that this crate does not know.
    #[error("{call} failed: {}", .errno.text())]
    Failed {
        /// The call.
        call: &'static str,
        /// What the kernel said.
        errno: Errno,
    },
}

/// A number of an error, as the kernel gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    fn text(self) -> String {
        io::Error::from_raw_os_error(self.0).to_string()
    }
}
