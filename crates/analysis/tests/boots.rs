//! What is said of the kernels that a run booted.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{BlockValue, Verdict};
use common::{Lab, done, trial, twin};
use experiment::{Blocks, BootRecord, Facts, Record};

fn boot(block: u32, variant: &str, ready_s: f64) -> BootRecord {
    BootRecord {
        block,
        variant: variant.into(),
        twin: false,
        at_unix_ms: 0,
        ready_s,
        overlapped: false,
        attempts: 1,
        remarks: Vec::new(),
        facts: None,
    }
}

fn push(lab: &mut Lab, boot: BootRecord) {
    lab.run.records.push(Record::Boot(Box::new(boot)));
}

/// Eight blocks; `new` boots in half the time and is as fast as `base` at work.
fn lab() -> Lab {
    let mut lab = Lab::new(1, &["base:kernel=old", "new:kernel=new"], Blocks::Exactly(8));
    lab.run.header.experiment.aa = true;
    for variant in ["base", "new"] {
        push(&mut lab, boot(0, variant, 99.0));
    }
    for block in 1..=8 {
        let noise = 1.0 + f64::from(block) / 1000.0;
        for (variant, is_twin, ready_s) in [("base", false, 4.0), ("base", true, 77.0), ("new", false, 2.0)] {
            push(&mut lab, BootRecord { twin: is_twin, ..boot(block, variant, ready_s * noise) });
            let one = trial(block, 1, variant, done(&[("time", &[1.0 + f64::from(block % 3) / 10.0])]));
            lab.push(if is_twin { twin(one) } else { one });
        }
    }
    lab
}

#[test]
fn the_time_from_boot_to_ready_is_shown_by_block_and_not_judged() {
    let mut lab = lab();
    // A side that lost its agent is booted once more; its block has one value still.
    push(&mut lab, boot(3, "new", 500.0));
    let analysis = lab.analyse();
    let boots = analysis.boots.unwrap();
    assert_eq!((boots.count, boots.failed, analysis.trials), (2 + 3 * 8 + 1, 0, 3 * 8));
    let [base, new] = &boots.ready.rows[0].cells[..] else { panic!("two cells") };
    assert_eq!(base.values.len(), 8);
    assert_eq!(new.values[2], BlockValue { block: 3, value: 2.006 });
    assert_eq!((base.verdict, new.verdict), (Verdict::Baseline, Verdict::Unjudged));
    assert!((base.value.as_ref().unwrap() - 4.018).abs() < 1e-9, "{base:?}");
    assert!((new.effect.as_ref().unwrap().estimate - 0.5).abs() < 1e-9, "{new:?}");
    assert!((new.improvement_pct.as_ref().unwrap() - 50.0).abs() < 1e-9, "{new:?}");
    // Boots are in no family.
    assert_eq!(analysis.family, 1);
}

#[test]
fn a_run_that_boots_nothing_says_nothing_of_boots() {
    assert!(Lab::duel(&[1.0; 8], &[1.0; 8]).analyse().boots.is_none());
}

#[test]
fn a_variant_that_came_up_in_no_block_has_no_time() {
    let mut lab = lab();
    let of_new =
        |record: &Record| matches!(record, Record::Boot(boot) if boot.variant == "new" && boot.block > 0);
    lab.run.records.retain(|record| !of_new(record));
    let boots = lab.analyse().boots.unwrap();
    let new = &boots.ready.rows[0].cells[1];
    assert_eq!(new.verdict, Verdict::Missing);
    assert!(new.value.is_err() && new.effect.is_err() && new.stddev.is_err(), "{new:?}");
}

#[test]
fn of_boots_that_overlapped_no_time_is_claimed() {
    let mut lab = lab();
    for record in &mut lab.run.records {
        if let Record::Boot(boot) = record {
            boot.overlapped = boot.variant == "new" || boot.block > 6;
        }
    }
    // The second boot of a side is alone, and yet not the one of its block.
    push(&mut lab, boot(3, "new", 500.0));
    let boots = lab.analyse().boots.unwrap();
    let [base, new] = &boots.ready.rows[0].cells[..] else { panic!("two cells") };
    assert_eq!((base.values.len(), base.verdict), (6, Verdict::Baseline));
    assert_eq!(new.verdict, Verdict::Missing);
    assert_eq!(new.value.as_ref().unwrap_err().why, "not timed, since boots overlapped");
    assert!(new.ratio.is_err() && new.change_pct.is_err(), "{new:?}");
}

#[test]
fn remarks_of_boots_stand_once_behind_their_variants() {
    let mut lab = lab();
    for record in &mut lab.run.records {
        if let Record::Boot(boot) = record {
            boot.remarks.push("emulated: timings are not the machine's".into());
            if boot.variant == "new" && boot.block % 2 == 1 {
                boot.attempts = 2;
                boot.remarks.push("a boot died of int3 and was tried again".into());
            }
        }
    }
    let analysis = lab.analyse();
    assert_eq!(
        analysis.notices[..2],
        ["emulated: timings are not the machine's", "new: a boot died of int3 and was tried again"]
    );
    assert_eq!(analysis.boots.unwrap().failed, 4);
}

#[test]
fn the_facts_of_boots_are_those_of_their_variants() {
    let mut lab = lab();
    let facts = |release: &str, microcode: &str| Facts {
        kernel_release: Some(release.into()),
        microcode: Some(microcode.into()),
        ..Facts::default()
    };
    for (variant, release, microcode) in [("base", "6.12", "1"), ("new", "7.3", "2")] {
        let facts = Some(Box::new(facts(release, microcode)));
        push(&mut lab, BootRecord { facts, ..boot(0, variant, 1.0) });
    }
    let analysis = lab.analyse();
    let releases: Vec<Option<&str>> =
        analysis.facts.iter().map(|(_, facts)| facts.kernel_release.as_deref()).collect();
    assert_eq!(releases, [Some("6.12"), Some("7.3")]);
    let unasked: Vec<&str> = analysis.unasked.iter().map(|difference| difference.fact.as_str()).collect();
    assert_eq!(unasked, ["microcode"], "the kernel was asked for");
}

#[test]
fn the_time_that_more_blocks_take_counts_their_boots() {
    let mut lab = Lab::new(1, &["base", "new"], Blocks::Exactly(8));
    // No block agrees with another, so that nothing is decided.
    for (block, value) in (1..=8).zip([1.0, 1.1, 0.9, 1.2, 0.8, 1.1, 0.9, 1.0]) {
        for (variant, value) in [("base", 1.0), ("new", value)] {
            lab.push(trial(block, 1, variant, done(&[("time", &[value])])));
        }
    }
    let minutes = |lab: &Lab| {
        let reason = lab.last_cell().reason;
        let (_, after) = reason.split_once("more blocks, ").unwrap_or_else(|| panic!("{reason}"));
        after.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let without = minutes(&lab);
    // A block of two trials takes a minute; with its boots it takes two.
    for block in 1..=8 {
        push(&mut lab, boot(block, "base", 30.0));
        push(&mut lab, boot(block, "new", 30.0));
    }
    let with = minutes(&lab);
    assert!((with / without - 2.0).abs() < 0.2, "{without} and {with}");
}
