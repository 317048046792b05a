//! The memory that a thread shares with the kernel, and what the thread does there.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, compiler_fence};

/// An rseq area, as far as the extension needs it. The kernel reads and writes it only while its thread is in the kernel,
/// so to the thread it is as if a signal handler did: the compiler must keep the order, the processor need not.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Area {
    _cpu_id_start: AtomicU32,
    /// The CPU that the thread is on; negative where the area is not registered.
    pub cpu_id: AtomicU32,
    _rseq_cs: AtomicU64,
    _flags: AtomicU32,
    _node_id: AtomicU32,
    _mm_cid: AtomicU32,
    /// The thread writes 1 and 0; the kernel takes a request by writing 0.
    request: AtomicU8,
    /// The kernel's alone.
    granted: AtomicU8,
    _reserved: AtomicU16,
}

/// Areas of so many bytes are those of the first interface. Linux 7.3 keeps the extension from them.
pub const LEGACY_BYTES: u64 = 32;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Whether the request was there still. The kernel takes it when it grants more time, and also when it moves the thread
    /// to another CPU.
    pub was_there: bool,
    /// Whether there is a grant, so that the CPU is to be given back.
    pub granted: bool,
}

impl Ended {
    /// Whether nothing became of the request. Two plain values rather than one of
    /// three, from which the compiler would make a number first.
    #[inline(always)]
    pub fn was_left_alone(self) -> bool {
        self.was_there && !self.granted
    }
}

impl Area {
    /// A section begins.
    #[inline(always)]
    pub fn request(&self) {
        self.request.store(1, Relaxed);
        compiler_fence(SeqCst);
    }

    /// The section has ended.
    #[inline(always)]
    pub fn finish(&self) -> Ended {
        compiler_fence(SeqCst);
        let was_there = self.request.load(Relaxed) != 0;
        self.request.store(0, Relaxed);
        compiler_fence(SeqCst);
        // Only now: a grant may have come up to the store, and cannot come behind it.
        Ended { was_there, granted: self.granted.load(Relaxed) != 0 }
    }
}

/// What a kernel does to an area, for tests.
#[cfg(test)]
impl Area {
    /// The thread's time ends. Whether it was granted more.
    pub fn grant(&self) -> bool {
        let requested = self.request.swap(0, SeqCst) == 1;
        if requested {
            self.granted.store(1, SeqCst);
        }
        requested
    }

    /// The grant ends: by the timer, or by a system call.
    pub fn revoke(&self) {
        self.request.store(0, SeqCst);
        self.granted.store(0, SeqCst);
    }

    /// What stands there: request and granted.
    pub fn state(&self) -> (u8, u8) {
        (self.request.load(SeqCst), self.granted.load(SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    const LEFT_ALONE: Ended = Ended { was_there: true, granted: false };

    #[test]
    fn the_fields_stand_where_the_kernel_has_them() {
        assert_eq!(
            (offset_of!(Area, cpu_id), offset_of!(Area, request), offset_of!(Area, granted)),
            (4, 28, 29)
        );
        // libc's area has no more.
        assert_eq!(size_of::<Area>(), 32);
    }

    #[test]
    fn l4_a_request_is_set_for_the_section_and_gone_behind_it() {
        let area = Area::default();
        area.request();
        assert_eq!(area.state(), (1, 0));
        assert_eq!(area.finish(), LEFT_ALONE);
        assert_eq!(area.state(), (0, 0));
        assert!(!area.grant(), "nothing was requested");
    }

    #[test]
    fn l4_a_grant_is_seen_and_never_written() {
        let area = Area::default();
        area.request();
        assert!(area.grant());
        assert_eq!(area.state(), (0, 1));
        assert_eq!(area.finish(), Ended { was_there: false, granted: true });
        assert_eq!(area.state(), (0, 1), "the kernel clears it in the system call that gives it back");
        area.revoke();
        area.request();
        assert_eq!(area.finish(), LEFT_ALONE, "the next section starts afresh");
    }

    #[test]
    fn l4_a_lost_request_is_told_from_one_that_was_left_alone() {
        let area = Area::default();
        area.request();
        assert!(area.grant());
        area.revoke();
        let ended = area.finish();
        assert_eq!(ended, Ended { was_there: false, granted: false });
        assert!(!ended.was_left_alone() && LEFT_ALONE.was_left_alone());
    }
}
