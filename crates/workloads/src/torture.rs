//! `torture`: threads that take a lock as locktorture of the kernel does, with its rare and long holds, over every lock of
//! kduel; and locktorture itself, where the kernel has it.

mod chances;
mod nest;
mod round;

use crate::fairness::leave_unfairness;
use crate::originals::{self, locktorture};
use crate::shared::{self, Semantics, room_for, with_shared};
use crate::{Failure, Original, Trial, Workload};
use chances::{Holds, Spread};
use experiment::Direction::{Higher, Lower};
use experiment::{Axis, Description, Metric, Parameter, Params, Point};
use machine::modules::ModuleNeed;
use round::{Plan, Round};
use std::time::Duration;

/// Threads that take one lock for a fixed time, hold it mostly for nothing and now and then for long.
pub struct Torture;

impl Workload for Torture {
    fn describe(&self) -> Description {
        Description {
            name: "torture".into(),
            summary: "one lock under locktorture's mix of empty, short and very long holds: acquisitions, unfairness, \
                      failures"
                .into(),
            about: ABOUT.into(),
            source: SOURCE.into(),
            axis: Axis {
                name: "threads".into(),
                heading: "Threads".into(),
                suffix: String::new(),
                points: [1, 2].map(Point::from).to_vec(),
                range: Some((1, 100_000)),
            },
            parameters: with_shared(parameters(), self.originals()),
            metrics: metrics(),
            requirements: vec![
                "for `via=locktorture`: root, and a kernel with CONFIG_LOCK_TORTURE_TEST=m".into(),
                "for `lock=pthread-pi`: futexes with priority inheritance (CONFIG_FUTEX_PI)".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::LOCKTORTURE]
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        match originals::wanted(params, self.originals())? {
            Some(_) => locktorture::Torture::new(params, trial)?.check(),
            None => room_for(trial.count()?, 0, 0),
        }
    }

    fn modules(&self, params: &Params) -> Vec<ModuleNeed> {
        match originals::wanted(params, self.originals()) {
            Ok(Some(_)) => vec![locktorture::MODULE],
            _ => Vec::new(),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if originals::wanted(params, self.originals())?.is_some() {
            return locktorture::Torture::new(params, trial)?.run(trial);
        }
        let (lock, plan, warmup) = (params.text("lock")?, plan(params, trial)?, shared::warmup(params)?);
        room_for(plan.threads as u64, 0, 0)?;
        if !warmup.is_zero() {
            play(lock, &Plan { time: warmup, ..plan.clone() })?;
        }
        leave(&play(lock, &plan)?, trial)
    }
}

fn plan(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
    let original = shared::semantics(params)? == Semantics::Original;
    Ok(Plan {
        threads: trial.count()? as usize,
        time: Duration::from_secs_f64(params.decimal("seconds")?),
        stutter: Duration::from_secs_f64(params.decimal("stutter")?),
        holds: match params.text("holds")? {
            "mutex" => Holds::Mutex,
            _ => Holds::Spin,
        },
        long_hold: Duration::from_millis(params.count("long-hold-ms")?),
        nested: params.count("nested")? as usize,
        spread: if original { Spread::ByChance } else { Spread::Evenly },
        nice: original,
        seed: trial.seed(),
    })
}

fn play(lock: &str, plan: &Plan) -> Result<Round, Failure> {
    let round = locks::visit(lock, plan).map_err(|error| Failure::Refused(error.to_string()))??;
    round.check(lock)?;
    Ok(round)
}

fn leave(round: &Round, trial: &mut Trial) -> Result<(), Failure> {
    let most = round.members.iter().map(|member| member.acquisitions).max().unwrap_or(0);
    let least = round.members.iter().map(|member| member.acquisitions).min().unwrap_or(0);
    let total = round.acquisitions();
    if round.running_s <= 0.0 || total == 0 {
        return Err(Failure::Invariant(format!(
            "{total} acquisitions in {} s by the clock",
            round.running_s
        )));
    }
    trial.sample("rate", total as f64 / round.running_s)?;
    leave_unfairness(most, least, trial)?;
    trial.counter("acquisitions", total as f64);
    trial.counter("long holds", round.members.iter().map(|member| member.long_holds).sum::<u64>() as f64);
    trial.counter("short holds", round.members.iter().map(|member| member.short_holds).sum::<u64>() as f64);
    trial.counter("failures", 0.0);
    Ok(())
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::choice("lock", &locks::names(), "which lock; `kduel list locks` says what each is"),
        Parameter::decimal("seconds", 5.0, 0.001, 86_400.0, "how long the threads run, pauses left out"),
        Parameter::choice(
            "holds",
            &["spin", "mutex"],
            "whose holds: `spin` has short ones of 2 us and long ones of `long-hold-ms`; `mutex` has no short ones, and \
             long ones five times as long",
        ),
        Parameter::integer("long-hold-ms", 100, 0, 10_000, "a long hold, in ms; 0 has none"),
        Parameter::decimal(
            "stutter",
            0.0,
            0.0,
            3600.0,
            "seconds that the threads run, and then pause, by turns; 0 has no pauses",
        ),
        Parameter::integer(
            "nested",
            0,
            0,
            8,
            "further locks, of which a random part is taken before the lock itself each time",
        ),
        Parameter::choice(
            "kernel-lock",
            &locktorture::TYPES,
            "with `via=locktorture`: which lock of the kernel, in place of `lock` and `holds`",
        ),
        Parameter::text(
            "module-dir",
            "",
            "with `via=locktorture`: where torture.ko and locktorture.ko are on the machine; where nothing is set, modprobe \
             finds them, and a virtual machine gets those of its kernel",
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    vec![
        Metric::new("rate", "1/s", Higher, "acquisitions per second", "acquisitions per second, all threads together"),
        Metric::new(
            "max-min",
            "",
            Lower,
            "acquisitions of the busiest thread over those of the least busy",
            "acquisitions of the thread that had most over those of the one that had fewest; locktorture marks more \
             than 2",
        )
        .secondary(),
        Metric::new(
            "read-rate",
            "1/s",
            Higher,
            "acquisitions for reading per second",
            "acquisitions for reading per second; with `via=locktorture` and a lock that has readers",
        )
        .secondary(),
    ]
}

const SOURCE: &str = "\
locktorture of Linux 6.x, by its description. The boosts to real-time priority, the readers, the CPU hotplug and the \
shuffling of CPUs are left out; a jiffy is 4 ms.";

const ABOUT: &str = "\
Every thread takes the lock, sees that nobody else is inside, counts, mostly does nothing more, and releases it, over and over \
for `seconds`. With N threads, one acquisition in N x 400 holds the lock for 2 us (`holds=spin`), one in N x 2000 x \
`long-hold-ms` for `long-hold-ms` (five times as long with `holds=mutex`), one in N x 20000 gives the CPU away inside the \
section, and before one in 2^20 the thread sleeps for 4 ms. So the lock is held for long most of the time, and in \
between taken as fast as it can be.

The trial counts only if no thread ever found another one inside and the counter under the lock equals the number of \
acquisitions. locktorture counts such failures; here a lock that fails makes the trial missing, with the number.

With `semantics=original` the holds come by chance, so that the number of long ones differs from trial to trial, and the \
threads have nice value 19. With `semantics=strict` the holds come at even distances with the same means, and the nice \
value is the trial's.

With `via=locktorture` the kernel's own module is loaded, runs for `seconds` with as many writers as the point says, and is \
removed again; what it wrote into the kernel log is read.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use experiment::Outcome;
    use std::collections::BTreeMap;

    fn run(threads: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let set: BTreeMap<String, String> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = Torture.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(threads), vec![0], 1);
        Torture.check(&params, &trial)?;
        Torture.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    #[test]
    fn every_lock_is_tortured_and_nothing_is_left() {
        alone("torture::tests::every_lock_is_tortured_and_nothing_is_left", || {
            for lock in locks::names() {
                for semantics in ["original", "strict"] {
                    let set = [
                        ("lock", lock),
                        ("semantics", semantics),
                        ("seconds", "0.01"),
                        ("long-hold-ms", "1"),
                    ];
                    let outcome = leaving_nothing(|| run(2, &set).unwrap());
                    let Outcome::Done { samples, .. } = outcome else { panic!() };
                    assert!(samples["rate"][0] > 0.0 && samples["max-min"][0] >= 1.0, "{lock}: {samples:?}");
                }
            }
        });
    }

    #[test]
    fn nested_locks_and_pauses_end_in_time() {
        alone("torture::tests::nested_locks_and_pauses_end_in_time", || {
            let set = [
                ("nested", "8"),
                ("stutter", "0.01"),
                ("seconds", "0.03"),
                ("holds", "mutex"),
                ("lock", "std"),
            ];
            leaving_nothing(|| run(2, &set).unwrap());
        });
    }

    #[test]
    fn points_beyond_limits_are_refused() {
        for threads in [0, 100_001] {
            assert!(run(threads, &[]).unwrap_err().to_string().contains("from 1 to 100000"));
        }
    }

    #[test]
    fn a_kernel_without_locktorture_is_named() {
        match run(1, &[("via", "locktorture"), ("seconds", "0.2")]) {
            Ok(outcome) => assert!(matches!(outcome, Outcome::Done { .. })),
            Err(Failure::Refused(why)) => {
                assert!(why.contains("LOCK_TORTURE_TEST") || why.contains("root"), "{why}")
            }
            Err(other) => panic!("{other}"),
        }
    }
}
