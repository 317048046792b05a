use crate::{Atomic, AtomicInteger, Platform};
use rustix::thread::futex;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The machine that the program runs on: the processor's atomic instructions, its pause hint and the kernel's
/// private futexes. All of it is inlined, so a lock over it is what one would write by hand.
#[derive(Debug)]
pub struct Real;

impl Platform for Real {
    type AtomicU32 = AtomicU32;
    type AtomicPtr<T> = AtomicPtr<T>;

    #[inline(always)]
    fn pause() {
        std::hint::spin_loop();
    }

    fn wait(word: &AtomicU32, expected: u32) {
        // EAGAIN (the value was another) and EINTR are returns for no reason, which callers expect.
        let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
    }

    fn wake(word: &AtomicU32, count: u32) {
        // Waking cannot fail on an aligned word of this process.
        let _ = futex::wake(word, futex::Flags::PRIVATE, count);
    }
}

macro_rules! atomic {
    ($atomic:ty, $value:ty $(, $parameter:ident)?) => {
        impl$(<$parameter>)? Atomic for $atomic {
            type Value = $value;

            #[inline(always)]
            fn new(value: $value) -> Self {
                Self::new(value)
            }

            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }

            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicPtr<T>, *mut T, T);

impl AtomicInteger for AtomicU32 {
    #[inline(always)]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }
}
