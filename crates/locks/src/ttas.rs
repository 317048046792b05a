use crate::{Atomic, Platform, RawLock, Real};
use std::sync::atomic::Ordering::{Acquire, Release};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Test and test-and-set: waiting threads only read, and try to write when the word looks free. Unfair; the cache
/// line stays shared while the lock is held, and all waiters rush for it when it is released.
#[derive(Debug)]
pub struct Ttas<P: Platform = Real> {
    word: P::AtomicU32,
}

// SAFETY: only one thread at a time can have changed the word from FREE to HELD, and release pairs with acquire.
unsafe impl<P: Platform> RawLock for Ttas<P> {
    const NAME: &'static str = "ttas";
    const SUMMARY: &'static str = "test and test-and-set: read until the word is free, then try to write it";
    type Context = ();

    fn new() -> Self {
        Ttas { word: P::AtomicU32::new(FREE) }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        loop {
            P::spin_while(&self.word, |value| value == HELD);
            if self.word.swap(HELD, Acquire) == FREE {
                return;
            }
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        self.word.store(FREE, Release);
    }
}
