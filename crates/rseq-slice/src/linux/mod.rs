//! The extension on Linux on x86-64.

mod calls;
mod libc_area;
mod registration;
mod uapi;

pub use registration::{Registration, is_registered};

use crate::{Absent, Errno, Sizes};
use uapi::{AT_RSEQ_ALIGN, AT_RSEQ_FEATURE_SIZE};

/// Gives the CPU back; false where no grant was left.
pub fn give_back() -> bool {
    // The call was tried when the extension was enabled.
    calls::slice_yield() == Ok(true)
}

/// Sizes of rseq areas on this kernel and of this libc.
pub fn sizes() -> Sizes {
    let entry = |kind: u64| {
        // SAFETY: the call takes and gives only numbers.
        Some(unsafe { libc::getauxval(kind) }).filter(|value| *value > 0)
    };
    Sizes {
        kernel_bytes: entry(AT_RSEQ_FEATURE_SIZE),
        kernel_alignment: entry(AT_RSEQ_ALIGN),
        libc_bytes: libc_area::registered_bytes(),
    }
}

fn refused(call: &'static str, errno: Errno) -> Absent {
    match errno.0 {
        libc::ENOSYS if call == "rseq" => Absent::NoRseq,
        libc::ENOSYS | libc::EPERM | libc::EACCES => Absent::Forbidden { call, errno },
        _ => Absent::Failed { call, errno },
    }
}
