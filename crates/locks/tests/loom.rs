//! Every algorithm under loom, which tries the interleavings of its atomic operations and the values that the memory
//! model lets each of them read.

use locks::{Atomic, AtomicInteger, Clh, Futex3State, Lock, Mcs, Platform, Tas, Ticket, Ttas};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicU32};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use std::cell::Cell;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Loom as a machine.
struct Loom;

/// A word with the queue that the kernel keeps for it. Loom has no futexes, but it has condition variables, and it
/// reports a thread that sleeps for ever.
struct Word {
    value: AtomicU32,
    bucket: Mutex<()>,
    sleepers: Condvar,
}

thread_local! {
    /// Words that live. Loom runs all threads of a model on the thread of its test.
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

impl Platform for Loom {
    type AtomicU32 = Word;
    type AtomicPtr<T> = Pointer<T>;

    fn pause() {
        thread::yield_now();
    }

    fn wait(word: &Word, expected: u32) {
        // As in the kernel, the value is looked at again under the lock of the bucket, which a waker needs as well.
        let bucket = word.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if word.value.load(Ordering::SeqCst) == expected {
            drop(word.sleepers.wait(bucket));
        }
    }

    fn wake(word: &Word, count: u32) {
        let _bucket = word.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..count {
            word.sleepers.notify_one();
        }
    }
}

struct Pointer<T>(AtomicPtr<T>);

// SAFETY: loom's pointer is an atomic, of which loom itself says the same for integers only.
unsafe impl<T> Send for Pointer<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Pointer<T> {}

macro_rules! atomic {
    ($atomic:ty, $value:ty, $inner:tt, $swap:ident, $new:expr $(, $parameter:ident)?) => {
        impl$(<$parameter>)? Atomic for $atomic {
            type Value = $value;

            fn new(value: $value) -> Self {
                $new(value)
            }

            fn load(&self, order: Ordering) -> $value {
                self.$inner.load(order)
            }

            fn store(&self, value: $value, order: Ordering) {
                self.$inner.store(value, order);
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.$swap(value, order)
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.$inner.compare_exchange(current, new, success, failure)
            }
        }
    };
}

atomic!(Word, u32, value, swap_if_other, Word::alive);
atomic!(Pointer<T>, *mut T, 0, swap_always, |value| Pointer(AtomicPtr::new(value)), T);

impl Word {
    fn alive(value: u32) -> Word {
        LIVE.set(LIVE.get() + 1);
        Word { value: AtomicU32::new(value), bucket: Mutex::new(()), sleepers: Condvar::new() }
    }

    /// Loom does not know that what a swap writes comes right after what it read. A thread that spins by swapping
    /// could read its own last swap for ever, so a swap that would change nothing stores nothing.
    fn swap_if_other(&self, value: u32, order: Ordering) -> u32 {
        let changed = |current| (current != value).then_some(value);
        let read = if order == Ordering::Release { Ordering::Relaxed } else { order };
        self.value.fetch_update(order, read, changed).unwrap_or_else(|same| same)
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        LIVE.set(LIVE.get() - 1);
    }
}

impl<T> Pointer<T> {
    fn swap_always(&self, value: *mut T, order: Ordering) -> *mut T {
        self.0.swap(value, order)
    }
}

impl AtomicInteger for Word {
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.value.fetch_add(value, order)
    }
}

/// A counter of which loom reports every access that another does not happen before.
struct Counter(UnsafeCell<u32>);

// SAFETY: loom tells when threads use it at once.
unsafe impl Sync for Counter {}
// SAFETY: as above.
unsafe impl Send for Counter {}

/// `threads` threads do `each` sections under the lock. Without a bound on preemptions the number of interleavings
/// explodes; two threads that spin are many interleavings already, for which the bound has to be tighter.
fn model<L: Lock>(threads: u32, each: u32, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let shared = Arc::new((L::new().ok(), Counter(UnsafeCell::new(0))));
        let member = {
            let shared = shared.clone();
            move || {
                let (Some(lock), counter) = &*shared else { return };
                let mut context = L::Context::default();
                for _ in 0..each {
                    lock.with(&mut context, || {
                        // SAFETY: the lock keeps the others out; loom checks it.
                        counter.0.with_mut(|value| unsafe { *value += 1 });
                    });
                }
            }
        };
        let others: Vec<_> = (1..threads).map(|_| thread::spawn(member.clone())).collect();
        member();
        others.into_iter().for_each(|other| assert!(other.join().is_ok()));
        // SAFETY: the others are gone.
        assert_eq!(shared.1.0.with(|value| unsafe { *value }), threads * each);
    });
    assert_eq!(LIVE.get(), 0, "{}: words, and with them queue nodes, were never freed", L::NAME);
}

macro_rules! models {
    ($($name:ident: $lock:ty,)*) => {
        $(
            #[test]
            fn $name() {
                model::<$lock>(2, 2, 3);
                model::<$lock>(3, 1, 1);
            }
        )*
    };
}

models! {
    tas: Tas<Loom>,
    ttas: Ttas<Loom>,
    ticket: Ticket<Loom>,
    mcs: Mcs<Loom>,
    clh: Clh<Loom>,
    futex_3_state: Futex3State<Loom>,
}
