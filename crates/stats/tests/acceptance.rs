//! The cases of the acceptance list that are about the statistics, each under its name.
#![allow(clippy::unwrap_used)]
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use stats::{Histogram, Scale, Undefined, compare};

#[test]
fn s1_median_of_five_is_three() {
    assert_eq!(stats::median(&[1.0, 2.0, 3.0, 4.0, 5.0]), Ok(3.0));
    assert_eq!(stats::median(&[4.0, 1.0, 5.0, 2.0, 3.0]), Ok(3.0));
    assert_eq!(stats::median(&[4.0, 1.0, 2.0, 3.0]), Ok(2.5));
    assert_eq!(stats::median(&[7.0]), Ok(7.0));
}

#[test]
fn s2_a_fall_to_zero_is_minus_100_percent_and_a_base_of_zero_has_none() {
    assert_eq!(stats::percent_change(100.0, 0.0), Ok(-100.0));
    assert_eq!(stats::percent_change(0.0, 100.0), Err(Undefined::ZeroBase));
    assert_eq!(stats::percent_change(0.0, 0.0), Err(Undefined::ZeroBase));
    assert_eq!(stats::percent_improvement(0.0, 1.0, true), Err(Undefined::ZeroBase));
}

#[test]
fn s3_the_interval_narrows_with_the_root_of_the_number_of_blocks() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut width = |blocks: usize| {
        let widths = (0..60).map(|_| {
            let (base, new) = (normals(&mut random, blocks), normals(&mut random, blocks));
            let (low, high) = compare(&around_one(&base), &around_one(&new), 0).unwrap().interval(0.95);
            high - low
        });
        widths.sum::<f64>() / 60.0
    };
    let (ten, twenty, eighty) = (width(10), width(20), width(80));
    assert!((1.3..1.7).contains(&(ten / twenty)), "{ten} / {twenty}");
    assert!((1.8..2.3).contains(&(twenty / eighty)), "{twenty} / {eighty}");
}

#[test]
fn s5_no_variance_gives_an_exact_answer() {
    let identical = compare(&[5.0; 8], &[5.0; 8], 1).unwrap();
    assert_eq!((identical.p(), identical.estimate(), identical.interval(0.95)), (1.0, 1.0, (1.0, 1.0)));

    let doubled = compare(&[5.0; 8], &[10.0; 8], 1).unwrap();
    assert_eq!(doubled.p(), 2.0 / 256.0);
    let (low, high) = doubled.interval(0.95);
    assert!([low, high, doubled.estimate()].iter().all(|ratio| (ratio - 2.0).abs() < 1e-12));
    assert_eq!(stats::stddev(&[0.1; 7]), Ok(0.0));
    assert_eq!(stats::mean(&[0.1; 7]), Ok(0.1));
}

#[test]
fn s7_the_geometric_mean_of_400_thousands_is_a_thousand() {
    assert_eq!(stats::gmean(&[1000.0; 400]), Ok(1000.0));
    assert_eq!(stats::gmean(&[1e-200; 400]), Ok(1e-200));
    assert!((stats::gmean(&[1e-300, 1e300]).unwrap() - 1.0).abs() < 1e-9);
    assert!((stats::gmean(&[1.0, 10.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
    assert_eq!(stats::gmean(&[1.0, 0.0]), Err(Undefined::NonPositive));
}

#[test]
fn s8_minus_one_is_a_value() {
    assert_eq!(stats::mean(&[-1.0, -1.0]), Ok(-1.0));
    let comparison = compare(&[-1.0; 6], &[-3.0; 6], 0).unwrap();
    assert_eq!((comparison.scale(), comparison.estimate()), (Scale::Difference, -2.0));
    // Positive is good for a negative base as well.
    assert_eq!(stats::percent_improvement(-1.0, -3.0, true), Ok(200.0));
}

#[test]
fn s10_a_run_that_measures_zero_has_a_difference_and_no_ratio() {
    let comparison = compare(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], &[1.0; 8], 1).unwrap();
    assert_eq!((comparison.scale(), comparison.estimate()), (Scale::Difference, 1.0));
    assert_eq!(stats::hmean(&[0.0, 1.0]), Err(Undefined::NonPositive));
}

#[test]
fn s12_equal_samples_break_nothing() {
    for blocks in [1, 2, 5, 6, 40, 300] {
        let comparison = compare(&vec![3.7; blocks], &vec![3.7; blocks], 1).unwrap();
        assert_eq!((comparison.p(), comparison.estimate()), (1.0, 1.0));
        assert_eq!(comparison.interval(0.95), (1.0, 1.0));
        let zeros = compare(&vec![0.0; blocks], &vec![0.0; blocks], 1).unwrap();
        assert_eq!((zeros.p(), zeros.estimate(), zeros.interval(0.984)), (1.0, 0.0, (0.0, 0.0)));
        assert!(!zeros.interval(0.95).1.is_sign_negative(), "prints as -0");
        assert_eq!(zeros.leave_one_out(), vec![1.0; blocks]);
        assert_eq!(stats::blocks_needed(&zeros, 0.05, 0.02), None);
    }
    assert_eq!(stats::cv_pct(&[3.7; 9]), Ok(0.0));
    assert_eq!(stats::tick(&[3.7; 9]), None);
    assert_eq!(stats::variance_components(&[&[2.0; 3], &[2.0; 3]]).unwrap().icc, 0.0);
}

#[test]
fn s14_ticks_of_a_coarse_clock_are_ties_and_not_outliers() {
    // Three quarters of the samples are equal, so their median absolute deviation is 0.
    let base = [10.0, 10.0, 10.0, 11.0, 10.0, 10.0, 11.0, 10.0, 10.0, 10.0, 11.0, 10.0];
    let new = [10.0, 11.0, 10.0, 10.0, 10.0, 11.0, 10.0, 10.0, 11.0, 10.0, 10.0, 10.0];
    let comparison = compare(&base, &new, 1).unwrap();
    assert_eq!((comparison.p(), comparison.estimate()), (1.0, 1.0));
    assert_eq!(stats::tick(&base), Some(1.0));
    assert_eq!(stats::tick(&[0.25, 0.75, 0.25, 1.5, 0.25, 0.75, 1.5]), None);
    assert_eq!(stats::tick(&[0.25, 0.75, 0.25, 1.75, 0.25, 0.75, 1.75]), Some(0.5));
    assert_eq!(stats::tick(&[1.0, 1.1, 1.23, 1.9]), None);
    // A difference of one tick in every block is still found.
    let slower: Vec<f64> = base.iter().map(|value| value + 1.0).collect();
    assert!(compare(&base, &slower, 1).unwrap().p() < 0.001);
}

#[test]
fn s16_pairs_inside_an_invocation_are_no_blocks() {
    // Two equal variants, 10 invocations each with 5 samples; 1 % between invocations and 0.5 % within.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(16);
    let (mut by_invocation, mut pooled, mut icc) = (0, 0, 0.0);
    let experiments = 300;
    for _ in 0..experiments {
        let mut side = || -> Vec<Vec<f64>> {
            let invocations = normals(&mut random, 10);
            let samples =
                |common| normals(&mut random, 5).iter().map(|own| 100.0 + common + own / 2.0).collect();
            invocations.into_iter().map(samples).collect()
        };
        let (base, new) = (side(), side());
        let means =
            |side: &[Vec<f64>]| -> Vec<f64> { side.iter().map(|s| stats::mean(s).unwrap()).collect() };
        by_invocation += u32::from(compare(&means(&base), &means(&new), 0).unwrap().p() <= 0.05);
        pooled += u32::from(compare(&base.concat(), &new.concat(), 0).unwrap().p() <= 0.05);
        let groups: Vec<&[f64]> = base.iter().map(Vec::as_slice).collect();
        icc += stats::variance_components(&groups).unwrap().icc / f64::from(experiments);
    }
    // 5 % of 300 is 15, with a standard error of 3.8.
    assert!(by_invocation <= 27, "{by_invocation}");
    assert!(pooled >= 60, "{pooled}");
    // 1 / (1 + 0.25), a little less on average since the estimate from 10 invocations is skewed.
    assert!((0.7..0.85).contains(&icc), "{icc}");
}

#[test]
fn s17_a_small_spread_inside_a_run_says_nothing_about_the_next_run() {
    let first = [100.0, 100.1, 99.9, 100.0];
    let again = [103.0, 103.1, 102.9, 103.0];
    let components = stats::variance_components(&[&first, &again]).unwrap();
    assert!((components.within - 0.02 / 3.0).abs() < 1e-12);
    assert!((components.between - (4.5 - 0.02 / 12.0)).abs() < 1e-9);
    assert!(components.icc > 0.99);
    // Each run is one value, and one block decides nothing.
    assert_eq!(compare(&[100.0], &[103.0], 0).unwrap().p(), 1.0);
    // Boots are what counts here: one trial each, as many boots as the time allows.
    let split = components.split(600.0, 20.0, 10.0);
    assert_eq!((split.boots, split.trials), (20, 1));
}

#[test]
fn s20_percent_is_of_the_base_and_its_sign_is_turned_for_lower_is_better() {
    assert_eq!(format!("{:.2}", stats::percent_change(1.66990, 1.27731).unwrap()), "-23.51");
    assert_eq!(format!("{:.2}", stats::percent_improvement(1.66990, 1.27731, true).unwrap()), "23.51");
    assert_eq!(format!("{:.2}", stats::percent_improvement(1.66990, 1.27731, false).unwrap()), "-23.51");
    let to_itself = |lower| stats::percent_improvement(3.0, 3.0, lower).unwrap();
    assert_eq!(format!("{:.2} {:.2}", to_itself(false), to_itself(true)), "0.00 -0.00");
}

#[test]
fn s26_percentiles_hold_beyond_a_thousand_seconds_and_after_merging() {
    let (mut even, mut odd, mut all) = (Histogram::new(), Histogram::new(), Histogram::new());
    // 1 us to 5000 s, in nanoseconds, evenly by ratio.
    let values: Vec<u64> =
        (0..20_000).map(|i| (1e3 * 5e9_f64.powf(f64::from(i) / 19_999.0)) as u64).collect();
    for (i, value) in values.iter().enumerate() {
        if i % 2 == 0 {
            even.record(*value)
        } else {
            odd.record(*value)
        }
        all.record(*value);
    }
    even.merge(&odd);
    assert_eq!(even, all);
    assert_eq!(Histogram::from_text(&all.to_text().unwrap()).unwrap(), all);
    for percent in [0.1, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
        let exact = values[((percent / 100.0 * 20_000.0) as usize).saturating_sub(1)] as f64;
        let found = all.percentile(percent).unwrap() as f64;
        assert!((found / exact - 1.0).abs() < 0.01, "{percent}: {found} for {exact}");
    }
    assert!(all.range().unwrap().1 > 4_900_000_000_000);
}

fn normals(random: &mut Xoshiro256PlusPlus, count: usize) -> Vec<f64> {
    use rand::RngExt;
    let normal = |_| {
        (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt()
            * (std::f64::consts::TAU * random.random::<f64>()).cos()
    };
    (0..count).map(normal).collect()
}

/// Block values with a noise of 1 %.
fn around_one(normals: &[f64]) -> Vec<f64> {
    normals.iter().map(|normal| (normal / 100.0).exp()).collect()
}
