use super::{broken, timed};
use crate::Failure;
use crate::clock::now_ns;
use crate::inversion::path::Path;
use crate::mapping::Mapping;
use crate::times::Times;
use machine::Whose;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};
use rustix::param::page_size;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rwsem of the address space: the owner populates a mapping, for which it has the lock as one of many readers; the waiter
/// maps a page, which needs it alone.
pub struct Mmap {
    area: Mapping,
    /// Pages that were faulted in.
    faults: AtomicU64,
}

impl Mmap {
    /// A mapping of so many bytes.
    pub fn new(bytes: usize) -> Result<Mmap, Failure> {
        let refused = |error| Failure::Refused(format!("no {} KiB can be mapped: {error}", bytes / 1024));
        let area = Mapping::anonymous(bytes, MapFlags::PRIVATE).map_err(refused)?;
        // One page is one fault. A kernel that has no huge pages does not know the advice.
        let _ = area.advise(0, bytes, Advice::LinuxNoHugepage);
        area.advise(0, bytes, Advice::LinuxPopulateWrite).map_err(|error| match error {
            Errno::INVAL => Failure::Refused("`over=mmap` needs Linux 5.14, for MADV_POPULATE_WRITE".into()),
            error => refused(error),
        })?;
        Ok(Mmap { area, faults: AtomicU64::new(0) })
    }

    fn pages(&self) -> u64 {
        (self.area.bytes() / page_size()) as u64
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        self.area.advise(0, self.area.bytes(), advice)
    }
}

impl Path for Mmap {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        move |holds| {
            self.advise(Advice::LinuxDontNeed).map_err(|error| broken("madvise", error))?;
            let before = faults();
            timed(holds, || self.advise(Advice::LinuxPopulateWrite))
                .map_err(|error| broken("madvise", error))?;
            self.faults.fetch_add(faults().saturating_sub(before), Ordering::Relaxed);
            Ok(())
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        move || {
            let start_ns = now_ns();
            let page =
                Mapping::anonymous(page_size(), MapFlags::PRIVATE).map_err(|error| broken("mmap", error))?;
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

/// Page faults of the calling thread.
fn faults() -> u64 {
    machine::rusage(Whose::Thread).map_or(0, |rusage| rusage.faults)
}
