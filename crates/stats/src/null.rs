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
    // The sum of the members with a minus, for every choice of signs of eight members: one look-up in place of eight
    // additions. Members that are lacking in the last table count as 0.
    let sums: Vec<[u64; 256]> = sizes
        .chunks(8)
        .map(|eight| {
            let mut sums = [0; 256];
            for signs in 1..256_usize {
                let lowest = eight.get(signs.trailing_zeros() as usize).copied().unwrap_or(0);
                sums[signs] = sums[signs & (signs - 1)] + lowest;
            }
            sums
        })
        .collect();
    let mut as_far = 0_u32;
    for _ in 0..DRAWS {
        let mut minus = 0;
        for eights in sums.chunks(8) {
            let signs = random.next_u64().to_le_bytes();
            minus += eights.iter().zip(signs).map(|(sums, signs)| sums[usize::from(signs)]).sum::<u64>();
        }
        as_far += u32::from(total.abs_diff(2 * minus) >= observed);
    }
    f64::from(as_far + 1) / f64::from(DRAWS + 1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn counting_equals_the_enumeration_of_all_flips(signed in prop::collection::vec(-30..30_i64, 1..13)) {
            let observed = signed.iter().sum::<i64>().abs();
            let flipped = |flip: u32| -> i64 {
                signed.iter().enumerate().map(|(i, d)| if flip >> i & 1 == 1 { -d } else { *d }).sum()
            };
            let flips = 1_u32 << signed.len();
            let as_far = (0..flips).filter(|flip| flipped(*flip).abs() >= observed).count();
            prop_assert_eq!(two_sided_p(&signed, 0), as_far as f64 / f64::from(flips));
        }

        #[test]
        fn drawing_comes_near_counting(sizes in prop::collection::vec(1..60_u64, 20..150), seed in any::<u64>()) {
            let total: u64 = sizes.iter().sum();
            let observed = total - 2 * (total * 45 / 100);
            let (drawn, exact) = (drawn(&sizes, observed, seed), exact(&sizes, ((total - observed) / 2) as usize));
            // Six standard errors of 10,000 draws.
            prop_assert!((drawn - exact).abs() <= 6.0 * (exact * (1.0 - exact) / 1e4).sqrt() + 2e-4);
        }
    }

    #[test]
    fn a_thousand_members_neither_overflow_nor_underflow() {
        let one_side = two_sided_p(&[1; 990], 0);
        assert!(one_side > 0.0 && one_side < 1e-290, "{one_side}");
        let many = two_sided_p(&[7; 5000], 3);
        assert_eq!(many, 1.0 / 10_001.0);
    }
}
