//! What is claimed of planted differences, and what is not.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{Verdict, analyse};
use common::{Lab, Noise, done, trial, twin, with_evidence};
use experiment::{Blocks, Direction};

#[test]
fn a_planted_slow_down_of_two_percent_is_found() {
    let found = (0..20).filter(|seed| {
        let mut noise = Noise(*seed);
        // The session drifts by 6 %, three times the effect.
        let drift: Vec<f64> = (0..20).map(|block| 1.0 + 0.003 * f64::from(block)).collect();
        let drifting = |times: Vec<f64>| times.iter().zip(&drift).map(|(t, d)| t * d).collect::<Vec<f64>>();
        let (base, new) = (drifting(noise.times(20, 1.0)), drifting(noise.times(20, 1.02)));
        Lab::duel(&base, &new).last_cell().verdict == Verdict::Worse
    });
    assert!(found.count() >= 18);
}

#[test]
fn the_same_difference_is_good_or_bad_by_the_direction_of_the_metric() {
    let mut noise = Noise(2);
    let mut lab = Lab::duel(&noise.times(20, 1.0), &noise.times(20, 1.1));
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::Worse);
    assert!(cell.change_pct.unwrap() > 5.0 && cell.improvement_pct.unwrap() < -5.0);
    lab.metric(0).direction = Direction::Higher;
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::Better);
    assert!(cell.improvement_pct.unwrap() > 5.0);
    assert!(cell.reason.contains("time +"), "{}", cell.reason);
    let effect = cell.effect.unwrap();
    assert!(effect.low < 1.1 && 1.1 < effect.high, "{effect:?}");
    assert_eq!(effect.p_corrected, Some(effect.p));
}

#[test]
fn s12_equal_samples_are_the_same() {
    let cell = Lab::duel(&[5.0; 10], &[5.0; 10]).last_cell();
    assert_eq!(cell.verdict, Verdict::Same, "{}", cell.reason);
    assert_eq!((cell.stddev.unwrap(), cell.cv_pct.unwrap(), cell.ratio.unwrap()), (0.0, 0.0, 1.0));
    let effect = cell.effect.unwrap();
    assert_eq!((effect.estimate, effect.low, effect.high, effect.p), (1.0, 1.0, 1.0, 1.0));
    // And when all of them are 0, which has no logarithm.
    let cell = Lab::duel(&[0.0; 10], &[0.0; 10]).last_cell();
    assert_eq!(cell.verdict, Verdict::Same, "{}", cell.reason);
}

#[test]
fn s5_two_values_without_variance_differ() {
    let cell = Lab::duel(&[5.0; 10], &[6.0; 10]).last_cell();
    assert_eq!(cell.verdict, Verdict::Worse, "{}", cell.reason);
    assert_eq!(cell.effect.unwrap().estimate, 1.2);
}

#[test]
fn noise_alone_is_the_same_or_undecided() {
    let mut noise = Noise(7);
    let cell = Lab::duel(&noise.times(40, 1.0), &noise.times(40, 1.0)).last_cell();
    assert_eq!(cell.verdict, Verdict::Same, "{}", cell.reason);
    let wild = |noise: &mut Noise| (0..8).map(|_| (0.3 * noise.normal()).exp()).collect::<Vec<f64>>();
    let cell = Lab::duel(&wild(&mut noise), &wild(&mut noise)).last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided, "{}", cell.reason);
    // A block takes two trials of 30 s.
    let (_, still) = cell.reason.split_once("; about ").unwrap();
    let (blocks, time) = still.split_once(" more blocks, ").unwrap();
    assert_eq!(time, format!("{blocks} min"));
}

#[test]
fn below_six_blocks_there_are_numbers_and_no_verdict() {
    for blocks in 1..6 {
        let cell = Lab::duel(&vec![1.0; blocks], &vec![2.0; blocks]).last_cell();
        assert_eq!(cell.verdict, Verdict::Undecided);
        assert!(cell.reason.contains("needs at least 6 blocks"), "{}", cell.reason);
        assert_eq!(cell.ratio.unwrap(), 2.0);
    }
    assert_eq!(Lab::duel(&[1.0; 6], &[2.0; 6]).last_cell().verdict, Verdict::Worse);
}

#[test]
fn one_outlying_block_makes_no_verdict() {
    let base = [1.000, 1.001, 1.002, 1.001, 1.000, 1.002];
    let slower = [1.002, 1.004, 1.004, 1.003, 1.001, 1.005];
    assert_eq!(Lab::duel(&base, &slower).last_cell().verdict, Verdict::Worse);
    let mut outlying = slower;
    outlying[3] = 1.2;
    let cell = Lab::duel(&base, &outlying).last_cell();
    assert_ne!(cell.verdict, Verdict::Worse, "{}", cell.reason);

    // Where the difference is beyond the margin, nothing is left but to say which block it hangs on.
    let slower = [1.052, 1.054, 1.054, 1.2, 1.051, 1.055];
    let cell = Lab::duel(&base, &slower).last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided, "{}", cell.reason);
    assert!(cell.reason.contains("rests on block 4"), "{}", cell.reason);

    // A clear difference can do without any one of its blocks.
    let mut noise = Noise(3);
    let (base, mut new) = (noise.times(20, 1.0), noise.times(20, 1.05));
    new[6] = 3.0;
    assert_eq!(Lab::duel(&base, &new).last_cell().verdict, Verdict::Worse);
}

#[test]
fn one_outlying_block_does_not_make_two_things_the_same() {
    let base = [1.009, 0.999, 0.990, 1.000, 0.976, 1.000, 0.994];
    let new = [1.017, 1.014, 1.009, 0.995, 1.001, 1.002, 1.015];
    assert_eq!(Lab::duel(&base, &new).last_cell().verdict, Verdict::Worse);
    // The block pulls the interval into the margin; without it the test would say nothing.
    let mut outlying = new;
    outlying[2] = 0.891;
    let cell = Lab::duel(&base, &outlying).last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided, "{}", cell.reason);
    assert!(cell.reason.contains("rests on block 3"), "{}", cell.reason);
}

#[test]
fn claims_are_corrected_over_the_family() {
    // Six blocks that all agree have p = 1/32: a claim alone, and none among twenty.
    let (base, new) = ([1.0, 1.01, 1.02, 1.01, 1.0, 1.02], [1.05, 1.07, 1.06, 1.06, 1.04, 1.08]);
    let duel = |points: u64| {
        let mut lab = Lab::new(points, &["base", "new"], Blocks::Exactly(6));
        for point in 1..=points {
            lab.series(point, "base", &base);
            lab.series(point, "new", if point == 1 { &new } else { &base });
        }
        lab.analyse()
    };
    let alone = duel(1);
    assert_eq!((alone.family, alone.tables[0].rows[0].cells[1].verdict), (1, Verdict::Worse));
    let among = duel(20);
    let cell = &among.tables[0].rows[0].cells[1];
    assert_eq!((among.family, cell.verdict), (20, Verdict::Undecided));
    assert!(
        cell.reason.contains("over 20 comparisons lets no claim pass with fewer than 10 blocks"),
        "{}",
        cell.reason
    );
    assert_eq!(cell.effect.as_ref().unwrap().p_corrected, Some(20.0 / 32.0));
}

#[test]
fn s19_of_rows_that_are_alike_few_are_starred() {
    let mut noise = Noise(19);
    let mut lab = Lab::new(100, &["base", "new"], Blocks::Exactly(10));
    lab.run.header.experiment.aa = true;
    for point in 1..=100 {
        for (variant, is_twin) in [("base", false), ("base", true), ("new", false)] {
            for (block, value) in (1..).zip(noise.times(10, 1.0)) {
                let one = trial(block, point, variant, done(&[("time", &[value])]));
                lab.push(if is_twin { twin(one) } else { one });
            }
        }
    }
    let analysis = lab.analyse();
    let starred = analysis.tables[0]
        .rows
        .iter()
        .filter(|row| matches!(row.cells[1].verdict, Verdict::Better | Verdict::Worse));
    assert!(starred.count() <= 5);
    let aa = analysis.aa.unwrap();
    assert_eq!((aa.pairs, aa.distrust), (100, false));
    assert!(aa.fired >= 1 && aa.largest_pct > 0.1, "{aa:?}");
}

#[test]
fn an_aa_that_fires_too_often_is_distrusted() {
    let mut noise = Noise(5);
    let mut lab = Lab::new(4, &["base"], Blocks::Exactly(10));
    lab.run.header.experiment.aa = true;
    for point in 1..=4 {
        lab.series(point, "base", &noise.times(10, 1.0));
        for (block, value) in (1..).zip(noise.times(10, 1.2)) {
            lab.push(twin(trial(block, point, "base", done(&[("time", &[value])]))));
        }
    }
    let aa = lab.analyse().aa.unwrap();
    assert_eq!((aa.pairs, aa.fired, aa.distrust, aa.stated_rate), (4, 4, true, 0.05));
    assert!((aa.largest_pct - 20.0).abs() < 3.0);
}

#[test]
fn s16_samples_of_one_trial_are_not_independent() {
    // Twenty trials with five samples each that agree to a hair. Between trials there is 5 % of noise, which a test that
    // took all hundred pairs for independent would call a difference.
    let mut noise = Noise(16);
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(10));
    for block in 1..=10 {
        for variant in ["base", "new"] {
            let level = (0.05 * noise.normal()).exp();
            let samples: Vec<f64> = (0..5).map(|_| level * (1.0 + 1e-4 * noise.normal())).collect();
            lab.push(trial(block, 1, variant, done(&[("time", &samples)])));
        }
    }
    let cell = lab.last_cell();
    assert_eq!(cell.effect.unwrap().blocks, 10);
    assert_eq!(cell.values.len(), 10);
    assert_eq!(cell.verdict, Verdict::Undecided, "{}", cell.reason);
    assert!(cell.icc.unwrap() > 0.99);
}

#[test]
fn s17_a_small_deviation_inside_trials_proves_nothing() {
    // Each trial has a tiny deviation, and trials of the same thing differ by far more.
    let base = [1.00, 1.03, 0.99, 1.02, 1.01, 0.98];
    let new = [1.02, 0.99, 1.01, 1.00, 1.03, 1.01];
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(6));
    for (variant, levels) in [("base", base), ("new", new)] {
        for (block, level) in (1..).zip(levels) {
            lab.push(trial(block, 1, variant, done(&[("time", &[level, level + 1e-6, level - 1e-6])])));
        }
    }
    assert!(!matches!(lab.last_cell().verdict, Verdict::Better | Verdict::Worse));
}

#[test]
fn s14_one_tick_more_is_no_outlier() {
    // A clock of 10 ms: most blocks agree exactly, so any deviation is infinitely many of theirs.
    let base = [1.00, 1.00, 1.00, 1.01, 1.00, 1.00, 1.00, 1.00];
    let new = [1.20, 1.20, 1.21, 1.20, 1.20, 1.20, 1.20, 1.20];
    let lab = Lab::duel(&base, &new);
    let analysis = lab.analyse();
    assert_eq!(analysis.tables[0].rows[0].cells[1].verdict, Verdict::Worse);
    let tick = analysis.tables[0].tick.unwrap();
    assert!((tick - 0.01).abs() < 1e-9, "{tick}");
}

#[test]
fn a_feature_that_never_ran_is_not_exercised_and_never_the_same() {
    let lab = |ran: &[bool]| {
        let mut lab = Lab::new(1, &["base", "slice"], Blocks::Exactly(8));
        lab.series(1, "base", &[1.0; 8]);
        for (block, ran) in (1..).zip(ran) {
            lab.push(trial(block, 1, "slice", with_evidence(1.0, *ran)));
        }
        lab.last_cell()
    };
    let cell = lab(&[false; 8]);
    assert_eq!(cell.verdict, Verdict::NotExercised);
    assert_eq!(cell.reason, "slice=on never ran: 0 grants");
    assert_eq!(cell.ratio.unwrap(), 1.0);
    let mut slower = Lab::new(1, &["base", "slice"], Blocks::Exactly(8));
    slower.series(1, "base", &[1.0; 8]);
    for block in 1..=8 {
        slower.push(trial(block, 1, "slice", with_evidence(1.4, false)));
    }
    let features = slower.analyse().features;
    assert_eq!(features.len(), 1);
    assert_eq!((features[0].variant.as_str(), features[0].ran, features[0].trials), ("slice", 0, 8));
    let cell = slower.last_cell();
    assert_eq!(cell.verdict, Verdict::NotExercised);
    assert!(cell.reason.contains("never ran: 0 grants; yet time +40.00 %"), "{}", cell.reason);
    let mut once = [false; 8];
    once[5] = true;
    assert_eq!(lab(&once).verdict, Verdict::Same);
}

#[test]
fn a_variant_whose_knobs_do_not_apply_is_not_exercised() {
    let mut lab = Lab::new(1, &["base", "mcs:lock=mcs"], Blocks::Exactly(8));
    lab.run.header.descriptions[0].parameters.clear();
    lab.series(1, "base", &[1.0; 8]);
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::NotExercised);
    assert_eq!(cell.reason, "lock=mcs does not apply to work");
    assert_eq!(cell.value.unwrap_err().why, cell.reason);
    assert_eq!(lab.analyse().family, 0);
}

#[test]
fn secondary_metrics_are_shown_and_not_judged() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(8));
    for block in 1..=8 {
        lab.push(trial(block, 1, "base", done(&[("time", &[1.0]), ("rate", &[10.0])])));
        lab.push(trial(block, 1, "new", done(&[("time", &[1.0]), ("rate", &[20.0])])));
    }
    let analysis = lab.analyse();
    assert_eq!((analysis.family, analysis.tables.len()), (1, 2));
    let cell = &analysis.tables[1].rows[0].cells[1];
    assert_eq!(cell.verdict, Verdict::Unjudged);
    assert_eq!(cell.ratio.as_ref().unwrap(), &2.0);
    let effect = cell.effect.as_ref().unwrap();
    assert!((effect.estimate - 2.0).abs() < 1e-9 && effect.p_corrected.is_none());
}

#[test]
fn s24_only_this_run_counts() {
    // The analysis of a run is a function of its journal alone.
    let mut noise = Noise(24);
    let lab = Lab::duel(&noise.times(20, 1.0), &noise.times(20, 1.05));
    let first = lab.last_cell();
    let wild = Lab::duel(&[1.0, 50.0, 2.0, 90.0, 3.0, 70.0], &[9.0, 1.0, 80.0, 2.0, 60.0, 4.0]);
    analyse(&wild.run);
    let second = lab.last_cell();
    assert_eq!((first.verdict, first.reason), (second.verdict, second.reason));
}

#[test]
fn values_that_are_not_positive_are_compared_by_their_difference() {
    let mut noise = Noise(8);
    let around =
        |noise: &mut Noise, centre: f64| (0..12).map(|_| centre + noise.normal()).collect::<Vec<f64>>();
    let mut base = around(&mut noise, 0.0);
    base[0] = 0.0;
    let cell = Lab::duel(&base, &around(&mut noise, 10.0)).last_cell();
    assert_eq!(cell.verdict, Verdict::Worse, "{}", cell.reason);
    let effect = cell.effect.unwrap();
    assert_eq!(effect.scale, stats::Scale::Difference);
    assert!((effect.estimate - 10.0).abs() < 1.5);
    assert!(cell.reason.contains(" s ("), "{}", cell.reason);
}
