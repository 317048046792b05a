//! Memory that the kernel maps on its own, until it is dropped.

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// A mapping that can be read and written. It starts on a page of its own, and a page of it exists only once somebody has
/// touched it. The allocator gives no such promise: it may hand out memory that was in use.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: Its safe methods touch what is in it by atomic operations only, and it may be unmapped by any thread.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes`, which are zero: `SHARED` with the processes that are forked later, or `PRIVATE`.
    ///
    /// # Errors
    /// When the kernel does not.
    #[inline]
    pub fn anonymous(bytes: usize, flags: MapFlags) -> Result<Mapping, Errno> {
        // SAFETY: No place is asked for, so the kernel chooses one where nothing is.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ACCESS, flags) }?;
        Mapping::at(start, bytes)
    }

    /// Maps the first `bytes` of a file, which nobody may shrink meanwhile.
    ///
    /// # Errors
    /// When the kernel does not.
    #[inline]
    pub fn of_file(bytes: usize, flags: MapFlags, file: &OwnedFd) -> Result<Mapping, Errno> {
        // SAFETY: As above.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ACCESS, flags, file, 0) }?;
        Mapping::at(start, bytes)
    }

    #[inline]
    fn at(start: *mut std::ffi::c_void, bytes: usize) -> Result<Mapping, Errno> {
        // The kernel gives the address 0 only to those who ask for it.
        NonNull::new(start.cast()).map(|start| Mapping { start, bytes }).ok_or(Errno::NOMEM)
    }

    /// Where it starts.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How large it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is in it, as words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: So many words lie inside the mapping, aligned since pages are, and every word is a legal one.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes / size_of::<AtomicU64>()) }
    }

    /// Writes a byte; none where the place lies outside.
    #[inline]
    pub fn write(&self, place: usize, byte: u8) {
        if let Some(found) = self.byte(place) {
            found.store(byte, Relaxed);
        }
    }

    /// Reads a byte.
    #[inline]
    pub fn read(&self, place: usize) -> Option<u8> {
        self.byte(place).map(|byte| byte.load(Relaxed))
    }

    #[inline]
    fn byte(&self, place: usize) -> Option<&AtomicU8> {
        // SAFETY: It lies inside the mapping.
        (place < self.bytes).then(|| unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(place)) })
    }

    /// Gives the kernel advice about `bytes` from `place`.
    ///
    /// # Errors
    /// When the kernel does not take it, or when they are not inside.
    #[inline]
    pub fn advise(&self, place: usize, bytes: usize, advice: Advice) -> Result<(), Errno> {
        if place.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Errno::INVAL);
        }
        // SAFETY: The range lies inside the mapping, and whatever the kernel puts there are bytes.
        unsafe { madvise(self.start.as_ptr().add(place).cast(), bytes, advice) }
    }
}

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The mapping is this one's, and nobody borrows from it. It cannot fail on a whole mapping, but for lack
        // of memory.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_neither_written_nor_advised_about() {
        let mapping = Mapping::anonymous(8192, MapFlags::PRIVATE).unwrap();
        mapping.write(8191, 7);
        mapping.write(8192, 7);
        assert_eq!((mapping.read(8191), mapping.read(8192), mapping.words().len()), (Some(7), None, 1024));
        for (place, bytes) in [(4096, 8192), (usize::MAX, 4096)] {
            assert_eq!(mapping.advise(place, bytes, Advice::LinuxDontNeed), Err(Errno::INVAL));
        }
        mapping.advise(4096, 4096, Advice::LinuxDontNeed).unwrap();
        assert!(mapping.words().iter().all(|word| word.load(Relaxed) == 0));
    }
}
