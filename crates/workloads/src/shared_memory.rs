//! Memory that a trial shares with the processes it forks.

use crate::mapping::Mapping;
use rustix::mm::MapFlags;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Values that stay the same memory after a fork: counters, flags, gates. They start on a page of their own.
#[derive(Debug)]
pub struct Shared<T> {
    mapping: Mapping,
    len: usize,
    values: PhantomData<T>,
}

/// Words of zero that stay the same memory after a fork.
pub type SharedWords = Shared<AtomicU64>;

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
        let bytes = len.max(1).checked_mul(size_of::<T>().max(1)).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::anonymous(bytes, MapFlags::SHARED)?;
        // The mapping exists from here on, so that it goes away should `value` panic.
        let shared = Shared { mapping, len, values: PhantomData };
        for index in 0..len {
            // SAFETY: The place lies within the mapping, aligned since pages are, and nobody else knows it yet.
            unsafe { shared.start().add(index).write(value(index)) };
        }
        Ok(shared)
    }
}

impl<T> Shared<T> {
    fn start(&self) -> NonNull<T> {
        self.mapping.start().cast()
    }
}

/// One value that stays the same memory after a fork.
#[derive(Debug)]
pub struct SharedValue<T>(Shared<T>);

impl<T: Sync> SharedValue<T> {
    /// The value that `value` makes. As those of [`Shared`] it is never dropped.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(value: impl Fn() -> T) -> io::Result<SharedValue<T>> {
        Shared::filled(1, |_| value()).map(SharedValue)
    }
}

impl<T> Deref for SharedValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The mapping holds one value, written before anybody could ask, until drop.
        unsafe { self.0.start().as_ref() }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: The mapping holds `len` values, all written before anybody could ask, until drop.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }
}
