//! Comparisons that are refused before anything is measured.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Fake, Ran, Reply, header, run};
use duel::DuelError;
use experiment::{Blocks, Ending, Facts, Header, KernelConfig, Record, Refusal, TargetKind};
use targets::{BootOrder, Booted};

/// The first and every other boot is of a kernel without lock debugging, the others of one with it.
fn every_other_has_lock_debugging(boot: u32) -> Facts {
    let options = if boot % 2 == 1 { "CONFIG_SMP=y\n" } else { "CONFIG_SMP=y\nCONFIG_PROVE_LOCKING=y\n" };
    let mut facts = Facts::default();
    facts.take_config(KernelConfig::parse(options), "/proc/config.gz");
    facts
}

fn booting() -> Fake {
    let up = |_: u32, _: &BootOrder| {
        Ok(Booted { ready_s: 1.0, overlapped: false, attempts: 1, remarks: Vec::new() })
    };
    Fake { facts: every_other_has_lock_debugging, ..Fake::booting(up) }
}

fn of_boots() -> Header {
    let mut header = header(Blocks::Exactly(2), &[1]);
    header.experiment.target = TargetKind::Vm;
    header
}

#[test]
fn a_planted_debug_option_is_refused_and_named_before_the_first_trial() {
    let mut fake = booting();
    let Ran { ended, trials, boots, .. } = run(&of_boots(), &[], &mut fake);
    let Err(DuelError::Refused { why }) = ended else { panic!("{ended:?}") };
    for wanted in ["CONFIG_PROVE_LOCKING is on in b and not in a", "--accept-difference CONFIG_PROVE_LOCKING"]
    {
        assert!(why.contains(wanted), "{wanted}\n{why}");
    }
    assert!(trials.is_empty());
    assert_eq!(boots.len(), 2, "each variant was booted to see what it is");
}

#[test]
fn an_accepted_difference_is_compared() {
    let mut header = of_boots();
    header.experiment.accept_differences = vec![Refusal::DebugOptions];
    let Ran { ended, trials, .. } = run(&header, &[], &mut booting());
    assert_eq!(ended.unwrap(), Ending::Finished);
    assert_eq!(trials.len(), 6);
}

#[test]
fn p13_a_run_is_not_taken_up_on_another_machine() {
    let on = |model: &str| Record::Facts {
        variant: "a".into(),
        facts: Box::new(Facts { cpu_model: Some(model.into()), ..Facts::default() }),
    };
    let header = header(Blocks::Exactly(2), &[1]);
    let mut first = Fake::new(|_, _| Reply::Value(1.0));
    first.facts = |_| Facts { cpu_model: Some("A".into()), ..Facts::default() };
    let trials = run(&header, &[], &mut first).trials;
    let trial = trials.into_iter().find(|trial| trial.variant == "a").unwrap();
    let begun = [on("A"), Record::Trial(Box::new(trial))];

    let mut second = Fake::new(|_, _| Reply::Value(1.0));
    second.facts = |_| Facts { cpu_model: Some("B".into()), ..Facts::default() };
    let Ran { ended, .. } = run(&header, &begun, &mut second);
    let Err(DuelError::Refused { why }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("from `A` to `B`"), "{why}");

    let Ran { ended, .. } = run(&header, &begun, &mut first);
    assert_eq!(ended.unwrap(), Ending::Finished, "it can go on where it began");
}

#[test]
fn the_options_of_a_kernel_stand_in_the_journal_once() {
    let mut fake = Fake::new(|_, _| Reply::Value(1.0));
    fake.facts = |_| every_other_has_lock_debugging(1);
    let directory = tempfile::TempDir::new().unwrap();
    let header = header(Blocks::Exactly(1), &[1]);
    let mut journal = journal::Home::at(directory.path()).create("toy-run", &header).unwrap();
    let stop = fake.stop.clone();
    let mut watcher = common::Silent::default();
    duel::conduct(&header, &[], &mut journal, &mut fake, "token", &stop, &mut watcher).unwrap();
    let records = journal.read().unwrap().records;
    let found: Vec<bool> = records
        .iter()
        .filter_map(|record| match record {
            Record::Facts { facts, .. } => Some(facts.config.as_ref().unwrap().options.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(found, [true, false]);
}
