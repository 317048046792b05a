//! The extension of a thread.

use crate::Failure;
use rseq_slice::{Counts, Handle, Slice};
use std::cell::{Cell, OnceCell};
use std::iter::Sum;

/// What a thread says to the kernel about its sections. A kind of it is a type, so that a loop that says nothing holds
/// nothing for it.
pub trait Extension: Copy {
    /// Before the lock is asked for.
    fn request(self);
    /// After it was given back.
    fn finish(self);
}

/// Says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Unasked;

impl Extension for Unasked {
    #[inline(always)]
    fn request(self) {}

    #[inline(always)]
    fn finish(self) {}
}

impl Extension for Handle<'_> {
    #[inline(always)]
    fn request(self) {
        Handle::request(self);
    }

    #[inline(always)]
    fn finish(self) {
        Handle::finish(self);
    }
}

/// What became of the requests of a thread, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests.
    pub requests: u64,
    /// Grants that were there at the end of their section.
    pub grants: u64,
    /// Grants among them that were given back in time.
    pub yields: u64,
    /// Requests that were lost: by a grant that was revoked, or by a move to another CPU.
    pub lost: u64,
}

impl Used {
    /// What was used since `before`.
    pub fn since(self, before: Used) -> Used {
        Used {
            requests: self.requests - before.requests,
            grants: self.grants - before.grants,
            yields: self.yields - before.yields,
            lost: self.lost - before.lost,
        }
    }
}

impl Sum for Used {
    fn sum<I: Iterator<Item = Used>>(all: I) -> Used {
        all.fold(Used::default(), |sum, one| Used {
            requests: sum.requests + one.requests,
            grants: sum.grants + one.grants,
            yields: sum.yields + one.yields,
            lost: sum.lost + one.lost,
        })
    }
}

/// The extension of the calling thread.
#[derive(Debug)]
pub struct Own {
    slice: Slice,
    /// Requests that were counted as they were made. Those of a measured loop are not: there they are its sections.
    requests: Cell<u64>,
}

thread_local! {
    /// For locks, which know nothing of the thread that takes them.
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

/// Calls `work` with the extension of the calling thread, which is enabled if it is not yet, and stays so until the thread
/// ends; or with the reason why it cannot be.
pub fn of_this_thread<R>(work: impl FnOnce(Result<&Own, Failure>) -> R) -> R {
    OWN.with(|own| {
        if let Some(own) = own.get() {
            return work(Ok(own));
        }
        match Slice::enable() {
            Ok(slice) => work(Ok(own.get_or_init(|| Own { slice, requests: Cell::new(0) }))),
            Err(absent) => work(Err(Failure::Refused(absent.to_string()))),
        }
    })
}

/// Waits without asking for more time meanwhile, if the calling thread asks for any.
#[inline(always)]
pub fn waiting<R>(wait: impl FnOnce() -> R) -> R {
    OWN.with(|own| match own.get() {
        Some(own) => own.waiting(wait),
        None => wait(),
    })
}

impl Own {
    /// What a loop holds on to.
    #[inline(always)]
    pub fn handle(&self) -> Handle<'_> {
        self.slice.handle()
    }

    /// Runs a section, and counts its request.
    #[inline(always)]
    pub fn during<R>(&self, section: impl FnOnce() -> R) -> R {
        self.count();
        self.slice.during(section)
    }

    /// Waits in the middle of a section without asking for more time meanwhile.
    #[inline(always)]
    pub fn waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.count();
        self.handle().waiting(wait)
    }

    /// What became of the requests so far, of which `sections` were made by a measured loop.
    pub fn used(&self, sections: u64) -> Used {
        let Counts { grants, yields, lost } = self.slice.counts();
        Used { requests: self.requests.get() + sections, grants, yields, lost }
    }

    #[inline(always)]
    fn count(&self) {
        self.requests.set(self.requests.get() + 1);
    }
}
