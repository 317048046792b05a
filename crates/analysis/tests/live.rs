//! What is said while a run goes on is what its report says.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{Live, Verdict, analyse};
use common::{Lab, Noise, done, lost, trial, with_evidence};
use experiment::{Blocks, Failure, Point, Record};

/// Runs blocks of `lab` until all its points are decided, with the time that `time` gives. Hands back the blocks that
/// each point got, and checks at every stop that the report says the same as the live view.
fn conduct(lab: &mut Lab, mut time: impl FnMut(u64, &str, u32) -> f64) -> Vec<u32> {
    let points = lab.run.header.experiment.workloads[0].points.len() as u64;
    let variants: Vec<String> = lab.run.header.experiment.variants.iter().map(|v| v.name.clone()).collect();
    let mut live = Live::new(&lab.run.header);
    let mut blocks = vec![0; points as usize];
    let mut open: Vec<u64> = (1..=points).collect();
    for block in 1..=lab.run.header.experiment.blocks.cap() {
        for point in open.clone() {
            for variant in &variants {
                let one = trial(block, point, variant, done(&[("time", &[time(point, variant, block)])]));
                assert!(live.add(&one));
                lab.push(one);
            }
            blocks[point as usize - 1] = block;
            let decision = live.decision("work", &Point::from(point));
            assert!(decision.blocks_needed.is_none_or(|needed| needed > block as usize));
            if decision.decided {
                open.retain(|open| *open != point);
            }
            let report = analyse(&lab.run);
            let cells = &report.tables[0].rows[point as usize - 1].cells[1..];
            let settled = cells.iter().all(|cell| cell.verdict != Verdict::Undecided);
            assert_eq!(decision.decided, block >= 8 && settled, "point {point} block {block}");
        }
    }
    blocks
}

#[test]
fn a_large_difference_is_decided_at_the_first_look() {
    let mut noise = Noise(1);
    let mut lab = Lab::new(1, &["base", "new"], Blocks::UntilDecided);
    let blocks = conduct(&mut lab, |_, variant, _| {
        (if variant == "new" { 1.1 } else { 1.0 }) * noise.times(1, 1.0)[0]
    });
    assert_eq!(blocks, [8]);
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::Worse);
    assert_eq!(cell.effect.unwrap().confidence, 1.0 - 0.008);
}

#[test]
fn points_stop_when_they_are_decided_and_none_goes_beyond_the_cap() {
    let mut noise = Noise(2);
    let mut lab = Lab::new(4, &["base", "new"], Blocks::UntilDecided);
    // A clear difference, none, a small one, and one that drowns in noise.
    let blocks = conduct(&mut lab, |point, variant, _| {
        let effect = if variant == "new" { [1.3, 1.0, 1.01, 1.05][point as usize - 1] } else { 1.0 };
        let spread = if point == 4 { 0.5 } else { 0.008 };
        effect * (spread * noise.normal()).exp()
    });
    assert_eq!(blocks[0], 12, "eight blocks cannot pass the correction over four comparisons");
    assert!(blocks[1] <= 12, "{blocks:?}");
    assert_eq!(blocks[3], 40);
    let rows = lab.analyse().tables[0].rows.clone();
    assert_eq!(rows[0].cells[1].verdict, Verdict::Worse);
    assert_eq!(rows[1].cells[1].verdict, Verdict::Same);
    assert_eq!(rows[3].cells[1].verdict, Verdict::Undecided);
    assert!(rows[3].cells[1].reason.contains("40 blocks will not do"), "{}", rows[3].cells[1].reason);
}

/// The share of experiments that end in a difference, with the noise of a machine that drifts and has outliers.
fn differences(effect: f64, experiments: u64) -> f64 {
    let mut ended = 0;
    for seed in 0..experiments {
        let mut noise = Noise(seed);
        let lab = Lab::new(1, &["base", "new"], Blocks::UntilDecided);
        let mut live = Live::new(&lab.run.header);
        for block in 1..=40 {
            for (variant, factor) in [("base", 1.0), ("new", 1.0 + effect)] {
                let slow = if noise.normal() > 1.4 { 1.0 + 0.06 * noise.normal().abs() } else { 1.0 };
                let drift = 1.0 + 0.0015 * f64::from(block);
                let time = factor * drift * slow * noise.times(1, 1.0)[0];
                live.add(&trial(block, 1, variant, done(&[("time", &[time])])));
            }
            let decision = live.decision("work", &Point::from(1));
            if decision.decided {
                ended += u64::from(decision.words.contains("worse") || decision.words.contains("better"));
                break;
            }
        }
    }
    ended as f64 / experiments as f64
}

#[test]
fn the_stopping_rule_keeps_its_rates() {
    // The documented rates are about 2.5 % and 98 %; the limits leave room for 80 experiments.
    assert!(differences(0.0, 80) <= 0.06);
    assert!(differences(0.02, 80) >= 0.92);
}

#[test]
fn what_was_decided_stays_decided() {
    for seed in 0..10 {
        let mut noise = Noise(seed);
        let mut lab = Lab::new(2, &["base", "a", "b"], Blocks::UntilDecided);
        // `conduct` checks that a point is decided exactly when its report has no open verdict, also after other points
        // have gone on.
        conduct(&mut lab, |point, variant, _| {
            let effect = if variant == "b" { 1.0 + 0.01 * point as f64 } else { 1.0 };
            effect * (0.01 * noise.normal()).exp()
        });
        let undecided = lab.analyse().tables[0]
            .rows
            .iter()
            .filter(|row| row.cells.iter().any(|cell| cell.verdict == Verdict::Undecided))
            .map(|row| row.cells[0].values.len())
            .collect::<Vec<usize>>();
        assert!(undecided.iter().all(|blocks| *blocks == 40), "{undecided:?}");
    }
}

#[test]
fn nothing_is_said_before_the_first_look() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::UntilDecided);
    lab.series(1, "base", &[1.0; 7]);
    lab.series(1, "new", &[2.0; 7]);
    let cell = lab.last_cell();
    assert_eq!(cell.verdict, Verdict::Undecided);
    assert!(cell.reason.contains("looks come after 8, 12, 20, 40 blocks"), "{}", cell.reason);
}

#[test]
fn a_cell_that_cannot_be_judged_does_not_keep_its_point_open() {
    let mut lab = Lab::new(1, &["base", "slice", "broken"], Blocks::UntilDecided);
    let mut live = Live::new(&lab.run.header);
    for block in 1..=8 {
        for (variant, outcome) in [
            ("base", done(&[("time", &[1.0])])),
            ("slice", with_evidence(1.0, false)),
            ("broken", lost(Failure::Refused, "needs root")),
        ] {
            let one = trial(block, 1, variant, outcome);
            live.add(&one);
            lab.push(one);
        }
        assert_eq!(live.decision("work", &Point::from(1)).decided, block == 8);
    }
    let words = live.decision("work", &Point::from(1)).words;
    assert_eq!(words, "slice time +0.0 % not exercised, broken time - missing");
}

#[test]
fn s23_a_fixed_number_of_blocks_is_exact_and_shows_no_verdict_on_the_way() {
    let lab = Lab::new(1, &["base", "new"], Blocks::Exactly(10));
    let mut live = Live::new(&lab.run.header);
    for block in 1..=10 {
        live.add(&trial(block, 1, "base", done(&[("time", &[1.0])])));
        live.add(&trial(block, 1, "new", done(&[("time", &[1.5])])));
        let decision = live.decision("work", &Point::from(1));
        assert_eq!(decision.decided, block == 10);
        assert_eq!(decision.words, "new time +50.0 %");
    }
}

#[test]
fn the_words_on_the_way_give_the_estimate_of_the_report() {
    let mut noise = Noise(9);
    let mut lab = Lab::duel(&noise.times(10, 1.0), &noise.times(10, 1.3));
    // The mean of the times is far from the estimate once one of them is wild.
    let mut wild = trial(11, 1, "base", done(&[("time", &[1.0])]));
    lab.push(wild.clone());
    (wild.variant, wild.outcome) = ("new".into(), done(&[("time", &[500.0])]));
    lab.push(wild);
    let mut live = Live::new(&lab.run.header);
    for record in &lab.run.records {
        if let Record::Trial(trial) = record {
            live.add(trial);
        }
    }
    let estimate = (lab.last_cell().effect.unwrap().estimate - 1.0) * 100.0;
    assert!(estimate < 40.0);
    assert_eq!(live.decision("work", &Point::from(1)).words, format!("new time {estimate:+.1} %"));
}

#[test]
fn trials_that_do_not_count_are_refused() {
    let lab = Lab::new(1, &["base", "new"], Blocks::UntilDecided);
    let mut live = Live::new(&lab.run.header);
    let one = trial(1, 1, "base", done(&[("time", &[1.0])]));
    assert!(live.add(&one));
    assert!(!live.add(&one), "the same trial again");
    assert!(!live.add(&trial(1, 9, "base", done(&[]))), "no such point");
    assert!(!live.add(&trial(1, 1, "third", done(&[]))), "no such variant");
    assert!(!live.decision("nothing", &Point::from(1)).decided);
}

#[test]
fn the_order_of_the_records_changes_nothing() {
    let mut noise = Noise(4);
    let mut lab = Lab::new(2, &["base", "new"], Blocks::Exactly(12));
    for point in 1..=2 {
        lab.series(point, "base", &noise.times(12, 1.0));
        lab.series(point, "new", &noise.times(12, 1.01));
    }
    let forward = format!("{:?}", lab.analyse().tables);
    lab.run.records.reverse();
    assert!(matches!(lab.run.records[0], Record::Trial(_)));
    assert_eq!(forward, format!("{:?}", lab.analyse().tables));
}
