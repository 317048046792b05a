//! The measured loop, and what decides when it ends.

use super::observer::Observer;
use super::place::Place;
use super::work::Work;
use crate::slice::Extension;
use locks::{Guarded, Lock};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the lock protects.
#[derive(Default)]
pub struct Protected<S> {
    /// Sections that were done.
    pub count: u64,
    /// What the observer keeps there.
    pub observed: S,
}

/// The measured loop. Every kind of lock, place, quota, work, observer and extension makes a loop of its own, in which
/// nothing is decided that was known before. Returns how many sections this thread did.
#[inline(never)]
pub fn contend<L: Lock, O: Observer, P: Place<Protected<O::Shared>>>(
    shared: &Guarded<L, P>,
    context: &mut L::Context,
    quota: impl Quota,
    mut work: impl Work,
    observer: &mut O,
    extension: impl Extension,
) -> u64 {
    let mut done = 0;
    while quota.more(done) {
        observer.wants();
        extension.request();
        let counted = shared.with(context, |place| {
            let protected = place.get();
            if !quota.admits(protected.count) {
                return false;
            }
            observer.has(&mut protected.observed);
            protected.count += 1;
            work.hold();
            true
        });
        extension.finish();
        if !counted {
            break;
        }
        observer.left();
        work.think();
        done += 1;
    }
    done
}

/// The same without counting, before the time begins.
pub fn contend_uncounted<L: Lock, P>(
    shared: &Guarded<L, P>,
    context: &mut L::Context,
    more: impl Fn() -> bool,
    mut work: impl Work,
    extension: impl Extension,
) {
    while more() {
        extension.request();
        shared.with(context, |_| work.hold());
        extension.finish();
        work.think();
    }
}

/// How many sections a thread may do.
pub trait Quota {
    /// Whether to ask for the lock again after `done` sections.
    fn more(&self, done: u64) -> bool;
    /// Whether a section may be counted, where all threads together have done `count`.
    fn admits(&self, count: u64) -> bool;
}

/// So many of its own.
pub struct Share(pub u64);

impl Quota for Share {
    #[inline(always)]
    fn more(&self, done: u64) -> bool {
        done != self.0
    }

    #[inline(always)]
    fn admits(&self, _: u64) -> bool {
        true
    }
}

/// Until all threads together have done so many.
pub struct Claim(pub u64);

impl Quota for Claim {
    #[inline(always)]
    fn more(&self, _: u64) -> bool {
        true
    }

    #[inline(always)]
    fn admits(&self, count: u64) -> bool {
        count < self.0
    }
}

/// Until the flag is raised.
pub struct Until<'a>(pub &'a AtomicBool);

impl Quota for Until<'_> {
    #[inline(always)]
    fn more(&self, _: u64) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn admits(&self, _: u64) -> bool {
        true
    }
}
