use crate::{Atomic, Platform, RawLock, Real};
use std::sync::atomic::Ordering::{Acquire, Release};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Test-and-set: every waiting thread tries to write the word, with a pause between two tries. Cheapest when nobody
/// waits, unfair, and each try takes the cache line away from the owner.
#[derive(Debug)]
pub struct Tas<P: Platform = Real> {
    word: P::AtomicU32,
}

// SAFETY: only one thread at a time can have changed the word from FREE to HELD, and release pairs with acquire.
unsafe impl<P: Platform> RawLock for Tas<P> {
    const NAME: &'static str = "tas";
    const SUMMARY: &'static str = "test-and-set: try to write the word, pause, try again";
    type Context = ();

    fn new() -> Self {
        Tas { word: P::AtomicU32::new(FREE) }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        while self.word.swap(HELD, Acquire) != FREE {
            P::pause();
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        self.word.store(FREE, Release);
    }
}
