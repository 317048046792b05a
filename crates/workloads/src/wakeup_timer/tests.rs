//! wakeup-timer through its public interface, and with its work broken.

use super::*;
use crate::alone::{alone, leaving_nothing, limit_tasks};
use crate::originals::on_path;
use experiment::Outcome;
use std::collections::BTreeMap;

fn params(set: &[(&str, &str)]) -> Params {
    let set: BTreeMap<String, String> =
        set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    WakeupTimer.describe().params(&set).unwrap()
}

fn trial(threads: u64) -> Trial {
    Trial::new(Point::from(threads), machine::cpus::allowed().unwrap().to_vec(), 1)
}

fn outcome(threads: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
    let mut trial = trial(threads);
    WakeupTimer.run(&params(set), &mut trial)?;
    Ok(trial.into_outcome())
}

#[test]
fn every_interval_is_accounted_for_and_nothing_is_left() {
    alone("wakeup_timer::tests::every_interval_is_accounted_for_and_nothing_is_left", || {
        for semantics in ["original", "strict"] {
            for more in [("warmup", "0.02"), ("affinity", "off"), ("clock", "realtime"), ("distance", "500")]
            {
                let set = [("runtime", "0.05"), ("semantics", semantics), more];
                let outcome = leaving_nothing(|| outcome(3, &set).unwrap());
                let Outcome::Done { samples, histograms, counters, .. } = outcome else { panic!("missing") };
                // 50 intervals of 1 ms; with a distance 50, 33 and 25.
                let intervals = if more.0 == "distance" { 108.0 } else { 150.0 };
                assert_eq!(counters["wake-ups"] + counters["missed intervals"], intervals, "{set:?}");
                let histogram = stats::Histogram::from_text(&histograms["lateness"]).unwrap();
                assert_eq!(histogram.len() as f64, counters["wake-ups"]);
                let ordered = ["min", "p50", "p99", "p99.9", "max"].map(|name| samples[name][0]);
                assert!(ordered.is_sorted(), "{ordered:?}");
            }
        }
    });
}

#[test]
fn strict_counts_what_original_skips() {
    // No thread wakes up and looks at the clock within a microsecond.
    let set = |semantics| [("interval", "1"), ("runtime", "0.01"), ("semantics", semantics)];
    let Outcome::Done { counters, .. } = outcome(1, &set("original")).unwrap() else { panic!("missing") };
    assert!(counters["missed intervals"] > 0.0);
    let Outcome::Done { counters, .. } = outcome(1, &set("strict")).unwrap() else { panic!("missing") };
    assert_eq!((counters["missed intervals"], counters["wake-ups"]), (0.0, 10_000.0));
}

#[test]
fn original_cuts_off_to_microseconds() {
    let Outcome::Done { samples, .. } = outcome(1, &[("runtime", "0.02")]).unwrap() else {
        panic!("missing")
    };
    assert_eq!((samples["max"][0].fract(), samples["min"][0].fract()), (0.0, 0.0));
}

#[test]
fn a_thread_that_wakes_up_early_fails_the_trial() {
    let set = [("runtime", "10"), ("interval", "10000000")];
    let plan = Plan { early_ns: 10_000_000_000, ..Plan::new(&params(&set), &trial(1)).unwrap() };
    // The one wake-up is at once instead of after ten seconds.
    let error = plan.sleep().unwrap_err();
    assert!(matches!(&error, Failure::Invariant(text) if text.contains("before its time")), "{error}");
}

#[test]
fn a_wake_up_that_is_not_accounted_for_fails_the_trial() {
    let mut lateness = Lateness::default();
    lateness.record(7);
    lateness.missed = Some(2);
    assert!(lateness.check(3).is_ok());
    for intervals in [2, 4] {
        assert!(matches!(lateness.check(intervals), Err(Failure::Invariant(_))));
    }
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    alone("wakeup_timer::tests::what_cannot_be_is_refused_and_leaves_nothing", || {
        for threads in [0, 10_001] {
            assert!(outcome(threads, &[]).unwrap_err().to_string().contains("from 1 to 10000"));
        }
        let nowhere = Plan { cpus: vec![100_000], ..Plan::new(&params(&[]), &trial(2)).unwrap() };
        assert!(matches!(leaving_nothing(|| nowhere.sleep()), Err(Failure::Refused(_))));
        for (set, said) in [
            ([("semantics", "strict"), ("via", "rt-tests")], "original semantics"),
            ([("distance", "500"), ("via", "rt-tests")], "no `distance`"),
            ([("warmup", "1"), ("via", "rt-tests")], "no warm-up"),
            ([("affinity", "off"), ("via", "rt-tests")], "leave affinity on"),
            ([("interval", "10.5"), ("via", "rt-tests")], "whole microseconds"),
        ] {
            let checked = WakeupTimer.check(&params(&set), &trial(1)).unwrap_err().to_string();
            let said_instead = outcome(1, &set).unwrap_err().to_string();
            assert!(said_instead.contains(said) && checked == said_instead, "{said_instead}; {checked}");
        }
        if !limit_tasks(8) {
            return;
        }
        let error = leaving_nothing(|| outcome(64, &[("runtime", "0.02")])).unwrap_err().to_string();
        assert!(error.contains("64"), "{error}");
        // What is no longer root's is refused, before the first trial too, and says what would help.
        for (set, said) in
            [(("priority", "50"), "RLIMIT_RTPRIO"), (("idle-states", "hold"), "idle-states=leave")]
        {
            for error in [
                leaving_nothing(|| WakeupTimer.check(&params(&[set]), &trial(1))).unwrap_err().to_string(),
                leaving_nothing(|| outcome(1, &[set, ("runtime", "0.02")])).unwrap_err().to_string(),
            ] {
                assert!(error.contains(said), "{error}");
            }
        }
        let Outcome::Done { notes, .. } = outcome(1, &[("runtime", "0.02")]).unwrap() else {
            panic!("missing")
        };
        assert!(notes[0].contains("may have entered deeper idle states"), "{notes:?}");
    });
}

#[test]
fn threads_with_a_priority_run_where_the_user_may() {
    let set = [("priority", "10"), ("realtime", "rr"), ("runtime", "0.02")];
    match WakeupTimer.check(&params(&set), &trial(1)) {
        Ok(()) => assert!(outcome(2, &set).is_ok()),
        Err(error) => println!("skipped: {error}"),
    }
}

#[test]
fn a_policy_without_effect_is_told() {
    let notes = |set: &[(&str, &str)]| match outcome(1, set) {
        Ok(Outcome::Done { notes, .. }) => Some(notes.join("; ")),
        Ok(missing) => panic!("{missing:?}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    };
    alone("wakeup_timer::tests::a_policy_without_effect_is_told", || {
        let short = ("runtime", "0.02");
        assert!(!notes(&[short]).unwrap().contains("no effect"));
        assert!(notes(&[short, ("realtime", "rr")]).unwrap().contains("realtime=rr had no effect"));
        let priority = [short, ("priority", "10"), ("realtime", "rr")];
        let with_priority = notes(&priority);
        assert!(with_priority.is_none_or(|notes| !notes.contains("no effect")));
        machine::apply_to_self(&[Knob { scope: Scope::Policy, value: "batch".into() }]).unwrap();
        assert!(!notes(&[short]).unwrap().contains("no effect"), "the threads have the policy of the trial");
        let with_both = notes(&priority);
        assert!(with_both.is_none_or(|notes| notes.contains("policy of the trial had no effect")));
    });
}

#[test]
fn cyclictest_is_run_and_read() {
    if on_path("cyclictest").is_none() {
        println!("skipped: rt-tests is not installed");
        return;
    }
    let set = [("via", "rt-tests"), ("runtime", "0.05"), ("mlockall", "on")];
    WakeupTimer.check(&params(&set), &trial(2)).unwrap();
    let Outcome::Done { samples, counters, notes, .. } = (match outcome(2, &set) {
        // A machine that is busy for a second is beyond what it counts.
        Err(error) if error.to_string().contains("one by one") => {
            println!("skipped: {error}");
            return;
        }
        outcome => outcome.unwrap(),
    }) else {
        panic!("missing")
    };
    assert!(counters["wake-ups"] > 0.0);
    assert!(samples["min"][0] <= samples["p99.9"][0] && samples["p99.9"][0] <= samples["max"][0]);
    assert!(notes.iter().any(|note| note.starts_with("measured by cyclictest V ")), "{notes:?}");
}
