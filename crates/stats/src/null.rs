//! The null distribution of a sum of whole numbers whose signs are random.
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Additions that the exact distribution may cost, about two milliseconds. Up to some 250 blocks stay below it.
const AFFORDABLE: u64 = 4_000_000;

/// Sign flips drawn where the exact distribution costs too much.
const DRAWS: u32 = 10_000;

/// The share of all sign flips of `signed` whose sum is at least as far from 0 as the sum observed.
///
/// Exact, since the sums of whole numbers are few enough to count. Only a set too large for that is drawn from, with
/// `seed`; then the share is (count + 1) / (draws + 1).
pub(crate) fn two_sided_p(signed: &[i64], seed: u64) -> f64 {
    let observed = signed.iter().sum::<i64>().unsigned_abs();
    if observed == 0 {
        return 1.0;
    }
    let mut sizes: Vec<u64> = signed.iter().map(|d| d.unsigned_abs()).filter(|d| *d > 0).collect();
    let divisor = sizes.iter().copied().fold(0, gcd);
    sizes.iter_mut().for_each(|size| *size /= divisor);
    let observed = observed / divisor;
    // A sum reaches `observed` when the members with a minus add up to at most `tail`.
    let tail = (sizes.iter().sum::<u64>() - observed) / 2;
    if (sizes.len() as u64).saturating_mul(tail) <= AFFORDABLE && sizes.len() < 1000 {
        exact(&sizes, tail as usize)
    } else {
        drawn(&sizes, observed, seed)
    }
}

/// Counts the subsets whose sum is at most `tail`, by adding one member after the other.
fn exact(sizes: &[u64], tail: usize) -> f64 {
    let mut subsets = vec![0.0_f64; tail + 1];
    let mut next = subsets.clone();
    subsets[0] = 1.0;
    let mut reached = 0;
    for size in sizes.iter().map(|size| *size as usize) {
        let grown = (reached + size).min(tail);
        next[..=grown].copy_from_slice(&subsets[..=grown]);
        if size <= tail {
            next[size..=grown].iter_mut().zip(&subsets).for_each(|(with, without)| *with += without);
        }
        std::mem::swap(&mut subsets, &mut next);
        reached = grown;
    }
    // Both tails, which are alike; 2^-n by halves, so that 1000 members do not underflow on the way.
    let both = 2.0 * subsets.iter().sum::<f64>();
    (both * 0.5_f64.powi(sizes.len() as i32)).min(1.0)
}

fn drawn(sizes: &[u64], observed: u64, seed: u64) -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let total: u64 = sizes.iter().sum();
    let mut as_far = 0_u32;
    for _ in 0..DRAWS {
        let mut minus = 0;
        for chunk in sizes.chunks(64) {
            let signs = random.next_u64();
            minus += chunk.iter().enumerate().map(|(bit, size)| size * (signs >> bit & 1)).sum::<u64>();
        }
        as_far += u32::from(total.abs_diff(2 * minus) >= observed);
    }
    f64::from(as_far + 1) / f64::from(DRAWS + 1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
