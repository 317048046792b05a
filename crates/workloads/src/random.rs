//! Random choices that a seed decides, the same in every variant of a block.

/// A splitmix generator: a counter in steps of the golden ratio, whose bits are then mixed. Cheap, and no state is bad.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The choices of task `index` of a trial with this seed; they have nothing to do with those of another task.
    pub fn new(seed: u64, index: usize) -> Random {
        Random(seed ^ mixed((index as u64).wrapping_add(1)))
    }

    /// Any number.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `limit`; 0 where that is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

#[inline]
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_limit_come_up_alike_and_differ_by_seed_and_task() {
        let drawn = |seed, index| {
            let mut random = Random::new(seed, index);
            (0..10_000).map(|_| random.below(10)).collect::<Vec<u64>>()
        };
        for number in 0..10 {
            let times = drawn(0, 0).iter().filter(|drawn| **drawn == number).count();
            assert!((800..1200).contains(&times), "{number}: {times}");
        }
        assert!(drawn(0, 0).iter().all(|number| *number < 10));
        assert_eq!(drawn(1, 2), drawn(1, 2));
        assert!(drawn(1, 2) != drawn(1, 3) && drawn(1, 2) != drawn(2, 2));
        assert_eq!(Random::new(0, 0).below(0), 0);
    }
}
