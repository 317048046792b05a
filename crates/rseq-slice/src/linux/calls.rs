//! The system calls. Errors are the kernel's numbers.

use super::uapi::{
    PR_RSEQ_SLICE_EXT_ENABLE, PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_GET,
    PR_RSEQ_SLICE_EXTENSION_SET, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE, SYS_RSEQ_SLICE_YIELD,
};
use crate::Errno;
use crate::area::Area;
use std::io;
use std::ptr::NonNull;

/// Registers an area for the calling thread.
///
/// # Safety
/// `bytes` from `area` on must stay what they are until the area is unregistered or the thread has ended, and whoever reads
/// or writes them must expect the kernel to do so, too.
pub unsafe fn register(area: NonNull<Area>, bytes: u64) -> Result<(), Errno> {
    // SAFETY: the kernel touches nothing but the area, of which the caller takes care.
    let answer = unsafe { libc::syscall(libc::SYS_rseq, area.as_ptr(), bytes, 0_i64, RSEQ_SIGNATURE) };
    value(answer).map(drop)
}

/// Unregisters an area of the calling thread. Fails if it is not just this that is registered.
pub fn unregister(area: NonNull<Area>, bytes: u64) -> Result<(), Errno> {
    // SAFETY: the kernel compares the address with that of the registered area, and writes only to the latter.
    let answer =
        unsafe { libc::syscall(libc::SYS_rseq, area.as_ptr(), bytes, RSEQ_FLAG_UNREGISTER, RSEQ_SIGNATURE) };
    value(answer).map(drop)
}

/// Turns the extension of the calling thread on or off.
pub fn set_extension(on: bool) -> Result<(), Errno> {
    prctl(PR_RSEQ_SLICE_EXTENSION_SET, if on { PR_RSEQ_SLICE_EXT_ENABLE } else { 0 }).map(drop)
}

/// Whether the extension of the calling thread is turned on.
pub fn has_extension() -> Result<bool, Errno> {
    prctl(PR_RSEQ_SLICE_EXTENSION_GET, 0).map(|answer| answer == PR_RSEQ_SLICE_EXT_ENABLE)
}

/// Gives the CPU back; false where no grant was left.
pub fn slice_yield() -> Result<bool, Errno> {
    // SAFETY: the call takes and gives only numbers.
    value(unsafe { libc::syscall(SYS_RSEQ_SLICE_YIELD) }).map(|answer| answer == 1)
}

fn prctl(command: u64, argument: u64) -> Result<u64, Errno> {
    // SAFETY: the call takes and gives only numbers.
    let answer = unsafe { libc::prctl(PR_RSEQ_SLICE_EXTENSION, command, argument, 0_u64, 0_u64) };
    value(answer.into())
}

fn value(answer: i64) -> Result<u64, Errno> {
    u64::try_from(answer).map_err(|_| Errno(io::Error::last_os_error().raw_os_error().unwrap_or(0)))
}
