use thiserror::Error;

/// A lock algorithm: how to take the lock and how to give it back. To run code under a lock use [`Lock`], which
/// every raw lock is.
///
/// # Safety
/// Between a return of `lock` and the call of `unlock` that belongs to it, no other call of `lock` on the same lock
/// may return; and what was written before `unlock` must be visible after the next return of `lock`.
pub unsafe trait RawLock: Send + Sync + Sized + 'static {
    /// The name that users type.
    const NAME: &'static str;
    /// What kind of lock it is, in one line.
    const SUMMARY: &'static str;
    /// What a thread brings along: the queue node of a queue lock, or nothing. It serves one acquisition at a time.
    type Context: Default;

    /// A lock that nobody holds.
    fn new() -> Self;

    /// Takes the lock, waiting until it can be had.
    ///
    /// # Safety
    /// Until `unlock` returns, the context must stay where it is and serve no other acquisition: other threads may
    /// hold its address.
    unsafe fn lock(&self, context: &Self::Context);

    /// Gives the lock back.
    ///
    /// # Safety
    /// The lock must have been taken with this context and not been given back since.
    unsafe fn unlock(&self, context: &Self::Context);
}

/// A lock as programs use it: a section of code runs while nobody else's does.
///
/// # Safety
/// No two sections of one lock may overlap, and what a section wrote must be visible in the next.
pub unsafe trait Lock: Send + Sync + Sized + 'static {
    /// The name that users type.
    const NAME: &'static str;
    /// What kind of lock it is, in one line.
    const SUMMARY: &'static str;
    /// What a thread brings along: the queue node of a queue lock, or nothing.
    type Context: Default;

    /// A lock that nobody holds.
    ///
    /// # Errors
    /// When this system does not have the lock.
    fn new() -> Result<Self, Unavailable>;

    /// Runs `section` under the lock and returns what it returned. A section that takes the same lock again waits
    /// for ever.
    fn with<R>(&self, context: &mut Self::Context, section: impl FnOnce() -> R) -> R;
}

/// A lock that this system does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("lock `{name}` is not available here: {why}")]
pub struct Unavailable {
    /// The lock.
    pub name: &'static str,
    /// What the system said.
    pub why: String,
}

// SAFETY: the section runs between `lock` and `unlock`, for which `RawLock` promises just this.
unsafe impl<L: RawLock> Lock for L {
    const NAME: &'static str = L::NAME;
    const SUMMARY: &'static str = L::SUMMARY;
    type Context = L::Context;

    fn new() -> Result<Self, Unavailable> {
        Ok(L::new())
    }

    #[inline(always)]
    fn with<R>(&self, context: &mut L::Context, section: impl FnOnce() -> R) -> R {
        let context = &*context;
        // SAFETY: the context is borrowed for the whole of this function, so it stays where it is and serves no
        // other acquisition until `_unlock` is dropped, which happens even when the section panics.
        unsafe { self.lock(context) };
        let _unlock = Unlock { lock: self, context };
        section()
    }
}

struct Unlock<'a, L: RawLock> {
    lock: &'a L,
    context: &'a L::Context,
}

impl<L: RawLock> Drop for Unlock<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: made by `with` right after it took the lock with this context, and dropped once.
        unsafe { self.lock.unlock(self.context) };
    }
}
