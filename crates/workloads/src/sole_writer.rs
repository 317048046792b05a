//! Numbers in shared memory that one task changes and others look at.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Adds to a number that only the calling task writes, which needs no locked instruction.
#[inline]
pub fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Relaxed) + more, Relaxed);
}
