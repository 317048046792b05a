//! What is said of runs whose clock counts instructions.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{Live, Verdict};
use common::{Lab, done, trial, twin};
use experiment::{Blocks, Point, Record, TargetKind};

/// `base` and `new` with these values of `time` by block, in virtual time.
fn duel(base: &[f64], new: &[f64]) -> Lab {
    let mut lab = Lab::duel(base, new);
    in_virtual_time(&mut lab);
    lab
}

fn in_virtual_time(lab: &mut Lab) {
    lab.run.header.experiment.target = TargetKind::Vm;
    lab.run.header.experiment.set.insert("vm.clock".into(), "virtual".into());
}

#[test]
fn two_identical_repeats_make_a_difference_exact() {
    let lab = duel(&[0.5, 0.5], &[0.515, 0.515]);
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::Worse, "{}", cell.reason);
    assert!(
        cell.reason.contains("exactly +3.00000 %") && cell.reason.contains("2 blocks"),
        "{}",
        cell.reason
    );
    let effect = cell.effect.unwrap();
    assert!(effect.exact && effect.p_corrected.is_none(), "{effect:?}");
    assert_eq!((effect.low, effect.high), (1.03, 1.03));
    let analysis = lab.analyse();
    assert_eq!(analysis.family, 0, "what is exact is not tested");
    let found = analysis.virtual_time.unwrap();
    assert_eq!((found.repeated, found.differing.len()), (2, 0));
    let better = duel(&[0.5, 0.5], &[0.48, 0.48]).last_cell();
    assert_eq!(better.verdict, Verdict::Better);
    let inside = duel(&[0.5, 0.5], &[0.505, 0.505]).last_cell();
    assert_eq!(inside.verdict, Verdict::Same, "a no-op can move a tick by as much: {}", inside.reason);
    assert!(
        inside.reason.contains("exactly +1.00000 %") && inside.reason.contains("inside +-2"),
        "{}",
        inside.reason
    );
}

#[test]
fn a_difference_that_hangs_on_where_a_tick_fell_is_shown_and_not_claimed() {
    let with_samples = |base: &[f64], new: &[f64]| {
        let mut lab = Lab::new(1, &["base", "new"], Blocks::UntilDecided);
        in_virtual_time(&mut lab);
        for block in 1..=2 {
            lab.push(trial(block, 1, "base", done(&[("time", base)])));
            lab.push(trial(block, 1, "new", done(&[("time", new)])));
        }
        lab
    };
    let among = with_samples(&[0.2, 1.5, 3.0], &[0.25, 0.3, 2.5]);
    let cell = among.last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided);
    assert!(cell.effect.unwrap().exact);
    assert!(
        cell.reason.contains("from 0.2500 to 2.500, and the baseline's from 0.2000 to 3.000"),
        "{}",
        cell.reason
    );
    // More blocks would repeat it, so none are asked for.
    let mut live = Live::new(&among.run.header);
    for record in &among.run.records {
        if let Record::Trial(trial) = record {
            live.add(trial);
        }
    }
    assert!(live.decision("work", &Point::from(1)).decided);
    let apart = with_samples(&[0.2, 0.21, 0.25], &[0.26, 0.3, 2.5]).last_cell();
    assert_eq!(apart.verdict, Verdict::Worse, "{}", apart.reason);
}

#[test]
fn what_is_equal_to_the_digit_is_the_same() {
    let cell = duel(&[0.5; 3], &[0.5; 3]).last_cell();
    assert_eq!(cell.verdict, Verdict::Same);
    assert!(cell.reason.contains("the same to the digit in all 3 blocks"), "{}", cell.reason);
}

#[test]
fn one_block_proves_nothing() {
    let lab = duel(&[0.5], &[0.6]);
    assert_eq!(lab.last_cell().verdict, Verdict::Undecided);
    assert_eq!(lab.analyse().virtual_time.unwrap().repeated, 0);
}

#[test]
fn repeats_that_differ_are_said_and_are_noise() {
    let lab = duel(&[0.5, 0.5, 0.5], &[0.6, 0.6, 0.600000001]);
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided);
    assert!(cell.reason.contains("needs at least 6 blocks"), "{}", cell.reason);
    assert!(!cell.effect.unwrap().exact);
    let analysis = lab.analyse();
    assert_eq!(analysis.family, 1);
    assert_eq!(analysis.virtual_time.unwrap().differing, ["work 1 under new"]);
}

#[test]
fn identical_values_by_the_hosts_clock_are_a_matter_for_the_test() {
    let lab = Lab::duel(&[0.5; 8], &[0.6; 8]);
    assert!(!lab.last_cell().effect.unwrap().exact);
    assert!(lab.analyse().virtual_time.is_none());
}

#[test]
fn the_twin_of_the_baseline_must_be_identical_too() {
    let with_twin = |time: f64| {
        let mut lab = duel(&[0.5; 2], &[0.6; 2]);
        lab.run.header.experiment.aa = true;
        for block in 1..=2 {
            lab.push(twin(trial(block, 1, "base", done(&[("time", &[time])]))));
        }
        lab.analyse()
    };
    let aa = with_twin(0.5).aa.unwrap();
    assert_eq!((aa.pairs, aa.identical, aa.fired), (1, 1, 0));
    let analysis = with_twin(0.500001);
    let aa = analysis.aa.unwrap();
    assert_eq!((aa.pairs, aa.identical, aa.fired), (1, 0, 1));
    assert_eq!(analysis.virtual_time.unwrap().differing, ["work 1 under base"]);
}

#[test]
fn until_decided_takes_two_blocks_where_all_is_exact() {
    let mut lab = duel(&[0.5, 0.5], &[0.6, 0.6]);
    lab.run.header.experiment.blocks = Blocks::UntilDecided;
    let mut live = Live::new(&lab.run.header);
    let mut decided = Vec::new();
    for block in 1..=2 {
        for record in &lab.run.records {
            if let Record::Trial(trial) = record
                && trial.block == block
            {
                live.add(trial);
            }
        }
        decided.push(live.decision("work", &Point::from(1)).decided);
    }
    assert_eq!(decided, [false, true]);
}

#[test]
fn paths_are_counted_in_instructions_with_the_idleness_of_their_workload() {
    let mut lab = Lab::new(1, &["base"], Blocks::Exactly(2));
    in_virtual_time(&mut lab);
    for block in 1..=2 {
        let mut one = trial(block, 1, "base", done(&[("time", &[0.001]), ("rate", &[1000.0])]));
        one.usage.work_ns = Some(10_000_000);
        one.usage.work_cpu_ns = Some(9_000_000);
        lab.push(one);
    }
    let found = lab.analyse().virtual_time.unwrap();
    let [path] = &found.paths[..] else { panic!("of the judged metric: {found:?}") };
    assert_eq!((path.ns, path.instructions), (1e6, 5e5));
    assert_eq!(path.idle_pct, Ok(10.0));
}
