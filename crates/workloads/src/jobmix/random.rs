//! The random choices of one user, which its seed decides.

/// A splitmix generator: a counter in steps of the golden ratio, whose bits are then mixed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The choices that this seed decides.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is at least 1; the smallest come up more often by less than limit / 2^64.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
