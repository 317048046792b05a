use crate::Failure;
use crate::times::Times;

/// A lock that one thread holds for long and another one wants.
pub trait Path: Sync {
    /// What the owner does once: take the lock, work under it, give it back. How long it had it goes into `holds`. The work
    /// of a kernel path is a call, and the call is counted as the hold.
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure>;

    /// What the waiter does once: take the lock and give it back. Returns for how many nanoseconds it waited.
    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure>;

    /// Checks that `holds` of the owner and `waits` of the waiter did what they should.
    ///
    /// # Errors
    /// When the work does not add up.
    fn check(self, holds: u64, waits: u64) -> Result<(), Failure>;
}
