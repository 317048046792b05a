//! Mappings that tests make, touch and unmap.

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::os::fd::OwnedFd;
use std::ptr;

/// A mapping that can be written, until it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Mapping {
    /// Maps `bytes`: of a file, shared or private, or of none.
    ///
    /// # Errors
    /// When the kernel does not.
    #[inline]
    pub fn new(bytes: usize, file: Option<&OwnedFd>, flags: MapFlags) -> Result<Mapping, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no place is asked for, so the kernel chooses one where nothing is. Nobody shrinks the file.
        let start = unsafe {
            match file {
                None => mmap_anonymous(ptr::null_mut(), bytes, access, flags),
                Some(file) => mmap(ptr::null_mut(), bytes, access, flags, file, 0),
            }
        }?;
        Ok(Mapping { start: start.cast(), bytes })
    }

    /// Writes a byte.
    #[inline]
    pub fn write(&self, place: usize, byte: u8) {
        debug_assert!(place < self.bytes);
        if place < self.bytes {
            // SAFETY: it lies inside the mapping. Volatile, as nobody reads it and it has to be written.
            unsafe { self.start.add(place).write_volatile(byte) };
        }
    }

    /// Reads a byte.
    #[inline]
    pub fn read(&self, place: usize) -> Option<u8> {
        // SAFETY: it lies inside the mapping. Volatile, as the kernel may have changed it.
        (place < self.bytes).then(|| unsafe { self.start.add(place).read_volatile() })
    }

    /// Gives the kernel advice about `bytes` from `place`.
    ///
    /// # Errors
    /// When the kernel does not take it, or when they are not inside.
    #[inline]
    pub fn advise(&self, place: usize, bytes: usize, advice: Advice) -> Result<(), Errno> {
        if place + bytes > self.bytes {
            return Err(Errno::INVAL);
        }
        // SAFETY: the range lies inside a mapping that this alone uses, and only bytes are read from it.
        unsafe { madvise(self.start.add(place).cast(), bytes, advice) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nobody borrows from it. It cannot fail on a whole mapping, but
        // for lack of memory.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
