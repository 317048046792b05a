//! The futex workloads, after `perf bench futex`: what they share.

pub mod hash;
pub mod lock_pi;
mod rates;
pub mod requeue;
mod waiters;
pub mod wake;
pub mod wake_parallel;

use crate::buckets::Buckets;
use crate::clock::{elapsed_ns, now_ns};
use crate::shared::{Semantics, lock_memory, memory_for, own_cpu, room_for, semantics, with_shared};
use crate::{Failure, Original, Trial, threads};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point};
use rustix::io::Errno;
use rustix::thread::futex;

/// What does the same work: `perf bench futex`.
const ORIGINALS: &[Original] = &[Original::PERF];

/// What the description of one futex workload says that the others' do not.
struct Special<'a> {
    name: &'a str,
    summary: &'a str,
    about: &'a str,
    quirks: &'a str,
    points: &'a [u64],
    parameters: Vec<Parameter>,
    metric: Metric,
}

fn description(special: Special) -> Description {
    let mut parameters = special.parameters;
    parameters.push(Parameter::flag("shared", false, "use futexes that processes can share"));
    parameters.push(Parameter::flag("mlockall", false, "lock all memory of the process"));
    parameters.push(Parameter::integer(
        "buckets",
        -1,
        -1,
        1 << 24,
        "slots of the hash that the process has to itself: a power of two from 2, 0 for the global hash, -1 \
         to leave it alone",
    ));
    let subcommand = special.name.trim_start_matches("futex-");
    Description {
        name: special.name.into(),
        summary: special.summary.into(),
        about: format!(
            "{}\n\nThread i runs on the (i mod n)-th of the n CPUs that the trial may use.",
            special.about
        ),
        source: format!("`perf bench futex {subcommand}` of Linux 6.1 to 6.18. {}", special.quirks),
        axis: Axis {
            name: "threads".into(),
            heading: "Threads".into(),
            suffix: String::new(),
            points: special.points.iter().copied().map(Point::from).collect(),
            range: Some((1, 100_000)),
        },
        parameters: with_shared(parameters, ORIGINALS),
        metrics: vec![special.metric],
        requirements: vec![
            "as many threads as the point says".into(),
            "Linux 6.16 for `buckets`".into(),
            "perf for `via`, 6.16 or later with `buckets`".into(),
        ],
    }
}

/// The parameter for the number of runs inside a trial.
fn repeat() -> Parameter {
    Parameter::integer("repeat", 10, 1, 1_000_000, "runs inside a trial; each is a sample")
}

/// The metric of those that time calls.
fn latency(help: &str) -> Metric {
    Metric::new("latency", "ms", Direction::Lower, "time in ms", help)
}

/// What those that let threads wait have in common.
const WAITING_QUIRKS: &str = "With original semantics the clock starts a tenth of a second after the threads \
                              were let go, whether or not they sleep by then, and reads whole microseconds; \
                              with strict semantics each waiter has been seen asleep, and the woken threads end \
                              without giving their stacks back. Intervals beyond one \
                              second are right in both.";

/// The stack of perf's threads, which leave it to the C library. So large ones are unmapped rather than kept for the next run.
const ORIGINAL_STACK_BYTES: usize = 8 << 20;

/// What all futex workloads need to know.
struct Setup {
    threads: usize,
    flags: futex::Flags,
    semantics: Semantics,
    cpus: Vec<u32>,
    buckets: Buckets,
}

impl Setup {
    /// Reads the parameters and prepares the process. Must come before the first thread, which is when the
    /// kernel chooses a hash.
    fn new(params: &Params, trial: &Trial) -> Result<Setup, Failure> {
        if params.flag("mlockall")? {
            lock_memory()?;
        }
        let threads = trial.count()?;
        room_for(threads, 0, 0)?;
        // The first use of the clock looks for it, which is not to be measured.
        now_ns();
        Ok(Setup {
            threads: threads as usize,
            flags: if params.flag("shared")? { futex::Flags::empty() } else { futex::Flags::PRIVATE },
            semantics: semantics(params)?,
            cpus: trial.cpus().to_vec(),
            buckets: Buckets::set(params.integer("buckets")?)?,
        })
    }

    /// As [`Setup::new`], of those that let threads wait and start `more` of the same stack.
    fn of_waiting(params: &Params, trial: &Trial, more: usize) -> Result<Setup, Failure> {
        let setup = Setup::new(params, trial)?;
        if params.flag("mlockall")? {
            // Locked stacks are all there, used or not.
            let bytes = (setup.threads + more) as u64 * setup.stack_bytes() as u64;
            memory_for(bytes, "locked stacks", "fewer threads or semantics=strict")?;
        }
        Ok(setup)
    }

    /// Lets the calling thread, which is the `index`-th, run on its CPU only.
    fn pin(&self, index: usize) -> Result<(), Failure> {
        own_cpu(&self.cpus, index)
    }

    /// The stack of a thread that is woken while somebody measures. What it does at its end competes with the waker. With
    /// original semantics its unused part is given back, as that of the original's threads; with strict semantics the thread
    /// ends with as little as it can.
    fn stack_bytes(&self) -> usize {
        match self.semantics {
            Semantics::Original => ORIGINAL_STACK_BYTES,
            Semantics::Strict => threads::SMALLEST_STACK_BYTES,
        }
    }

    /// The time; with original semantics cut off to microseconds, as the original reads it.
    fn stamp_ns(&self) -> u64 {
        match self.semantics {
            Semantics::Original => now_ns() / 1000 * 1000,
            Semantics::Strict => now_ns(),
        }
    }
}

/// Says how many calls of the measured loop found nobody waiting, and that they are part of the time.
fn report_empty_calls(calls: u64, trial: &mut Trial) {
    trial.counter("empty calls", calls as f64);
    if calls > 0 {
        trial.note(
            "some calls came before the waiters slept and are part of the time; semantics=strict waits for them",
        );
    }
}

/// Why a system call of a measured loop failed.
fn broken(call: &str, error: Errno) -> Failure {
    Failure::Invariant(format!("{call} failed: {error}"))
}

/// Milliseconds between two stamps.
fn elapsed_ms(start_ns: u64, end_ns: u64) -> Result<f64, Failure> {
    Ok(elapsed_ns(start_ns, end_ns)? as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::waiters::Word;
    use super::*;
    use crate::Workload;
    use crate::alone::{alone, leaving_nothing};
    use experiment::Outcome;
    use std::collections::BTreeMap;

    /// A setup as parameters would make it, on the CPUs that the test may use.
    pub(super) fn setup(threads: usize, semantics: Semantics, flags: futex::Flags) -> Setup {
        let cpus = machine::cpus::allowed().unwrap().to_vec();
        Setup { threads, flags, semantics, cpus, buckets: Buckets::LeftAlone }
    }

    /// No kernel has this operation.
    pub(super) fn bogus_flags() -> futex::Flags {
        futex::Flags::from_bits_retain(0x40)
    }

    fn run(workload: &dyn Workload, point: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let set: BTreeMap<String, String> =
            set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = workload.describe().params(&set)?;
        let cpus = machine::cpus::allowed().unwrap().to_vec();
        let mut trial = Trial::new(Point::from(point), cpus, 1);
        workload.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    const REPEATED: [&dyn Workload; 3] =
        [&wake::FutexWake, &wake_parallel::FutexWakeParallel, &requeue::FutexRequeue];
    const TIMED: [&dyn Workload; 2] = [&hash::FutexHash, &lock_pi::FutexLockPi];

    #[test]
    fn every_workload_yields_its_samples_and_leaves_nothing() {
        alone("futex::tests::every_workload_yields_its_samples_and_leaves_nothing", || {
            let original = ("semantics", "original");
            for how in [original, ("semantics", "strict")] {
                for workload in REPEATED {
                    check(workload, "latency", 2, &[how, ("repeat", "2")]);
                }
                check(&requeue::FutexRequeue, "latency", 1, &[how, ("repeat", "1"), ("pi", "on")]);
                for workload in TIMED {
                    check(workload, "rate", 1, &[how, ("runtime", "0.05")]);
                }
                check(&lock_pi::FutexLockPi, "rate", 1, &[how, ("runtime", "0.05"), ("multi", "on")]);
            }
            check(
                &wake::FutexWake,
                "latency",
                1,
                &[("semantics", "strict"), ("repeat", "1"), ("shared", "on")],
            );
        });
    }

    fn check(workload: &dyn Workload, metric: &str, samples: usize, set: &[(&str, &str)]) {
        let outcome = leaving_nothing(|| run(workload, 4, set).unwrap());
        let Outcome::Done { samples: found, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(found[metric].len(), samples, "{} {set:?}", workload.describe().name);
        assert!(found[metric].iter().all(|value| *value >= 0.0));
    }

    #[test]
    fn what_cannot_be_is_refused_and_leaves_nothing() {
        alone("futex::tests::what_cannot_be_is_refused_and_leaves_nothing", || {
            for workload in REPEATED.iter().chain(&TIMED) {
                for point in [0, 1_000_000_000] {
                    let error = leaving_nothing(|| run(*workload, point, &[])).unwrap_err().to_string();
                    assert!(error.contains("from 1 to 100000"), "{error}");
                }
                for (name, value) in [("buckets", "3"), ("buckets", "1")] {
                    let error =
                        leaving_nothing(|| run(*workload, 2, &[(name, value)])).unwrap_err().to_string();
                    assert!(error.contains("power of two"), "{error}");
                }
            }
            let uneven =
                run(&wake_parallel::FutexWakeParallel, 4, &[("nwakers", "3")]).unwrap_err().to_string();
            assert!(uneven.contains("does not divide"), "{uneven}");
        });
    }

    #[test]
    fn a_cpu_that_cannot_be_used_fails_the_trial() {
        alone("futex::tests::a_cpu_that_cannot_be_used_fails_the_trial", || {
            let nowhere =
                |semantics| Setup { cpus: vec![100_000], ..setup(2, semantics, futex::Flags::PRIVATE) };
            let error = leaving_nothing(|| wake::wake_at(&nowhere(Semantics::Strict), 1, &Word::default()));
            assert!(matches!(error, Err(Failure::Refused(_))));
        });
    }

    #[test]
    fn buckets_are_read_back_or_their_lack_is_said() {
        alone("futex::tests::buckets_are_read_back_or_their_lack_is_said", || {
            let set = [("buckets", "64"), ("semantics", "strict"), ("repeat", "1")];
            let outcome = run(&wake::FutexWake, 2, &set).unwrap();
            let Outcome::Done { evidence, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!(evidence[0].feature, "buckets");
            let lacking = evidence[0].seen.contains("no futex hash");
            assert!(
                evidence[0].ran != lacking && (lacking || evidence[0].seen == "64 hash buckets"),
                "{evidence:?}"
            );
        });
    }

    #[test]
    fn intervals_beyond_one_second_do_not_wrap() {
        assert_eq!(elapsed_ms(999_999_000, 3_000_000_000).unwrap(), 2000.001);
    }
}
