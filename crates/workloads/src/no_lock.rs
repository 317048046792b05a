//! A lock that is broken, for tests: workloads must notice.

use locks::{Lock, Unavailable};

/// Lets everybody in.
pub struct NoLock;

// SAFETY: it is not safe, which is what the tests are about: sections overlap, and a counter loses some of them.
unsafe impl Lock for NoLock {
    const NAME: &'static str = "no-lock";
    const SUMMARY: &'static str = "none";
    type Context = ();

    fn new() -> Result<Self, Unavailable> {
        Ok(NoLock)
    }

    fn with<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
        // The optimiser must not join the sections of a thread to one.
        let result = std::hint::black_box(section());
        std::hint::black_box(self);
        result
    }
}
