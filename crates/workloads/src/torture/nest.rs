//! Locks that are held around a section.

use crate::random::Random;
use locks::{Guarded, Lock};

/// The further locks of a thread.
pub struct Nest<'a, L: Lock> {
    locks: &'a [Guarded<L, ()>],
    contexts: Vec<L::Context>,
    random: Random,
}

impl<'a, L: Lock> Nest<'a, L> {
    /// Those of a thread that chooses with `random`.
    pub fn new(locks: &'a [Guarded<L, ()>], random: Random) -> Nest<'a, L> {
        Nest { locks, contexts: locks.iter().map(|_| L::Context::default()).collect(), random }
    }

    /// Calls `section` under a random part of the locks; one time in a hundred, if there is any, under them without it.
    pub fn within(&mut self, section: &mut dyn FnMut()) {
        let mask = self.random.below(1 << self.locks.len());
        let skip = mask != 0 && self.random.below(100) == 0;
        let mut nothing = || ();
        take(self.locks, &mut self.contexts, mask, if skip { &mut nothing } else { section });
    }
}

/// Takes the locks whose bit is set, always in the same order, and calls `section`.
fn take<L: Lock>(
    locks: &[Guarded<L, ()>],
    contexts: &mut [L::Context],
    mask: u64,
    section: &mut dyn FnMut(),
) {
    match (locks.split_first(), contexts.split_first_mut()) {
        (Some((lock, locks)), Some((context, contexts))) if mask & 1 != 0 => {
            lock.with(context, |()| take(locks, contexts, mask >> 1, section));
        }
        (Some((_, locks)), Some((_, contexts))) => take(locks, contexts, mask >> 1, section),
        _ => section(),
    }
}
