//! Absence is never a number, and always has a reason.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{Analysis, Verdict};
use common::{Lab, done, lost, trial};
use experiment::{Blocks, Failure, Known, Statistic};
use proptest::prelude::*;

#[test]
fn p11_failed_trials_are_missing_with_their_most_frequent_reason() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(6));
    lab.series(1, "base", &[1.0; 6]);
    for block in 1..=6 {
        let outcome = match block {
            2 => lost(Failure::Hang, "passed its deadline of 600 s"),
            _ => lost(Failure::Signal, "killed by SIGSEGV"),
        };
        lab.push(trial(block, 1, "new", outcome));
    }
    let analysis = lab.analyse();
    let cell = &analysis.tables[0].rows[0].cells[1];
    assert_eq!(cell.verdict, Verdict::Missing);
    assert_eq!(cell.reason, "6 trials, most often (5): killed by SIGSEGV");
    for figure in
        [&cell.value, &cell.stddev, &cell.cv_pct, &cell.ratio, &cell.change_pct, &cell.improvement_pct]
    {
        assert_eq!(figure.as_ref().unwrap_err().why, cell.reason);
    }
    assert!(cell.effect.is_err());
    assert_eq!(
        analysis.missing,
        [("killed by SIGSEGV".to_string(), 5), ("passed its deadline of 600 s".to_string(), 1)]
    );
    assert_eq!(analysis.trials, 12);
}

#[test]
fn a_missing_baseline_leaves_the_variants_their_values() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(6));
    lab.series(1, "new", &[1.0; 6]);
    lab.push(trial(1, 1, "base", lost(Failure::Exit, "left with status 3")));
    let row = lab.row();
    assert_eq!(row.cells[0].verdict, Verdict::Missing);
    assert_eq!(row.cells[1].verdict, Verdict::Missing);
    assert_eq!(row.cells[1].reason, "the baseline has none: the only trial: left with status 3");
    assert_eq!(row.cells[1].value, Ok(1.0));
    assert!(row.cells[1].ratio.is_err());
}

#[test]
fn blocks_count_where_both_sides_have_a_value() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(9));
    lab.series(1, "base", &[1.0; 9]);
    for block in 1..=9 {
        let bad = [2, 5].contains(&block);
        let outcome = if bad { lost(Failure::Agent, "the agent died") } else { done(&[("time", &[1.1])]) };
        lab.push(trial(block, 1, "new", outcome));
    }
    let cell = lab.last_cell();
    assert_eq!(cell.effect.unwrap().blocks, 7);
    assert_eq!(cell.values.iter().map(|value| value.block).collect::<Vec<u32>>(), [1, 3, 4, 6, 7, 8, 9]);
    assert_eq!(cell.verdict, Verdict::Worse);
}

#[test]
fn m7_a_throttled_trial_is_invalid() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(6));
    for block in 1..=6 {
        for variant in ["base", "new"] {
            let mut one = trial(block, 1, variant, done(&[("time", &[1.0])]));
            one.usage.throttled_ns = Some(if block == 3 { 1 } else { 0 });
            lab.push(one);
        }
    }
    let analysis = lab.analyse();
    let cell = &analysis.tables[0].rows[0].cells[1];
    assert_eq!(cell.values.iter().map(|value| value.block).collect::<Vec<u32>>(), [1, 2, 4, 5, 6]);
    assert_eq!(analysis.missing, [("a CPU quota throttled it".to_string(), 2)]);
}

#[test]
fn s2_the_base_of_a_percentage_is_the_baseline() {
    let cell = Lab::duel(&[100.0; 6], &[0.0; 6]).last_cell();
    assert_eq!(cell.change_pct, Ok(-100.0));
    let cell = Lab::duel(&[0.0; 6], &[100.0; 6]).last_cell();
    for figure in [cell.change_pct, cell.improvement_pct, cell.ratio] {
        assert!(figure.unwrap_err().why.contains("the baseline is 0"));
    }
    assert_eq!(cell.verdict, Verdict::Worse, "the difference is there all the same");
}

#[test]
fn s20_percent_is_of_the_base_and_the_sign_says_what_is_good() {
    let row = Lab::duel(&[1.66990; 6], &[1.27731; 6]).row();
    let percent = |figure: &Known<f64>| format!("{:.2}", figure.as_ref().unwrap());
    assert_eq!(percent(&row.cells[1].change_pct), "-23.51");
    assert_eq!(percent(&row.cells[1].improvement_pct), "23.51");
    assert_eq!(percent(&row.cells[0].improvement_pct), "-0.00", "the baseline, lower is better");
    assert_eq!(percent(&row.cells[0].change_pct), "0.00");
}

#[test]
fn s10_what_measures_zero_is_below_resolution() {
    let mut lab = Lab::duel(&[0.0; 6], &[1.0; 6]);
    let cell = lab.last_cell();
    assert_eq!(cell.ratio.unwrap_err().why, "the baseline is 0, below resolution");
    lab.metric(0).statistic = Statistic::Hmean;
    let row = lab.row();
    assert_eq!(row.cells[0].verdict, Verdict::Missing);
    assert_eq!(row.cells[0].reason, "all 6 trials: a value is 0, below resolution");
    assert!(row.cells[1].ratio.is_err());
}

#[test]
fn s4_what_cannot_be_computed_has_no_star() {
    // Values so far apart that their difference is beyond all numbers.
    let (base, new) =
        ([f64::MAX, -1.0, f64::MAX, 1.0, f64::MAX, 1.0], [-f64::MAX, 1.0, -f64::MAX, 1.0, -f64::MAX, 1.0]);
    let cell = Lab::duel(&base, &new).last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided);
    assert!(cell.effect.is_err());
    assert!(!cell.reason.is_empty());
}

#[test]
fn s8_minus_one_is_a_value() {
    let cell = Lab::duel(&[-1.0; 6], &[-1.0; 6]).last_cell();
    assert_eq!((cell.value, cell.verdict), (Ok(-1.0), Verdict::Same));
}

#[test]
fn a_trial_that_lacks_a_metric_says_which() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(2));
    lab.series(1, "base", &[1.0; 2]);
    for block in 1..=2 {
        lab.push(trial(block, 1, "new", done(&[("rate", &[1.0])])));
    }
    assert_eq!(lab.last_cell().reason, "all 2 trials: the trial yielded no time");
}

fn numbers(analysis: &Analysis) -> Vec<f64> {
    let mut all = Vec::new();
    for cell in analysis.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells) {
        let figures = [
            &cell.value,
            &cell.stddev,
            &cell.cv_pct,
            &cell.ratio,
            &cell.change_pct,
            &cell.improvement_pct,
            &cell.icc,
        ];
        all.extend(figures.into_iter().flatten());
        if let Ok(effect) = &cell.effect {
            all.extend([effect.estimate, effect.low, effect.high, effect.confidence, effect.p]);
            all.extend(effect.p_corrected);
        }
    }
    all
}

proptest! {
    #[test]
    fn s11_no_sample_makes_nan_or_infinity(
        base in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL, 1..12),
        new in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 1..12),
        statistic in prop::sample::select(vec![Statistic::Amean, Statistic::Hmean, Statistic::Median]),
    ) {
        let mut lab = Lab::duel(&base, &new);
        lab.metric(0).statistic = statistic;
        let analysis = lab.analyse();
        prop_assert!(numbers(&analysis).iter().all(|number| number.is_finite()), "{:?}", analysis.tables);
    }

    #[test]
    fn the_unit_of_a_metric_changes_no_verdict(
        base in prop::collection::vec(0.9..1.1_f64, 6..14),
        shift in 0.9..1.1_f64,
    ) {
        let new: Vec<f64> = base.iter().rev().map(|value| value * shift).collect();
        let scaled = |values: &[f64]| values.iter().map(|value| value * 1024.0).collect::<Vec<f64>>();
        let (one, other) = (Lab::duel(&base, &new), Lab::duel(&scaled(&base), &scaled(&new)));
        prop_assert_eq!(one.last_cell().verdict, other.last_cell().verdict);
    }
}
