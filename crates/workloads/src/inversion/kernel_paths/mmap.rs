use super::{broken, timed};
use crate::Failure;
use crate::clock::now_ns;
use crate::inversion::path::Path;
use crate::times::Times;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// The rwsem of the address space: the owner populates a mapping, for which it has the lock as one of many readers; the waiter
/// maps a page, which needs it alone.
pub struct Mmap {
    area: Area,
    /// Pages that were faulted in.
    faults: AtomicU64,
}

impl Mmap {
    /// A mapping of so many bytes.
    pub fn new(bytes: usize) -> Result<Mmap, Failure> {
        let refused = |error| Failure::Refused(format!("no {} KiB can be mapped: {error}", bytes / 1024));
        let area = Area::new(bytes).map_err(refused)?;
        // One page is one fault.
        let _ = area.advise(Advice::LinuxNoHugepage);
        area.advise(Advice::LinuxPopulateWrite).map_err(|error| match error {
            Errno::INVAL => Failure::Refused("`over=mmap` needs Linux 5.14, for MADV_POPULATE_WRITE".into()),
            error => refused(error),
        })?;
        Ok(Mmap { area, faults: AtomicU64::new(0) })
    }

    fn pages(&self) -> u64 {
        (self.area.bytes / page_size()) as u64
    }
}

impl Path for Mmap {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        move |holds| {
            self.area.advise(Advice::LinuxDontNeed).map_err(|error| broken("madvise", error))?;
            let before = minor_faults();
            timed(holds, || self.area.advise(Advice::LinuxPopulateWrite))
                .map_err(|error| broken("madvise", error))?;
            self.faults.fetch_add(minor_faults().saturating_sub(before), Ordering::Relaxed);
            Ok(())
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        move || {
            let start_ns = now_ns();
            let page = Area::new(page_size()).map_err(|error| broken("mmap", error))?;
            let wait_ns = now_ns().saturating_sub(start_ns);
            drop(page);
            Ok(wait_ns)
        }
    }

    fn check(self, holds: u64, _: u64) -> Result<(), Failure> {
        let (faults, wanted) = (self.faults.load(Ordering::Relaxed), holds * self.pages());
        match faults >= wanted {
            true => Ok(()),
            false => Err(Failure::Invariant(format!("{faults} pages were faulted in, of {wanted}"))),
        }
    }
}

/// A private mapping.
struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nobody reads or writes what is in it, and the calls that take its address may come from any thread.
unsafe impl Sync for Area {}

impl Area {
    fn new(bytes: usize) -> Result<Area, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice overlaps nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
        NonNull::new(start.cast()).map(|start| Area { start, bytes }).ok_or(Errno::NOMEM)
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is the mapping, whose content means nothing to anybody.
        unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Faults of the calling thread for which nothing had to be read.
fn minor_faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::uninit();
    // SAFETY: the kernel fills a structure of the size that it is given here.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: the call succeeded.
    let usage: libc::rusage = unsafe { usage.assume_init() };
    usage.ru_minflt as u64
}
