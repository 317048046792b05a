//! The clock of every measurement.

use crate::Failure;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds of the monotonic raw clock: never set, never slewed.
#[inline]
pub fn now_ns() -> u64 {
    ns_of(ClockId::MonotonicRaw)
}

/// Nanoseconds of any of the kernel's clocks.
#[inline]
pub fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // They count up from 1970, from boot or from the start of a thread, so neither part is negative.
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Nanoseconds of processor time that the calling thread has used.
#[inline]
pub fn thread_cpu_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

/// Seconds from `start_ns` to `end_ns`; negative if the clock went backwards, which a caller must refuse.
pub fn seconds_between(start_ns: u64, end_ns: u64) -> f64 {
    (end_ns as i128 - start_ns as i128) as f64 / 1e9
}

/// Nanoseconds from `start_ns` to `end_ns`.
///
/// # Errors
/// When the clock went backwards, which makes a trial missing.
pub fn elapsed_ns(start_ns: u64, end_ns: u64) -> Result<u64, Failure> {
    end_ns.checked_sub(start_ns).ok_or_else(|| {
        Failure::Invariant(format!("the monotonic clock went backwards by {} ns", start_ns - end_ns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_beyond_one_second_and_backwards_are_exact() {
        assert_eq!(seconds_between(999_999_999, 3_000_000_000), 2.000000001);
        assert_eq!(seconds_between(2_000_000_000, 1_000_000_000), -1.0);
        assert!(now_ns() <= now_ns());
        assert_eq!(elapsed_ns(999_999_999, 3_000_000_000).unwrap(), 2_000_000_001);
        assert!(elapsed_ns(2, 1).unwrap_err().to_string().contains("backwards by 1 ns"));
    }
}
