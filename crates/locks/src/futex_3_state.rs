use crate::{Atomic, Platform, RawLock, Real};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may sleep.
const AWAITED: u32 = 2;

/// The mutex of three states over a futex that Drepper's "Futexes Are Tricky" arrives at: waiters sleep in the
/// kernel, and neither side enters it when nobody waits. It does not spin; unfair.
#[derive(Debug)]
pub struct Futex3State<P: Platform = Real> {
    word: P::AtomicU32,
}

// SAFETY: a thread owns the lock when it changed the word from FREE, which one thread at a time can have done, and
// the release of `unlock` pairs with the acquires of `lock`.
unsafe impl<P: Platform> RawLock for Futex3State<P> {
    const NAME: &'static str = "futex-3-state";
    const SUMMARY: &'static str = "free, held, held with waiters: sleeps on a futex at once, never spins";
    type Context = ();

    fn new() -> Self {
        Futex3State { word: P::AtomicU32::new(FREE) }
    }

    #[inline(always)]
    unsafe fn lock(&self, _: &()) {
        if self.word.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            self.sleep();
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, _: &()) {
        if self.word.swap(FREE, Release) == AWAITED {
            self.wake();
        }
    }
}

impl<P: Platform> Futex3State<P> {
    /// Whoever got here takes the lock as awaited, since others may sleep whom nobody else would wake.
    #[cold]
    fn sleep(&self) {
        while self.word.swap(AWAITED, Acquire) != FREE {
            P::wait(&self.word, AWAITED);
        }
    }

    #[cold]
    fn wake(&self) {
        P::wake(&self.word, 1);
    }
}
