//! The phases of work that goes on for a time and is measured after a warm-up.

use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What the work that is done now counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    WarmUp,
    /// The figures.
    Measured,
    /// It is to end.
    Over,
}

/// The phase, which one conductor turns and all workers see. Alone on its cache lines, so that looking at it costs nothing.
#[derive(Debug)]
#[repr(align(128))]
pub struct Phases {
    word: AtomicU32,
    reach: futex::Flags,
}

impl Phases {
    /// The warm-up, for workers whom `reach` describes: `PRIVATE` for the threads of one process, empty for processes
    /// that share this memory.
    pub fn new(reach: futex::Flags) -> Phases {
        Phases { word: AtomicU32::new(Phase::WarmUp as u32), reach }
    }

    /// The phase that it is.
    #[inline]
    pub fn now(&self) -> Phase {
        match self.word.load(Ordering::Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measured,
            _ => Phase::Over,
        }
    }

    /// Ends the warm-up.
    pub fn measure(&self) {
        let (from, to) = (Phase::WarmUp as u32, Phase::Measured as u32);
        // A worker may have ended all meanwhile.
        let _ = self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Ends the work: for the conductor when the time is over, and for a worker that failed, so that the others need not
    /// work on.
    pub fn end(&self) {
        self.word.store(Phase::Over as u32, Ordering::Release);
        // Waking cannot fail on an aligned word of our own.
        let _ = futex::wake(&self.word, self.reach, i32::MAX as u32);
    }

    /// Sleeps for `time`, without a look in between. False if the work has ended before.
    #[must_use]
    pub fn rest(&self, time: Duration) -> bool {
        let start = Instant::now();
        loop {
            let phase = self.now();
            if phase == Phase::Over {
                return false;
            }
            let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return true;
            };
            let left = Timespec::try_from(left).ok();
            // EAGAIN, EINTR and ETIMEDOUT all mean to look again.
            let _ = futex::wait(&self.word, self.reach, phase as u32, left.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_and_the_end_stays() {
        let phases = Phases::new(futex::Flags::PRIVATE);
        assert_eq!(phases.now(), Phase::WarmUp);
        assert!(phases.rest(Duration::from_millis(1)));
        phases.measure();
        assert_eq!(phases.now(), Phase::Measured);
        phases.end();
        phases.measure();
        assert_eq!(phases.now(), Phase::Over);
        assert!(!phases.rest(Duration::from_secs(600)));
    }

    #[test]
    fn a_rest_ends_with_the_work() {
        let phases = Phases::new(futex::Flags::PRIVATE);
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| phases.rest(Duration::from_secs(600)));
            phases.end();
            assert!(!resting.join().unwrap());
        });
    }
}
