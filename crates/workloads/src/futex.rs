//! The futex workloads, after `perf bench futex`: what they share.

mod asleep;
mod buckets;
pub mod hash;
pub mod lock_pi;
pub mod requeue;
pub mod wake;
pub mod wake_parallel;

use crate::clock::now_ns;
use crate::shared::{Semantics, semantics, with_shared};
use crate::{Failure, Trial};
use asleep::Sleepers;
use buckets::Buckets;
use experiment::{Axis, Description, Metric, Parameter, Params, Point};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

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
        "slots of the hash that the process has to itself: a power of two from 2, 0 for the global hash, -1 to \
         leave it alone",
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
        parameters: with_shared(parameters, &["perf"]),
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

/// The parameter for the time that a trial runs.
fn runtime() -> Parameter {
    Parameter::decimal("runtime", 10.0, 0.01, 86_400.0, "seconds for which the threads work")
}

/// What all futex workloads need to know.
struct Setup {
    threads: usize,
    flags: futex::Flags,
    semantics: Semantics,
    cpus: Vec<u32>,
    buckets: Buckets,
}

impl Setup {
    /// Reads the parameters and prepares the process. Must come before the first thread, which is when the kernel
    /// chooses a hash.
    fn new(params: &Params, trial: &Trial) -> Result<Setup, Failure> {
        if params.flag("mlockall")? {
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| {
                Failure::Refused(format!(
                    "memory cannot be locked: {error}; raise the limit (`ulimit -l unlimited` as root) or leave out mlockall"
                ))
            })?;
        }
        Ok(Setup {
            threads: trial.count()? as usize,
            flags: if params.flag("shared")? { futex::Flags::empty() } else { futex::Flags::PRIVATE },
            semantics: semantics(params)?,
            cpus: trial.cpus().to_vec(),
            buckets: Buckets::set(params.integer("buckets")?)?,
        })
    }

    /// Lets the calling thread, which is the `index`-th, run on its CPU only.
    fn pin(&self, index: usize) -> Result<(), Failure> {
        let cpu = self.cpus.get(index % self.cpus.len().max(1)).copied();
        let cpu = cpu.ok_or_else(|| Failure::Refused("the trial may use no CPU".into()))?;
        machine::cpus::pin_thread_to(cpu).map_err(|error| Failure::Refused(error.to_string()))
    }

    /// The time; with original semantics cut off to microseconds, as the original reads it.
    fn stamp_ns(&self) -> u64 {
        match self.semantics {
            Semantics::Original => now_ns() / 1000 * 1000,
            Semantics::Strict => now_ns(),
        }
    }

    /// Waits until those who are about to wait for `word` do so: with original semantics for the tenth of a second
    /// that the original takes to be enough, with strict ones until each is seen asleep there.
    fn let_fall_asleep(&self, sleepers: &Sleepers, word: &Word) -> Result<(), Failure> {
        match self.semantics {
            Semantics::Original => std::thread::sleep(std::time::Duration::from_millis(100)),
            Semantics::Strict => sleepers.prove_asleep(word)?,
        }
        Ok(())
    }
}

/// A futex with a cache line to itself, and 0 in it until it is released.
#[repr(align(128))]
#[derive(Default)]
struct Word {
    futex: AtomicU32,
    /// Threads whose wait ended without a wake-up.
    left_early: AtomicU32,
}

impl Word {
    /// Waits until woken; not at all where the value is no longer 0.
    fn wait(&self, flags: futex::Flags) -> Result<(), Errno> {
        loop {
            match futex::wait(&self.futex, flags, 0, None) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.left_early.fetch_add(1, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    }

    /// Whether, with `woken` of `threads` woken, nobody is left who could be.
    fn is_deserted(&self, woken: usize, threads: usize) -> bool {
        woken + self.left_early.load(Ordering::Relaxed) as usize >= threads
    }

    /// Lets go whoever waits or still will, so that no thread is left behind whatever went wrong. Returns how many
    /// were waiting.
    fn release(&self, flags: futex::Flags) -> usize {
        self.futex.store(1, Ordering::Release);
        // Waking cannot fail on an aligned word of our own.
        futex::wake(&self.futex, flags, i32::MAX as u32).unwrap_or(0)
    }
}

/// Why a system call of a measured loop failed.
fn broken(call: &str, error: Errno) -> Failure {
    Failure::Invariant(format!("{call} failed: {error}"))
}

/// Milliseconds between two stamps; negative if the clock went backwards.
fn ms_between(start_ns: u64, end_ns: u64) -> f64 {
    (end_ns as i128 - start_ns as i128) as f64 / 1e6
}

/// A rate as the original computes it: over whole seconds, unless there is none.
fn rate_in_whole_seconds(count: u64, elapsed_s: f64) -> f64 {
    count as f64 / if elapsed_s < 1.0 { elapsed_s } else { elapsed_s.floor() }
}

/// Leaves the mean of the rates of all threads as the sample, and the extremes beside it.
fn report_rates(rates: &[f64], trial: &mut Trial) -> Result<(), Failure> {
    trial.sample("rate", rates.iter().sum::<f64>() / rates.len().max(1) as f64)?;
    trial.counter("rate of the slowest thread", rates.iter().copied().fold(f64::INFINITY, f64::min));
    trial.counter("rate of the fastest thread", rates.iter().copied().fold(0.0, f64::max));
    Ok(())
}
