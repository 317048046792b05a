//! The fast code against the slow definition.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

/// The test as `docs/statistics.md` tells it, with nothing clever.
fn slow(base: &[f64], new: &[f64], shift: f64) -> (f64, f64) {
    let n = base.len();
    let a: Vec<f64> = base.iter().map(|v| v.ln()).collect();
    let b: Vec<f64> = new.iter().map(|v| v.ln() - shift).collect();
    let centres: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a + b) / 2.0).collect();
    let drift: Vec<f64> =
        (0..n).map(|i| stats::median(&centres[i.saturating_sub(2)..(i + 3).min(n)]).unwrap()).collect();
    let residual = |side: &[f64]| -> Vec<f64> { side.iter().zip(&drift).map(|(v, m)| v - m).collect() };
    let (a, b) = (residual(&a), residual(&b));
    let pool: Vec<f64> = a.iter().chain(&b).copied().collect();
    let rank = |v: f64| {
        let below = pool.iter().filter(|w| **w < v - 1e-11).count() as f64;
        let tied = pool.iter().filter(|w| (**w - v).abs() <= 1e-11).count() as f64;
        below + (tied + 1.0) / 2.0
    };
    let signed: Vec<f64> = a.iter().zip(&b).map(|(a, b)| rank(*b) - rank(*a)).collect();
    let observed = signed.iter().sum::<f64>().abs();
    let flips = 1_u32 << n;
    let as_far = (0..flips)
        .filter(|flip| {
            let sum: f64 =
                signed.iter().enumerate().map(|(i, d)| if flip >> i & 1 == 1 { -d } else { *d }).sum();
            sum.abs() >= observed - 1e-9
        })
        .count();
    let mut shifts: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    shifts.sort_by(f64::total_cmp);
    (as_far as f64 / f64::from(flips), stats::median(&shifts).unwrap())
}

/// Pairs of block values: from a continuum, or from a clock so coarse that most are tied.
fn blocks(most: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    let fine = prop::collection::vec((0.5..2.0, 0.5..2.0), 1..=most);
    let coarse = prop::collection::vec((1..5_u8, 1..5_u8), 1..=most)
        .prop_map(|pairs| pairs.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).collect());
    prop_oneof![fine, coarse]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn p_and_estimate_equal_the_enumeration_of_all_flips(pairs in blocks(11), shift in -0.5..0.5) {
        let (base, new): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let comparison = stats::compare(&base, &new, 1).unwrap();
        let (p, estimate) = slow(&base, &new, 0.0);
        prop_assert_eq!(comparison.p(), p);
        prop_assert!((comparison.estimate().ln() - estimate).abs() < 1e-12);
        // The slow one shifts before it aligns: the order must not matter.
        prop_assert_eq!(comparison.p_at(f64::exp(shift)), slow(&base, &new, shift).0);
    }
}
