use crate::{Lock, Unavailable};
use std::cell::UnsafeCell;

/// A lock and the value that it protects, in this order in memory and as close as their alignments allow.
#[derive(Debug)]
#[repr(C)]
pub struct Guarded<L, T> {
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached under the lock, by one thread at a time; it moves between threads, hence `Send`.
unsafe impl<L: Lock, T: Send> Sync for Guarded<L, T> {}

impl<L: Lock, T> Guarded<L, T> {
    /// A value behind a lock that nobody holds.
    ///
    /// # Errors
    /// When this system does not have the lock.
    pub fn new(value: T) -> Result<Guarded<L, T>, Unavailable> {
        Ok(Guarded { lock: L::new()?, value: UnsafeCell::new(value) })
    }

    /// Runs `section` on the value under the lock and returns what it returned.
    #[inline(always)]
    pub fn with<R>(&self, context: &mut L::Context, section: impl FnOnce(&mut T) -> R) -> R {
        self.lock.with(context, || {
            // SAFETY: sections of one lock never overlap, so this is the only reference to the value.
            section(unsafe { &mut *self.value.get() })
        })
    }

    /// The value, when nobody shares it any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}
