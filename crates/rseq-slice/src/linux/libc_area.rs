//! The area that the C library has registered for every thread.

use super::calls;
use crate::Errno;
use crate::area::{Area, LEGACY_BYTES};
use std::arch::asm;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

/// Libc's area of the calling thread.
#[derive(Debug, Clone, Copy)]
pub struct LibcArea {
    area: NonNull<Area>,
    bytes: u64,
}

impl LibcArea {
    /// The area, if libc has registered it for this thread and it is registered still. glibc says where since 2.35; no other
    /// libc registers any.
    pub fn of_this_thread() -> Option<LibcArea> {
        let bytes = registered_bytes()?;
        let offset = symbol::<isize>(c"__rseq_offset")?;
        let thread: *mut u8;
        // SAFETY: on x86-64 the first word of the thread's control block is its own address, for every thread of a libc.
        unsafe {
            asm!("mov {}, qword ptr fs:[0]", out(reg) thread, options(nostack, preserves_flags, readonly));
        }
        let area = NonNull::new(thread.wrapping_offset(offset).cast::<Area>())?;
        // SAFETY: glibc has so many bytes there as long as the thread lives, at least 32, aligned for the kernel.
        let cpu_id = unsafe { area.as_ref() }.cpu_id.load(Relaxed);
        // Negative before the registration, after its end, and where it failed.
        (cpu_id.cast_signed() >= 0).then_some(LibcArea { area, bytes })
    }

    pub fn area(&self) -> NonNull<Area> {
        self.area
    }

    /// Whether it is long enough for the extension.
    pub fn suffices(&self) -> bool {
        self.bytes > LEGACY_BYTES
    }

    pub fn unregister(&self) -> Result<(), Errno> {
        calls::unregister(self.area, self.bytes)
    }

    /// Registers it as libc had.
    pub fn register_again(&self) {
        // SAFETY: glibc keeps the area for as long as the thread lives, for just this. Where the kernel refuses, the area
        // says that it is not registered, and glibc does without.
        let _ = unsafe { calls::register(self.area, self.bytes) };
    }
}

/// How many bytes libc has registered for every thread.
pub fn registered_bytes() -> Option<u64> {
    // glibc 2.40 counts the bytes that are in use, which are fewer than it registers.
    symbol::<u32>(c"__rseq_size").filter(|bytes| *bytes > 0).map(|bytes| u64::from(bytes).max(LEGACY_BYTES))
}

/// A constant of libc, where it has it.
fn symbol<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: the name ends with a zero byte.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: glibc has constants of these types under these names since 2.35, set before the program starts.
    NonNull::new(place.cast::<T>()).map(|place| unsafe { place.read() })
}
