use std::sync::atomic::Ordering;

/// What a lock may ask of the machine that it runs on. The real machine is [`Real`](crate::Real); a model checker
/// or a simulator is another implementation, under which the same algorithms run unchanged.
pub trait Platform: Sized + Send + Sync + 'static {
    /// A word of 32 bits, on which threads can also sleep.
    type AtomicU32: AtomicInteger<Value = u32>;
    /// A pointer.
    type AtomicPtr<T>: Atomic<Value = *mut T>;

    /// A moment of rest between two tries of a loop that spins by writing. A loop that spins by reading uses
    /// [`spin_while`](Platform::spin_while), which a simulator can turn into sleep.
    fn pause();

    /// Reads `word` until its value does not hold any more, and returns that value. The last read acquires.
    #[inline(always)]
    fn spin_while<A: Atomic>(word: &A, holds: impl Fn(A::Value) -> bool) -> A::Value {
        loop {
            let value = word.load(Ordering::Acquire);
            if !holds(value) {
                return value;
            }
            Self::pause();
        }
    }

    /// Sleeps until woken if `word` still has the value `expected`. It may also return for no reason, so callers
    /// look at the word again.
    fn wait(word: &Self::AtomicU32, expected: u32);

    /// Wakes at most `count` threads that sleep on `word`.
    fn wake(word: &Self::AtomicU32, count: u32);
}

/// A value that threads share. The methods are those of the standard library's atomics.
pub trait Atomic: Send + Sync {
    /// The type of the value.
    type Value: Copy;

    /// An atomic of this value.
    fn new(value: Self::Value) -> Self;

    /// Reads.
    fn load(&self, order: Ordering) -> Self::Value;

    /// Writes.
    fn store(&self, value: Self::Value, order: Ordering);

    /// Writes and returns what was there.
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;

    /// Writes `new` if `current` is there.
    ///
    /// # Errors
    /// With what was there instead.
    fn compare_exchange(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
}

/// An integer that threads share.
pub trait AtomicInteger: Atomic {
    /// Adds, wrapping around, and returns what was there.
    fn fetch_add(&self, value: Self::Value, order: Ordering) -> Self::Value;
}
