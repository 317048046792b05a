//! Memory that a trial shares with the processes it forks.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

/// Values that stay the same memory after a fork: counters, flags, gates. They start on a page of their own.
#[derive(Debug)]
pub struct Shared<T> {
    start: NonNull<T>,
    len: usize,
}

/// Words of zero that stay the same memory after a fork.
pub type SharedWords = Shared<AtomicU64>;

// SAFETY: The values are reached by shared references only, and the mapping lives until this is dropped.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T: Default + Sync> Shared<T> {
    /// `len` values, each as `T::default()` makes it.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn new(len: usize) -> io::Result<Shared<T>> {
        Shared::filled(len, |_| T::default())
    }
}

impl<T: Sync> Shared<T> {
    /// The values that `value` makes for 0, 1 and so on, `len` of them. They are never dropped, as every process has
    /// them.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn filled(len: usize, value: impl Fn(usize) -> T) -> io::Result<Shared<T>> {
        const { assert!(align_of::<T>() <= 4096) }
        let bytes = Self::bytes(len).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: A new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
        }?;
        let start: NonNull<T> = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // The mapping exists from here on, so that it goes away should `value` panic.
        let shared = Shared { start, len };
        for index in 0..len {
            // SAFETY: The place lies within the mapping, aligned since pages are, and nobody else knows it yet.
            unsafe { start.add(index).write(value(index)) };
        }
        Ok(shared)
    }

    fn bytes(len: usize) -> Option<usize> {
        len.max(1).checked_mul(size_of::<T>().max(1))
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: The mapping holds `len` values, all written before anybody could ask, until drop.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let bytes = self.len.max(1) * size_of::<T>().max(1);
        // SAFETY: The mapping is ours and nothing borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
    }
}
