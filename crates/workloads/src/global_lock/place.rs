/// Where the counter stands in memory, seen from the lock before it.
pub trait Place<T>: Send {
    /// Puts a value there.
    fn put(value: T) -> Self;
    /// The value.
    fn get(&mut self) -> &mut T;
}

/// Right behind the lock, on its cache line.
pub struct Beside<T>(T);

/// On the next pair of cache lines; a pair, because some processors fetch two at a time.
#[repr(align(128))]
pub struct Apart<T>(T);

/// Alone on its cache lines.
#[repr(align(128))]
pub struct Alone<T>(pub T);

impl<T: Send> Place<T> for Beside<T> {
    fn put(value: T) -> Self {
        Beside(value)
    }

    #[inline(always)]
    fn get(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Send> Place<T> for Apart<T> {
    fn put(value: T) -> Self {
        Apart(value)
    }

    #[inline(always)]
    fn get(&mut self) -> &mut T {
        &mut self.0
    }
}
