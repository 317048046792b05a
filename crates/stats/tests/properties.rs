//! What holds for all numbers.
#![allow(clippy::unwrap_used)]
use proptest::prelude::*;
use stats::{Comparison, Undefined, compare};

/// Any number at all, NaN and infinities included, and often a repeated one.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        -3.0..3.0,
        (-2..3_i8).prop_map(f64::from),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE)
    ]
}

/// Positive block values of both sides.
fn blocks(sizes: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let pair =
        prop_oneof![(0.5..2.0, 0.5..2.0), (1..6_u8, 1..6_u8).prop_map(|(a, b)| (f64::from(a), f64::from(b)))];
    prop::collection::vec(pair, sizes).prop_map(|pairs| pairs.into_iter().unzip())
}

fn all_figures(comparison: &Comparison) -> Vec<f64> {
    let mut figures = vec![comparison.p(), comparison.estimate(), comparison.attainable_confidence()];
    figures.extend(
        [0.0, 0.5, 0.95, 0.984, 1.0].map(|confidence| comparison.interval(confidence)).map(|(low, _)| low),
    );
    figures.extend(
        [0.0, 0.5, 0.95, 0.984, 1.0].map(|confidence| comparison.interval(confidence)).map(|(_, high)| high),
    );
    figures.extend([f64::MIN, 0.0, 1.0, f64::MAX].map(|effect| comparison.p_at(effect)));
    figures.extend(comparison.leave_one_out());
    figures
}

proptest! {
    #[test]
    fn s11_no_figure_is_nan_or_infinite(
        values in prop::collection::vec(number(), 0..8), more in prop::collection::vec(number(), 8), percent in number(),
    ) {
        let (base, new) = (values.as_slice(), &more[..values.len()]);
        let described = [
            stats::mean(base), stats::hmean(base), stats::gmean(base), stats::median(base), stats::stddev(base),
            stats::cv_pct(base), stats::jain(base), stats::percentile(base, percent),
            stats::percent_change(percent, more[0]), stats::percent_improvement(more[1], more[2], true),
        ];
        for figure in described.into_iter().flatten() {
            prop_assert!(figure.is_finite());
        }
        if let Ok(components) = stats::variance_components(&[base, new, &more]) {
            prop_assert!(components.between.is_finite() && components.within.is_finite());
            prop_assert!((0.0..=1.0).contains(&components.icc));
            let split = components.split(percent, 1.0, 2.0);
            prop_assert!(split.boots > 0 && split.trials > 0);
            // Only variances near the largest number there is can overflow here.
            if components.within < 1e300 {
                prop_assert!(components.variance_of_mean(split).is_finite());
            }
        }
        prop_assert!(stats::tick(base).is_none_or(f64::is_finite));
        prop_assert!((0.0..=1.0).contains(&stats::binomial_tail(3, 10, percent)));
        match compare(base, new, 1) {
            Err(why) => prop_assert!(matches!(why, Undefined::Empty | Undefined::NotFinite)),
            Ok(comparison) => {
                for figure in all_figures(&comparison) {
                    prop_assert!(figure.is_finite(), "{comparison:?}");
                }
                prop_assert!(comparison.p() > 0.0 && comparison.p() <= 1.0);
                stats::blocks_needed(&comparison, 0.05, percent);
            }
        }
    }

    #[test]
    fn the_interval_holds_the_estimate_and_exactly_the_effects_not_rejected(
        (base, new) in blocks(1..14), effect in -0.7..0.7_f64,
    ) {
        let comparison = compare(&base, &new, 1).unwrap();
        for level in [0.05, 0.02, 0.1] {
            let (low, high) = comparison.interval(1.0 - level);
            prop_assert!(low <= comparison.estimate() * (1.0 + 1e-12) && comparison.estimate() <= high * (1.0 + 1e-12));
            // At the very ends the last bit decides.
            let effect = effect.exp();
            let at_an_end = (effect / low - 1.0).abs() < 1e-9 || (effect / high - 1.0).abs() < 1e-9;
            if comparison.attainable_confidence() >= 1.0 - level && !at_an_end {
                prop_assert_eq!(comparison.p_at(effect) > level, (low..=high).contains(&effect));
            }
        }
    }

    #[test]
    fn p_only_rises_towards_the_estimate((base, new) in blocks(2..30)) {
        let comparison = compare(&base, &new, 1).unwrap();
        let (estimate, mut last) = (comparison.estimate(), 0.0);
        for step in (1..60).rev() {
            let p = comparison.p_at(estimate * f64::exp(-0.02 * f64::from(step)));
            prop_assert!(p >= last, "{p} after {last} at step {step}");
            last = p;
        }
    }

    #[test]
    fn exchanging_the_sides_turns_the_effect_and_keeps_p((base, new) in blocks(1..30)) {
        let (there, back) = (compare(&base, &new, 1).unwrap(), compare(&new, &base, 1).unwrap());
        prop_assert_eq!(there.p(), back.p());
        prop_assert!((there.estimate() * back.estimate() - 1.0).abs() < 1e-9);
        let ((low, high), (back_low, back_high)) = (there.interval(0.9), back.interval(0.9));
        prop_assert!((low * back_high - 1.0).abs() < 1e-9 && (high * back_low - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_unit_of_the_values_does_not_matter((base, new) in blocks(1..30), unit in 1e-6..1e6) {
        let scaled = |side: &[f64]| -> Vec<f64> { side.iter().map(|value| value * unit).collect() };
        let (plain, in_unit) = (compare(&base, &new, 1).unwrap(), compare(&scaled(&base), &scaled(&new), 1).unwrap());
        prop_assert_eq!(plain.p(), in_unit.p());
        prop_assert!((plain.estimate() / in_unit.estimate() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn leaving_a_block_out_is_comparing_the_others((base, new) in blocks(2..15), block in 0..15_usize) {
        let comparison = compare(&base, &new, 1).unwrap();
        let block = block % base.len();
        let but = |side: &[f64]| -> Vec<f64> { [&side[..block], &side[block + 1..]].concat() };
        let rest = compare(&but(&base), &but(&new), 1).unwrap();
        let without = comparison.without(block).unwrap();
        prop_assert_eq!(without.p(), rest.p());
        prop_assert_eq!(without.estimate(), rest.estimate());
        prop_assert_eq!(comparison.leave_one_out()[block], rest.p());
        prop_assert!(comparison.without(base.len()).is_none());
    }

    #[test]
    fn means_lie_in_their_order_between_the_ends(values in prop::collection::vec(1e-3..1e3_f64, 1..20)) {
        let figures = [stats::hmean(&values), stats::gmean(&values), stats::mean(&values)].map(Result::unwrap);
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        let ascending = [least, figures[0], figures[1], figures[2], most];
        prop_assert!(ascending.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-9)), "{ascending:?}");
        prop_assert_eq!(stats::percentile(&values, 0.0).unwrap(), least);
        prop_assert_eq!(stats::percentile(&values, 100.0).unwrap(), most);
        let jain = stats::jain(&values).unwrap();
        prop_assert!(jain <= 1.0 + 1e-12 && jain >= 1.0 / values.len() as f64 - 1e-12);
    }

    #[test]
    fn holm_is_between_no_correction_and_bonferroni(p in prop::collection::vec(0.0..1.0, 0..20)) {
        let adjusted = stats::holm(&p);
        for (raw, adjusted) in p.iter().zip(&adjusted) {
            prop_assert!(adjusted >= raw && *adjusted <= (raw * p.len() as f64).min(1.0));
        }
    }
}

#[test]
fn few_blocks_have_a_p_value_but_reach_no_5_percent() {
    for blocks in 1..stats::MIN_BLOCKS {
        let comparison = compare(&vec![1.0; blocks], &vec![9.0; blocks], 0).unwrap();
        assert!(comparison.p() > 0.05 && comparison.attainable_confidence() < 0.95);
    }
    let enough = compare(&[1.0; stats::MIN_BLOCKS], &[9.0; stats::MIN_BLOCKS], 0).unwrap();
    assert!(enough.p() <= 0.05 && enough.attainable_confidence() >= 0.95);
}

#[test]
fn series_that_cannot_be_compared_say_why() {
    assert_eq!(compare(&[], &[], 0).unwrap_err(), Undefined::Empty);
    assert_eq!(compare(&[1.0, 2.0], &[1.0], 0).unwrap_err(), Undefined::Unequal { base: 2, new: 1 });
    assert_eq!(compare(&[1.0], &[f64::NAN], 0).unwrap_err(), Undefined::NotFinite);
    assert_eq!(compare(&[1e-300], &[1e300], 0).unwrap_err(), Undefined::NotFinite);
}

#[test]
fn known_figures() {
    assert_eq!(stats::mean(&[1.0, 2.0, 6.0]), Ok(3.0));
    assert_eq!(stats::hmean(&[2.0, 6.0]), Ok(3.0));
    assert_eq!(stats::stddev(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Ok((32.0_f64 / 7.0).sqrt()));
    assert_eq!(stats::stddev(&[5.0]), Err(Undefined::TooFew { have: 1, need: 2 }));
    assert_eq!(stats::cv_pct(&[9.0, 11.0]).unwrap(), 200.0_f64.sqrt());
    assert_eq!(stats::cv_pct(&[-1.0, 1.0]), Err(Undefined::ZeroMean));
    assert_eq!(stats::percentile(&[10.0, 20.0], 25.0), Ok(12.5));
    assert_eq!(stats::jain(&[1.0, 0.0, 0.0, 0.0]), Ok(0.25));
    assert_eq!(stats::jain(&[0.0, 0.0]), Err(Undefined::ZeroMean));
    assert!((stats::binomial_tail(8, 10, 0.5) - 56.0 / 1024.0).abs() < 1e-12);
    assert!((stats::binomial_tail(1, 20, 0.05) - (1.0 - 0.95_f64.powi(20))).abs() < 1e-12);
    assert!(stats::binomial_tail(5000, 10_000, 0.5) > 0.5);
}

#[test]
fn corrections_for_several_claims() {
    let adjusted = stats::holm(&[0.01, 0.04, 0.03, 0.005]);
    for (found, right) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((found - right).abs() < 1e-12, "{adjusted:?}");
    }
    assert_eq!(stats::look_level(20), Some(0.02));
    assert_eq!(stats::look_level(21), None);
    // Within the level of one look, and of none.
    assert!(stats::sequential_p(&[(8, 0.5), (12, 0.011)]) <= 0.05);
    assert!(stats::sequential_p(&[(8, 0.009), (12, 0.013), (20, 0.021), (40, 0.031)]) > 0.05);
    assert_eq!(stats::sequential_p(&[]), 1.0);
    assert_eq!(stats::sequential_p(&[(10, 0.0001)]), 1.0);
}

#[test]
fn blocks_needed_grow_with_the_noise_and_shrink_with_the_effect() {
    let noise = [0.3, -1.0, 0.7, -0.2, 1.1, -0.9, 0.4, -0.5];
    let needed = |percent: f64, spread: f64| {
        let new: Vec<f64> = noise.iter().map(|n| 100.0 + percent + spread * n).collect();
        stats::blocks_needed(&compare(&[100.0; 8], &new, 0).unwrap(), 0.05, 0.02)
    };
    // Decided already: nothing more is needed.
    assert_eq!(needed(5.0, 1.0), Some(8));
    assert_eq!(needed(0.0, 0.5), Some(8));
    let (quiet, noisy) = (needed(0.5, 3.0).unwrap(), needed(0.5, 6.0).unwrap());
    assert!(8 < quiet && quiet < noisy, "{quiet} {noisy}");
    // Far outside the margin only a difference can be found, and a larger one sooner.
    let (small, large) = (needed(5.0, 20.0).unwrap(), needed(9.0, 20.0).unwrap());
    assert!(8 < large && large < small, "{large} {small}");
    assert_eq!(stats::blocks_needed(&compare(&[1.0], &[2.0], 0).unwrap(), 0.05, 0.02), None);
}

#[test]
fn variance_components_of_unequal_groups_and_their_errors() {
    let components = stats::variance_components(&[&[1.0, 3.0], &[6.0]]).unwrap();
    // By hand: inside 2 on 1, among 2·(4/3)² + (8/3)² = 32/3 on 1, mean size 3 - 5/3.
    assert!((components.within - 2.0).abs() < 1e-12);
    assert!((components.between - 6.5).abs() < 1e-12);
    assert_eq!(stats::variance_components(&[]), Err(Undefined::Empty));
    assert_eq!(stats::variance_components(&[&[1.0], &[]]), Err(Undefined::Empty));
    assert_eq!(stats::variance_components(&[&[1.0, 2.0]]), Err(Undefined::TooFew { have: 1, need: 2 }));
    assert_eq!(stats::variance_components(&[&[1.0], &[2.0]]), Err(Undefined::TooFew { have: 1, need: 2 }));
}

#[test]
fn boots_that_cost_much_or_differ_little_get_more_trials() {
    let like = |between, within| stats::Components { between, within, icc: between / (between + within) };
    let trials = |components: stats::Components, boot_s| components.split(3600.0, boot_s, 10.0).trials;
    assert_eq!(trials(like(1.0, 1.0), 40.0), 2);
    assert_eq!(trials(like(1.0, 1.0), 160.0), 4);
    assert_eq!(trials(like(4.0, 1.0), 160.0), 2);
    // Nothing between boots: as many trials as six boots leave time for.
    assert_eq!(trials(like(0.0, 1.0), 100.0), 50);
    let split = like(1.0, 1.0).split(3600.0, 40.0, 10.0);
    assert_eq!(split.boots, 60);
    assert!((like(1.0, 1.0).variance_of_mean(split) - 1.5 / 60.0).abs() < 1e-12);
}
