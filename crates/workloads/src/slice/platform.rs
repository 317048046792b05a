//! The machine as a lock sees it whose threads ask for more time, but not while they wait.

use super::own::waiting;
use locks::{Atomic, Platform, Real};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// As [`Real`], but a thread takes back its request for more time before it waits, and makes it again before it goes on.
/// Around system calls it does, too: any of them would end a grant.
#[derive(Debug)]
pub struct Sliced;

impl Platform for Sliced {
    type AtomicU32 = AtomicU32;
    type AtomicPtr<T> = AtomicPtr<T>;

    #[inline(always)]
    fn pause() {
        waiting(Real::pause);
    }

    /// A word that is as it should be at once is not waited for.
    #[inline(always)]
    fn spin_while<A: Atomic>(word: &A, holds: impl Fn(A::Value) -> bool) -> A::Value {
        let value = word.load(Ordering::Acquire);
        if !holds(value) {
            return value;
        }
        waiting(|| Real::spin_while(word, holds))
    }

    fn wait(word: &AtomicU32, expected: u32) {
        waiting(|| Real::wait(word, expected));
    }

    fn wake(word: &AtomicU32, count: u32) {
        waiting(|| Real::wake(word, count));
    }
}
