use crate::{Atomic, AtomicInteger, Platform, RawLock, Real};
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Ticket lock: draw a number, wait until it is served. First come, first served; all waiters read one word, and one
/// that is preempted while it is next holds up all behind it.
#[derive(Debug)]
pub struct Ticket<P: Platform = Real> {
    next: P::AtomicU32,
    serving: P::AtomicU32,
}

// SAFETY: a number is drawn by one thread (until 2^32 threads wait at once) and served once, and the release of the
// served number pairs with the acquire of `spin_while`.
unsafe impl<P: Platform> RawLock for Ticket<P> {
    const NAME: &'static str = "ticket";
    const SUMMARY: &'static str =
        "ticket: draw a number and spin until it is served; first come, first served";
    type Context = ();

    fn new() -> Self {
        Ticket { next: P::AtomicU32::new(0), serving: P::AtomicU32::new(0) }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        let mine = self.next.fetch_add(1, Relaxed);
        P::spin_while(&self.serving, |served| served != mine);
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        // Only the owner writes `serving`, so it may read it and write it back in two steps.
        self.serving.store(self.serving.load(Relaxed).wrapping_add(1), Release);
    }
}
