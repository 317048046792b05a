//! Repeating an experiment many times, on all CPUs, with the same result on any number of them.
use super::noise::Random;
use rand::SeedableRng;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts that an experiment's repeats are cut into, each with random numbers of its own.
const PARTS: u64 = 20;

/// The mean of each of the `K` figures that `experiment` gives, over `repeats` of them (rounded up to a multiple of
/// [`PARTS`]). `name` and `seed` together choose the random numbers.
pub fn means<const K: usize>(
    name: &str,
    seed: u64,
    repeats: u32,
    experiment: impl Fn(&mut Random) -> [f64; K] + Sync,
) -> [f64; K] {
    let each = repeats.div_ceil(PARTS as u32);
    let next = AtomicU64::new(0);
    let sums = Mutex::new(vec![[0.0; K]; PARTS as usize]);
    let work = || {
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTS {
                return;
            }
            let mut random = Random::seed_from_u64(seed_of(name, seed, part));
            let mut sum = [0.0; K];
            for _ in 0..each {
                sum.iter_mut().zip(experiment(&mut random)).for_each(|(sum, figure)| *sum += figure);
            }
            // Kept apart and added in their order below, so that rounding does not depend on who came first.
            if let Ok(mut sums) = sums.lock() {
                sums[part as usize] = sum;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut total = [0.0; K];
    for sum in sums.into_inner().unwrap_or_default() {
        total.iter_mut().zip(sum).for_each(|(total, figure)| *total += figure);
    }
    total.map(|figure| figure / f64::from(each) / PARTS as f64)
}

fn seed_of(name: &str, seed: u64, part: u64) -> u64 {
    // This hasher has fixed keys: the same numbers in every process.
    let mut hasher = DefaultHasher::new();
    (name, seed, part).hash(&mut hasher);
    hasher.finish()
}

/// The standard error of a share found in so many repeats.
pub fn standard_error(share: f64, repeats: u32) -> f64 {
    (share * (1.0 - share) / f64::from(repeats)).sqrt()
}

/// 1 for a yes: a share is a mean of these.
pub fn count(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}
