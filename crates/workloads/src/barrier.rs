//! A barrier at which threads meet.

use rustix::thread::futex;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// What `generation` says once not all are going to come.
const CANCELLED: u32 = u32::MAX;

/// A barrier whose members turn for a while and then sleep, as those of libgomp do, or sleep at once, as those of the C
/// library do. The last to come lets the others go, and goes on without having slept.
#[derive(Debug)]
pub struct Barrier {
    arrived: AtomicU32,
    generation: AtomicU32,
    count: u32,
    turns: u64,
}

impl Barrier {
    /// A barrier for `count` threads that look `turns` times before they sleep.
    pub fn new(count: u32, turns: u64) -> Barrier {
        Barrier { arrived: AtomicU32::new(0), generation: AtomicU32::new(0), count, turns }
    }

    /// Waits until all have come. False means that not all will, and that every member must leave.
    #[must_use]
    pub fn wait(&self) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        if generation == CANCELLED {
            return false;
        }
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.turn_to((generation + 1) % CANCELLED);
            return true;
        }
        for _ in 0..self.turns {
            if self.generation.load(Ordering::Acquire) != generation {
                break;
            }
            spin_loop();
        }
        while self.generation.load(Ordering::Acquire) == generation {
            // An error means that this has to look again, which it does in any case.
            let _ = futex::wait(&self.generation, futex::Flags::PRIVATE, generation, None);
        }
        self.generation.load(Ordering::Acquire) != CANCELLED
    }

    /// Sends everybody away who waits or will wait.
    pub fn cancel(&self) {
        self.turn_to(CANCELLED);
    }

    fn turn_to(&self, generation: u32) {
        self.generation.store(generation, Ordering::Release);
        // Waking cannot fail on an aligned word of our own.
        let _ = futex::wake(&self.generation, futex::Flags::PRIVATE, i32::MAX as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_before_all_have_come() {
        for turns in [0, 100] {
            let (barrier, passed) = (Barrier::new(3, turns), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for round in 0..200 {
                            assert!(barrier.wait());
                            assert!(
                                (round * 3..=round * 3 + 2).contains(&passed.fetch_add(1, Ordering::SeqCst))
                            );
                            assert!(barrier.wait());
                        }
                    });
                }
            });
            assert_eq!(passed.into_inner(), 600);
        }
    }

    #[test]
    fn who_waits_for_others_that_will_not_come_leaves() {
        let barrier = Barrier::new(3, 10);
        std::thread::scope(|scope| {
            let early = scope.spawn(|| barrier.wait());
            barrier.cancel();
            assert!(!early.join().unwrap());
        });
        assert!(!barrier.wait());
    }
}
