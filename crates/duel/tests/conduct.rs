//! The conductor on a target that does not boot.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fake, Ran, Reply, header, run};
use duel::DuelError;
use experiment::{Blocks, Ending, Failure, Outcome, Record, TrialRecord, Variant};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_clear_difference_stops_its_point_and_a_doubtful_one_goes_on() {
    // At point 1 the variant is twice as slow. At point 2 every block says something else.
    let mut fake = Fake::new(|count, request| {
        let slow = request.work.params.text("speed") == Ok("2");
        let noise = 1.0 + f64::from(count * 7919 % 101) / 1000.0;
        Reply::Value(match (request.work.point.as_str(), slow) {
            ("1", true) => 2.0 * noise,
            ("1", false) => noise,
            _ => noise * noise.powi(4),
        })
    });
    let Ran { ended, trials, .. } = run(&header(Blocks::UntilDecided, &[1, 2]), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    let blocks =
        |point: &str| trials.iter().filter(|t| t.point.as_str() == point).map(|t| t.block).max().unwrap();
    // Alone it would stop after 8; with two comparisons in the family no p value of 8 blocks is small enough.
    assert_eq!(blocks("1"), 12);
    assert!(blocks("2") > 8, "{}", blocks("2"));
    assert!(blocks("2") <= 40);
}

#[test]
fn a_clear_difference_alone_is_decided_at_the_first_look() {
    let mut fake = Fake::new(|count, request| {
        let slow = request.work.params.text("speed") == Ok("2");
        // No block may lie outside the others, or the claim would have to hold without it, too.
        let noise = 1.0 + f64::from(count * 7919 % 101) / 10_000.0;
        Reply::Value(noise * if slow { 2.0 } else { 1.0 })
    });
    let Ran { ended, trials, .. } = run(&header(Blocks::UntilDecided, &[1]), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!(trials.len(), 8 * 3);
}

#[test]
fn a_resumed_run_does_what_is_left_in_the_order_that_it_began_with() {
    let header = header(Blocks::Exactly(6), &[1, 2]);
    let whole = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0))).trials;
    assert_eq!(whole.len(), 6 * 2 * 3);
    for kept in [0, 1, 17, 35, 36] {
        let records: Vec<Record> =
            whole[..kept].iter().map(|trial| Record::Trial(Box::new(trial.clone()))).collect();
        let Ran { ended, trials, .. } = run(&header, &records, &mut Fake::new(|_, _| Reply::Value(1.0)));
        assert_eq!(ended.unwrap(), Ending::Finished);
        let keys = |trials: &[TrialRecord]| {
            let key = |t: &TrialRecord| (t.block, t.point.to_string(), t.variant.clone(), t.twin);
            trials.iter().map(key).collect::<Vec<_>>()
        };
        assert_eq!(keys(&trials), keys(&whole), "kept {kept}");
    }
}

#[test]
fn a_lost_agent_costs_one_trial() {
    let mut fake = Fake::new(|count, _| if count == 4 { Reply::Die } else { Reply::Value(1.0) });
    let Ran { ended, trials, watcher, .. } = run(&header(Blocks::Exactly(3), &[1]), &[], &mut fake);
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!(trials.len(), 9);
    let missing: Vec<&TrialRecord> =
        trials.iter().filter(|trial| matches!(trial.outcome, Outcome::Missing { .. })).collect();
    assert_eq!(missing.len(), 1);
    assert!(matches!(missing[0].outcome, Outcome::Missing { failure: Failure::Agent, .. }));
    assert_eq!((fake.abandoned, watcher.notices.len(), watcher.blocks), (1, 1, 3));
}

#[test]
fn a_machine_on_which_agents_keep_dying_ends_the_run() {
    let Ran { ended, trials, .. } =
        run(&header(Blocks::Exactly(3), &[1]), &[], &mut Fake::new(|_, _| Reply::Die));
    assert!(matches!(ended, Err(DuelError::AgentsLost { .. })));
    assert!(trials.len() < 9);
}

#[test]
fn impossible_knobs_are_all_named_before_the_first_trial() {
    let mut header = header(Blocks::Exactly(3), &[1]);
    header.experiment.variants = vec![
        Variant::parse("a:nice=1").unwrap(),
        Variant::parse("b:env.X=impossible,env.Y=impossible").unwrap(),
    ];
    let Ran { ended, trials, .. } = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0)));
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("env.X") && error.contains("env.Y"), "{error}");
    assert_eq!(trials.len(), 0);

    // What all variants share is told once, and laid to none of them.
    header.experiment.variants =
        ["a", "b"].map(|name| Variant::parse(&format!("{name}:env.X=impossible")).unwrap()).to_vec();
    let ran = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0)));
    let error = ran.ended.unwrap_err().to_string();
    assert!(error.ends_with(":\n  - env.X=impossible cannot be"), "{error}");
}

#[test]
fn a_stop_interrupts_and_keeps_what_is_done() {
    let mut fake = Fake::new(|_, _| Reply::Value(1.0));
    let stop = fake.stop.clone();
    let stopping = fake.stop.clone();
    fake.script = Arc::new(move |count, _| {
        if count == 5 {
            stopping.ask();
        }
        Reply::Value(1.0)
    });
    let Ran { ended, trials, .. } = run(&header(Blocks::Exactly(6), &[1]), &[], &mut fake);
    assert!(stop.asked());
    assert!(matches!(ended, Ok(Ending::Interrupted(_))));
    assert!((5..=6).contains(&trials.len()), "{}", trials.len());
}

#[test]
fn a_stop_before_the_first_trial_is_no_lost_agent() {
    let mut fake = Fake::new(|_, _| Reply::Value(1.0));
    fake.stop.ask();
    let Ran { ended, trials, watcher, .. } = run(&header(Blocks::Exactly(6), &[1]), &[], &mut fake);
    assert!(matches!(ended, Ok(Ending::Interrupted(_))), "{ended:?}");
    assert_eq!((trials.len(), watcher.notices.len(), fake.abandoned), (0, 0, 0));
}

#[test]
fn what_is_left_counts_the_trials_of_the_block_that_runs() {
    let header = header(Blocks::Exactly(2), &[1]);
    let Ran { trials, watcher, .. } = run(&header, &[], &mut Fake::new(|_, _| Reply::Value(1.0)));
    assert_eq!(trials.len(), 6);
    for done in 1..6 {
        let total: Duration = trials[..done].iter().map(|trial| Duration::from_nanos(trial.elapsed_ns)).sum();
        assert_eq!(
            watcher.etas[done].at_most,
            total / done as u32 * (6 - done as u32),
            "{done} trials are done"
        );
    }
    // A run that is taken up again knows so from its first trial on.
    let records: Vec<Record> =
        trials[..4].iter().map(|trial| Record::Trial(Box::new(trial.clone()))).collect();
    let Ran { trials, watcher, .. } = run(&header, &records, &mut Fake::new(|_, _| Reply::Value(1.0)));
    let total: Duration = trials[..4].iter().map(|trial| Duration::from_nanos(trial.elapsed_ns)).sum();
    assert_eq!(watcher.etas[0].at_most, total / 4 * 2);
}

#[test]
fn a_trial_that_ends_with_a_stop_has_not_failed() {
    let mut fake = Fake::new(|_, _| Reply::Die);
    let stopping = fake.stop.clone();
    fake.script = Arc::new(move |count, _| {
        if count < 5 {
            return Reply::Value(1.0);
        }
        stopping.ask();
        Reply::Die
    });
    let Ran { ended, trials, watcher, .. } = run(&header(Blocks::Exactly(6), &[1]), &[], &mut fake);
    assert!(matches!(ended, Ok(Ending::Interrupted(_))), "{ended:?}");
    assert_eq!((trials.len(), watcher.notices.len()), (5, 0));
}
