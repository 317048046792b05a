use crate::{Atomic, Platform, RawLock, Real};
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const GO: u32 = 0;
const WAIT: u32 = 1;

/// The queue lock of Mellor-Crummey and Scott: each waiter spins on its own node, and the owner hands over to the
/// node behind its own. First come, first served; a hand-over touches two cache lines however many wait.
pub struct Mcs<P: Platform = Real> {
    tail: P::AtomicPtr<McsContext<P>>,
}

/// The queue node of a thread, on cache lines of its own.
#[repr(align(128))]
pub struct McsContext<P: Platform = Real> {
    next: P::AtomicPtr<McsContext<P>>,
    turn: P::AtomicU32,
}

impl<P: Platform> Default for McsContext<P> {
    fn default() -> Self {
        McsContext { next: P::AtomicPtr::new(null_mut()), turn: P::AtomicU32::new(GO) }
    }
}

impl<P: Platform> fmt::Debug for Mcs<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcs").finish_non_exhaustive()
    }
}

impl<P: Platform> fmt::Debug for McsContext<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McsContext").finish_non_exhaustive()
    }
}

// SAFETY: a thread owns the lock if it found the queue empty or was told to go by the owner before it; each owner
// tells one thread, and the releases pair with the acquires of the swap and of `spin_while`.
unsafe impl<P: Platform> RawLock for Mcs<P> {
    const NAME: &'static str = "mcs";
    const SUMMARY: &'static str = "MCS queue: each waiter spins on its own node; first come, first served";
    type Context = McsContext<P>;

    fn new() -> Self {
        Mcs { tail: P::AtomicPtr::new(null_mut()) }
    }

    #[inline(always)]
    unsafe fn lock(&self, node: &McsContext<P>) {
        node.next.store(null_mut(), Relaxed);
        node.turn.store(WAIT, Relaxed);
        let address = std::ptr::from_ref(node).cast_mut();
        let before = self.tail.swap(address, AcqRel);
        // SAFETY: a thread that finds a node behind its own in `unlock` waits for this store before it leaves, so
        // the node that was the tail is alive until then. Only shared references are ever made from the address.
        if let Some(before) = unsafe { before.as_ref() } {
            before.next.store(address, Release);
            P::spin_while(&node.turn, |turn| turn == WAIT);
        }
    }

    #[inline(always)]
    unsafe fn unlock(&self, node: &McsContext<P>) {
        let address = std::ptr::from_ref(node).cast_mut();
        let mut after = node.next.load(Acquire);
        if after.is_null() {
            if self.tail.compare_exchange(address, null_mut(), Release, Relaxed).is_ok() {
                return;
            }
            // Somebody has swapped itself in behind and is about to say who it is.
            after = P::spin_while(&node.next, |next| next.is_null());
        }
        // SAFETY: the waiter behind spins on its node, which cannot go away before it is told to go, here.
        unsafe { &*after }.turn.store(GO, Release);
    }
}
