use crate::{Atomic, Platform, RawLock, Real};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The queue lock of Craig, Landin and Hagersten: each waiter spins on the node of the one before it. First come,
/// first served; a release is one store, for which nobody has to be looked up.
pub struct Clh<P: Platform = Real> {
    tail: P::AtomicPtr<Node<P>>,
}

/// On cache lines of its own.
#[repr(align(128))]
struct Node<P: Platform> {
    state: P::AtomicU32,
}

impl<P: Platform> Node<P> {
    fn boxed() -> *mut Node<P> {
        Box::into_raw(Box::new(Node { state: P::AtomicU32::new(FREE) }))
    }
}

/// The queue node of a thread. Who has had the lock leaves its node to the thread behind and goes on with the node
/// of the thread before.
pub struct ClhContext<P: Platform = Real> {
    own: Cell<*mut Node<P>>,
    before: Cell<*mut Node<P>>,
}

impl<P: Platform> Default for ClhContext<P> {
    fn default() -> Self {
        ClhContext { own: Cell::new(Node::boxed()), before: Cell::new(std::ptr::null_mut()) }
    }
}

impl<P: Platform> Drop for ClhContext<P> {
    fn drop(&mut self) {
        // SAFETY: the node came from a box, and between two acquisitions it belongs to this context alone.
        drop(unsafe { Box::from_raw(self.own.get()) });
    }
}

impl<P: Platform> Drop for Clh<P> {
    fn drop(&mut self) {
        // SAFETY: the node came from a box, and nobody queues on a lock that is dropped: the tail was left behind by
        // the last owner, or by `new`.
        drop(unsafe { Box::from_raw(self.tail.load(Relaxed)) });
    }
}

impl<P: Platform> fmt::Debug for Clh<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clh").finish_non_exhaustive()
    }
}

impl<P: Platform> fmt::Debug for ClhContext<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClhContext").finish_non_exhaustive()
    }
}

// SAFETY: a thread owns the lock when the node before its own is free, a node is behind one other only, and the
// release of a node pairs with the acquire of `spin_while`.
unsafe impl<P: Platform> RawLock for Clh<P> {
    const NAME: &'static str = "clh";
    const SUMMARY: &'static str =
        "CLH queue: each waiter spins on the node of the one before it; first come, first served";
    type Context = ClhContext<P>;

    fn new() -> Self {
        Clh { tail: P::AtomicPtr::new(Node::boxed()) }
    }

    #[inline(always)]
    unsafe fn lock(&self, context: &ClhContext<P>) {
        let own = context.own.get();
        // SAFETY: between two acquisitions the node belongs to this context.
        unsafe { &*own }.state.store(HELD, Relaxed);
        let before = self.tail.swap(own, AcqRel);
        context.before.set(before);
        // SAFETY: a node that was the tail is freed or used again only by the thread that found it before its own,
        // which is this one.
        P::spin_while(&unsafe { &*before }.state, |state| state == HELD);
    }

    #[inline(always)]
    unsafe fn unlock(&self, context: &ClhContext<P>) {
        let own = context.own.replace(context.before.get());
        // SAFETY: while its state is HELD nobody but its owner lets go of the node; after this store it belongs to
        // the thread behind, or to the lock.
        unsafe { &*own }.state.store(FREE, Release);
    }
}
