//! The gate at which a crew of threads or processes waits for its start.

use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const CANCELLED: u32 = 2;

/// The gate at which a crew waits, so that creating threads or processes is never part of what is measured.
#[derive(Debug)]
pub struct Gate {
    state: AtomicU32,
    arrived: AtomicU32,
    count: u32,
    reach: futex::Flags,
}

impl Gate {
    /// A closed gate for `count` members, in memory that `reach` describes: `PRIVATE` for the threads of one process,
    /// empty where processes share it.
    pub(crate) fn new(count: u32, reach: futex::Flags) -> Gate {
        Gate { state: AtomicU32::new(CLOSED), arrived: AtomicU32::new(0), count, reach }
    }

    /// Arrives and waits. False means that the crew could not be completed and every member must leave.
    #[must_use]
    pub fn wait(&self) -> bool {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.wake_all(&self.arrived);
        }
        while self.state.load(Ordering::Acquire) == CLOSED {
            self.sleep_while(&self.state, CLOSED, None);
        }
        self.state.load(Ordering::Acquire) == OPEN
    }

    /// Lets the crew go: one store and one wake-up for all.
    pub fn open(&self) {
        self.turn(OPEN);
    }

    /// Sends the crew away.
    pub(crate) fn cancel(&self) {
        self.turn(CANCELLED);
    }

    /// To be called by a member that ends: one that ends before the gate has opened never arrived, and the crew cannot be
    /// completed.
    pub(crate) fn end(&self) {
        // Most members end long after, all at once, and have to read only.
        let is_closed = self.state.load(Ordering::Acquire) == CLOSED;
        let turned = |from, to| self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        if is_closed && turned(CLOSED, CANCELLED).is_ok() {
            self.wake_all(&self.state);
            // Whoever waits for the others finds another number, and looks.
            self.arrived.fetch_add(1, Ordering::AcqRel);
            self.wake_all(&self.arrived);
        }
    }

    /// Whether the crew was sent away.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    /// Whether all have arrived or the crew was sent away; looks after `patience` at the latest.
    pub(crate) fn wait_for_all(&self, patience: Option<Duration>) -> bool {
        let arrived = self.arrived.load(Ordering::Acquire);
        if arrived < self.count && !self.is_cancelled() {
            self.sleep_while(&self.arrived, arrived, patience);
        }
        self.arrived.load(Ordering::Acquire) >= self.count || self.is_cancelled()
    }

    fn turn(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.wake_all(&self.state);
    }

    fn sleep_while(&self, word: &AtomicU32, value: u32, patience: Option<Duration>) {
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        // EAGAIN, EINTR and ETIMEDOUT mean that the caller has to look again, which it does in any case.
        let _ = futex::wait(word, self.reach, value, patience.as_ref());
    }

    fn wake_all(&self, word: &AtomicU32) {
        // Waking cannot fail on an aligned word of our own.
        let _ = futex::wake(word, self.reach, i32::MAX as u32);
    }
}
