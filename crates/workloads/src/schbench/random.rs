//! Random numbers for times that vary: good enough for that, and cheap.

/// A xorshift generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a thread, from the seed of its trial.
    pub fn new(seed: u64, thread: usize) -> Random {
        // An odd factor keeps threads apart; zero is the one state that it does not leave.
        Random((seed ^ (thread as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).max(1))
    }

    /// A number below `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.checked_rem(limit).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_limit_and_differ_by_thread() {
        let drawn = |thread| {
            let mut random = Random::new(7, thread);
            (0..100).map(|_| random.below(1000)).collect::<Vec<u64>>()
        };
        assert!(drawn(0).iter().all(|number| *number < 1000));
        assert!(drawn(0).iter().any(|number| *number > 500) && drawn(0) != drawn(1));
        assert_eq!(Random::new(0, 0).below(0), 0);
    }
}
