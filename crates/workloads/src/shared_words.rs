//! Memory that a trial shares with the processes it forks.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// Words of zero that stay the same memory after a fork.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: The words are atomic, and the mapping lives until the value is dropped.
unsafe impl Send for SharedWords {}
// SAFETY: As above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// `len` words of zero.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(len: usize) -> io::Result<SharedWords> {
        let bytes = len.max(1) * size_of::<AtomicU64>();
        // SAFETY: A new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedWords { start, len })
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: The mapping holds `len` words, page-aligned and zero at first, which is a legal value, until
        // drop.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let bytes = self.len.max(1) * size_of::<AtomicU64>();
        // SAFETY: The mapping is ours and nothing borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
    }
}
