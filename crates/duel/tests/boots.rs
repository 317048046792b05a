//! The conductor on a target that boots.

#![allow(clippy::unwrap_used)]

mod common;

use agent::{Request, TrialRequest};
use common::{Fake, Ran, Reply, header, run};
use duel::DuelError;
use experiment::{
    Blocks, BootRecord, Ending, Facts, Failure, Header, Outcome, Record, TargetKind, TrialRecord, Variant,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use targets::{Booted, TargetError};

fn up() -> Result<Booted, TargetError> {
    Ok(Booted { ready_s: 2.5, overlapped: false, attempts: 1, remarks: Vec::new() })
}

fn down(why: &str) -> Result<Booted, TargetError> {
    Err(TargetError::boot(std::io::Error::other(why.to_string())))
}

fn missing(trials: &[TrialRecord]) -> Vec<(Failure, &str)> {
    let missing = trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Missing { failure, why } => Some((*failure, why.as_str())),
        Outcome::Done { .. } => None,
    });
    missing.collect()
}

/// Variants `a`, its twin and `b` at two points: a block is three boots of two trials each.
fn of_blocks(blocks: u32) -> Header {
    let mut header = header(Blocks::Exactly(blocks), &[1, 2]);
    header.experiment.target = TargetKind::Vm;
    header.experiment.variants =
        vec![Variant::parse("a:kernel=old").unwrap(), Variant::parse("b:kernel=new,speed=2").unwrap()];
    header.experiment.set.insert("vm.cpus".into(), "4".into());
    header
}

#[test]
fn a_block_boots_every_side_once_in_random_order_and_runs_all_its_points_there() {
    let mut fake = Fake::booting(|_, _| up());
    let Ran { ended, trials, boots, watcher } = run(&of_blocks(8), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    let first: Vec<(u32, &str)> = boots[..2].iter().map(|boot| (boot.block, boot.variant.as_str())).collect();
    assert_eq!(first, [(0, "a"), (0, "b")]);
    let (mut orders, mut trials_left) = (BTreeSet::new(), trials.as_slice());
    for block in 1..=8 {
        let of_block: Vec<&BootRecord> = boots.iter().filter(|boot| boot.block == block).collect();
        let order: Vec<(&str, bool)> =
            of_block.iter().map(|boot| (boot.variant.as_str(), boot.twin)).collect();
        assert_eq!(BTreeSet::from_iter(&order), BTreeSet::from([&("a", false), &("a", true), &("b", false)]));
        for (place, (variant, twin)) in order.iter().enumerate() {
            let (here, rest) = trials_left.split_at(2);
            trials_left = rest;
            for trial in here {
                let key = (trial.block, trial.order as usize, trial.variant.as_str(), trial.twin);
                assert_eq!(key, (block, place, *variant, *twin));
            }
            let points: BTreeSet<&str> = here.iter().map(|trial| trial.point.as_str()).collect();
            assert_eq!(points, BTreeSet::from(["1", "2"]));
        }
        orders.insert(order);
    }
    assert!(trials_left.is_empty());
    assert!(orders.len() > 1, "the order is always {orders:?}");
    assert_eq!((boots.len(), watcher.boots.len(), watcher.blocks), (2 + 8 * 3, 2 + 8 * 3, 8 * 2));
    // What does not change is written once.
    assert_eq!(boots.iter().filter(|boot| boot.facts.is_some()).count(), 2);
    assert!(boots.iter().all(|boot| boot.ready_s == 2.5));
}

#[test]
fn an_order_says_what_is_booted_and_all_that_will_be_asked() {
    let mut fake = Fake::booting(|_, _| up());
    run(&of_blocks(2), &[], &mut fake).ended.unwrap();
    assert_eq!(fake.orders.len(), 2 + 2 * 3);
    for (place, (order, asked)) in fake.orders.iter().enumerate() {
        assert_eq!(*asked.lock().unwrap(), order.script, "boot {place}");
        let kernel = if order.variant == "a" { "old" } else { "new" };
        assert_eq!(order.spec.kernel.as_deref(), Some(kernel));
        assert_eq!(order.spec.vm.get("cpus").map(String::as_str), Some("4"));
        let trials = order.script.iter().filter(|request| matches!(request, Request::Trial(_))).count();
        assert_eq!(trials, if place < 2 { 0 } else { 2 });
        assert_eq!(matches!(order.script[0], Request::Check { .. }), place < 2);
    }
}

#[test]
fn what_follows_in_a_block_is_announced_as_it_will_be_ordered() {
    let mut fake = Fake::booting(|_, _| up());
    run(&of_blocks(2), &[], &mut fake).ended.unwrap();
    // Two boots before the first block, then three in each.
    let announced: Vec<usize> = fake.next.iter().map(Vec::len).collect();
    assert_eq!(announced, [0, 0, 2, 1, 0, 2, 1, 0]);
    for (place, next) in fake.next.iter().enumerate() {
        for (later, order) in next.iter().enumerate() {
            assert_eq!(*order, fake.orders[place + 1 + later].0);
        }
    }
}

#[test]
fn p5_kernels_that_are_none_are_all_named_before_anything_boots() {
    let variants = |texts: &[&str]| {
        let mut header = of_blocks(2);
        header.experiment.variants = texts.iter().map(|text| Variant::parse(text).unwrap()).collect();
        let mut fake = Fake::booting(|_, _| up());
        let error = run(&header, &[], &mut fake).ended.unwrap_err();
        assert!(matches!(error, DuelError::Impossible { .. }), "{error:?}");
        assert!(fake.orders.is_empty(), "{texts:?}");
        error.to_string()
    };
    let error = variants(&["a:kernel=old", "b:kernel=no-b", "c:kernel=new", "d:kernel=no-d"]);
    assert!(error.ends_with(":\n  - b: no-b is no kernel\n  - d: no-d is no kernel"), "{error}");
    let error = variants(&["a:kernel=no-a", "b:kernel=no-a,speed=2"]);
    assert!(error.ends_with(":\n  - no-a is no kernel"), "{error}");
}

#[test]
fn a_resumed_run_does_what_is_left_in_the_order_that_it_began_with() {
    let header = of_blocks(3);
    let whole = run(&header, &[], &mut Fake::booting(|_, _| up())).trials;
    assert_eq!(whole.len(), 3 * 3 * 2);
    let key = |t: &TrialRecord| (t.block, t.order, t.point.to_string(), t.variant.clone(), t.twin);
    for kept in [0, 1, 2, 7, 17, 18] {
        let records: Vec<Record> =
            whole[..kept].iter().map(|trial| Record::Trial(Box::new(trial.clone()))).collect();
        let Ran { ended, trials, boots, .. } = run(&header, &records, &mut Fake::booting(|_, _| up()));
        assert_eq!(ended.unwrap(), Ending::Finished);
        let keys = |trials: &[TrialRecord]| trials.iter().map(key).collect::<Vec<_>>();
        assert_eq!(keys(&trials), keys(&whole), "kept {kept}");
        // A side that was interrupted is booted once more for its rest, one that is done is not.
        assert_eq!(boots.len(), 2 + (18 - kept).div_ceil(2), "kept {kept}");
    }
}

#[test]
fn in_virtual_time_a_side_that_was_half_done_runs_whole_once_more() {
    let mut header = of_blocks(2);
    header.experiment.set.insert("vm.clock".into(), "virtual".into());
    let scripts = |fake: &Fake| fake.orders.iter().map(|(order, _)| order.script.clone()).collect::<Vec<_>>();
    let mut fake = Fake::booting(|_, _| up());
    let whole = run(&header, &[], &mut fake).trials;
    let all = scripts(&fake);
    assert_eq!(whole.len(), 2 * 3 * 2);
    for kept in [1, 2, 3] {
        let records: Vec<Record> =
            whole[..kept].iter().map(|trial| Record::Trial(Box::new(trial.clone()))).collect();
        let mut fake = Fake::booting(|_, _| up());
        let Ran { ended, trials, .. } = run(&header, &records, &mut fake);
        assert_eq!(ended.unwrap(), Ending::Finished);
        assert_eq!(trials.len(), whole.len(), "no trial has two records");
        // The two boots that only look, and the same boots as before, but for those whose sides are whole.
        let (again, expected) = (scripts(&fake), &all[2 + kept / 2..]);
        assert!(again[2..] == *expected, "kept {kept}: {again:?}");
    }
}

#[test]
fn a_boot_that_fails_costs_the_trials_of_its_side_in_that_block() {
    let mut fake = Fake::booting(|n, _| if n == 4 { down("panic: no init found") } else { up() });
    let Ran { ended, trials, watcher, .. } = run(&of_blocks(3), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!(trials.len(), 18);
    assert_eq!(missing(&trials), [(Failure::Boot, "panic: no init found"); 2]);
    let lost: BTreeSet<(u32, u32)> = trials
        .iter()
        .filter(|trial| matches!(trial.outcome, Outcome::Missing { .. }))
        .map(|trial| (trial.block, trial.order))
        .collect();
    assert_eq!(lost, BTreeSet::from([(1, 2)]));
    assert!(
        watcher.notices.iter().any(|text| text.contains("panic: no init found")),
        "{:?}",
        watcher.notices
    );
}

#[test]
fn three_failed_boots_in_a_row_end_the_run() {
    let mut fake = Fake::booting(|n, _| if n >= 2 { down("hangs") } else { up() });
    let Ran { ended, trials, .. } = run(&of_blocks(3), &[], &mut fake);
    let error = ended.unwrap_err();
    assert!(matches!(error, DuelError::BootsLost { .. }) && error.to_string().contains("hangs"), "{error}");
    assert_eq!(missing(&trials).len(), 4);
    // With a good one in between there are never three in a row.
    let mut fake = Fake::booting(|n, _| if n >= 2 && n % 3 != 0 { down("hangs") } else { up() });
    let Ran { ended, trials, .. } = run(&of_blocks(3), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert!(trials.len() == 18 && missing(&trials).len() == 12);
}

#[test]
fn a_variant_that_cannot_be_booted_is_named_before_the_first_trial() {
    let mut fake =
        Fake::booting(|_, order| if order.variant == "b" { down("it is no kernel") } else { up() });
    let Ran { ended, trials, .. } = run(&of_blocks(3), &[], &mut fake);
    let error = ended.unwrap_err();
    assert!(matches!(&error, DuelError::Unbootable { variant, .. } if variant == "b"), "{error}");
    assert!(error.to_string().contains("it is no kernel"), "{error}");
    assert_eq!((trials.len(), fake.orders.len()), (0, 2));
}

#[test]
fn impossible_knobs_of_all_variants_are_named_after_one_boot_each() {
    let mut header = of_blocks(3);
    header.experiment.variants = vec![
        Variant::parse("a:env.X=impossible").unwrap(),
        Variant::parse("b:env.Y=impossible,kernel=new").unwrap(),
    ];
    let mut fake = Fake::booting(|_, _| up());
    let Ran { ended, trials, .. } = run(&header, &[], &mut fake);
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("env.X") && error.contains("env.Y"), "{error}");
    assert_eq!((trials.len(), fake.orders.len()), (0, 2));
}

#[test]
fn a_kernel_that_has_not_got_its_boot_arguments_is_not_measured() {
    let mut header = of_blocks(1);
    header.experiment.variants =
        vec![Variant::parse("a").unwrap(), Variant::parse("b:append=quiet nosmt").unwrap()];
    let with = |facts: fn(u32) -> Facts| {
        let mut fake = Fake::booting(|_, _| up());
        fake.facts = facts;
        run(&header, &[], &mut fake)
    };
    let Ran { ended, trials, .. } =
        with(|_| Facts { command_line: Some("quiet x".into()), ..Facts::default() });
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("b: its kernel runs without the boot arguments `nosmt`"), "{error}");
    assert!(trials.is_empty());
    let Ran { ended, .. } = with(|_| Facts { command_line: Some("nosmt quiet".into()), ..Facts::default() });
    assert_eq!(ended.unwrap(), Ending::Finished);
}

#[test]
fn a_kernel_that_dies_under_a_trial_costs_that_trial_and_the_rest_get_another_boot() {
    let mut fake = Fake::booting(|_, _| up());
    fake.script = Arc::new(|count, _| if count == 6 { Reply::Die } else { Reply::Value(1.0) });
    fake.last_words = Some("Kernel panic - not syncing".into());
    let Ran { ended, trials, boots, .. } = run(&of_blocks(3), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!((trials.len(), fake.abandoned), (18, 1));
    let lost = missing(&trials);
    assert_eq!(lost.len(), 1);
    assert!(lost[0].0 == Failure::Agent && lost[0].1.contains("Kernel panic"), "{lost:?}");
    let boots_of_block = |block: u32| boots.iter().filter(|boot| boot.block == block).count();
    // The trial that died was the first of two: the second had no boot to run in.
    assert_eq!([boots_of_block(1), boots_of_block(2), boots_of_block(3)], [3, 4, 3]);
}

#[test]
fn kernels_under_which_agents_keep_dying_end_the_run() {
    let mut fake = Fake::booting(|_, _| up());
    fake.script = Arc::new(|_, _: &TrialRequest| Reply::Die);
    let Ran { ended, trials, .. } = run(&of_blocks(3), &[], &mut fake);
    assert!(matches!(ended, Err(DuelError::AgentsLost { .. })));
    assert_eq!(trials.len(), 2);
}

fn release(name: &str) -> Facts {
    Facts { kernel_release: Some(name.into()), ..Facts::default() }
}

#[test]
fn blocks_of_two_kernels_are_no_blocks_of_one_variant() {
    let mut fake = Fake::booting(|_, _| up());
    fake.facts = |boot| release(if boot < 6 { "7.3.4" } else { "7.3.5" });
    let Ran { ended, trials, boots, .. } = run(&of_blocks(3), &[], &mut fake);
    let error = ended.unwrap_err();
    assert!(matches!(error, DuelError::OtherKernel { .. }), "{error}");
    assert!(error.to_string().contains("7.3.4") && error.to_string().contains("7.3.5"), "{error}");
    assert_eq!(trials.len(), 6);
    // The next sitting knows the kernel of the one before.
    let records: Vec<Record> = boots.into_iter().map(|boot| Record::Boot(Box::new(boot))).collect();
    let mut fake = Fake::booting(|_, _| up());
    fake.facts = |_| release("7.3.5");
    let Ran { ended, .. } = run(&of_blocks(3), &records, &mut fake);
    assert!(matches!(ended, Err(DuelError::OtherKernel { .. })));
}

#[test]
fn a_stop_during_a_boot_interrupts_and_no_trial_is_missing_for_it() {
    for at in [0, 1, 2, 5] {
        let mut fake = Fake::booting(|_, _| up());
        let stopping = fake.stop.clone();
        fake.boots = Some(Box::new(move |n, _| {
            if n < at {
                return up();
            }
            stopping.ask();
            down("killed")
        }));
        let Ran { ended, trials, watcher, .. } = run(&of_blocks(3), &[], &mut fake);
        assert!(matches!(ended, Ok(Ending::Interrupted(_))), "{ended:?}");
        assert_eq!((trials.len() as u32, missing(&trials).len()), (at.saturating_sub(2) * 2, 0));
        assert!(watcher.notices.is_empty(), "{:?}", watcher.notices);
    }
}

#[test]
fn what_is_left_counts_boots() {
    let boot = BootRecord {
        block: 0,
        variant: "a".into(),
        twin: false,
        at_unix_ms: 0,
        ready_s: 3e6,
        overlapped: false,
        attempts: 1,
        remarks: Vec::new(),
        facts: None,
    };
    let records = [Record::Boot(Box::new(boot))];
    let Ran { watcher, .. } = run(&of_blocks(3), &records, &mut Fake::booting(|_, _| up()));
    let at = |place: usize| watcher.boots[place].3.at_most.as_secs();
    // Three boots are known by then, of which two took next to nothing; nine are to come.
    assert!((9_000_000..9_001_000).contains(&at(2)), "{}", at(2));
    // Ten are known before the eighth; two are to come.
    assert!((600_000..601_000).contains(&at(9)), "{}", at(9));
    // A boot that is up is no longer to come.
    let first_trial = watcher.etas[0].at_most.as_secs();
    assert!((6_000_000..6_001_000).contains(&first_trial), "{first_trial}");
    assert!(at(0) == 0 && at(1) == 0);
}

#[test]
fn remarks_of_boots_are_told_once() {
    let count = Arc::new(AtomicU32::new(0));
    let mut fake = Fake::booting(move |_, _| {
        let mut remarks = vec!["emulated: timings are not the machine's".to_string()];
        if count.fetch_add(1, Ordering::SeqCst) == 5 {
            remarks.push("one boot died and was tried again".into());
        }
        Ok(Booted { ready_s: 1.0, overlapped: false, attempts: remarks.len() as u32, remarks })
    });
    let Ran { boots, watcher, .. } = run(&of_blocks(3), &[], &mut fake);
    assert_eq!(watcher.notices.len(), 2, "{:?}", watcher.notices);
    assert_eq!(boots.iter().map(|boot| boot.attempts).sum::<u32>(), 2 + 9 + 1);
}

#[test]
fn a_point_that_is_decided_needs_no_further_boots() {
    let mut header = of_blocks(1);
    header.experiment.blocks = Blocks::UntilDecided;
    header.experiment.workloads[0].points.truncate(1);
    let mut fake = Fake::booting(|_, _| up());
    fake.script = Arc::new(|count, request| {
        let slow = request.work.params.text("speed") == Ok("2");
        let noise = 1.0 + f64::from(count * 7919 % 101) / 10_000.0;
        Reply::Value(noise * if slow { 2.0 } else { 1.0 })
    });
    let Ran { ended, trials, boots, .. } = run(&header, &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!((trials.len(), boots.len()), (8 * 3, 2 + 8 * 3));
}
