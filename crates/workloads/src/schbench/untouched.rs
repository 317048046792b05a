//! Memory that nobody has written to: reads of it see the kernel's one page of zeros.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// Words of zero, of which no page exists before it is first written. The allocator gives no such promise: it may hand out
/// memory that was in use and clear it.
#[derive(Debug)]
pub struct Untouched {
    start: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: The words are atomic and reached by shared references only, and the mapping lives until this is dropped.
unsafe impl Send for Untouched {}
// SAFETY: As above.
unsafe impl Sync for Untouched {}

impl Untouched {
    /// `len` words.
    ///
    /// # Errors
    /// When there is no room for them in the address space.
    pub fn new(len: usize) -> io::Result<Untouched> {
        // SAFETY: A new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes(len)?,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Ok(Untouched { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }
}

impl Deref for Untouched {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: The mapping holds `len` words, page-aligned, which the kernel has made zero, until drop.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        if let Ok(bytes) = bytes(self.len) {
            // SAFETY: The mapping is ours and nothing borrows from it any more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
        }
    }
}

/// The size of the mapping, which cannot be empty.
fn bytes(len: usize) -> io::Result<usize> {
    len.max(1).checked_mul(size_of::<AtomicU64>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
