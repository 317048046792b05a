//! futex-hash: how fast threads look up futexes in the kernel's hash.

use super::{ORIGINALS, Setup, Special, description, rates};
use crate::clock::now_ns;
use crate::{Failure, Original, Trial, Workload, crew, originals};
use experiment::{Description, Parameter, Params};
use rustix::io::Errno;
use rustix::thread::futex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct FutexHash;

impl Workload for FutexHash {
    fn describe(&self) -> Description {
        description(Special {
            name: "futex-hash",
            summary: "rate at which threads look up futexes in the kernel's hash",
            about: "Every thread has `futexes` futexes of its own, all 0, and asks to wait for each in turn \
                    if its value is 1234. Every call returns at once with EAGAIN, and none ever sleeps, so \
                    what is measured is the system call, the hashing of the address and the lock of the hash \
                    bucket.",
            quirks: rates::QUIRKS,
            points: &[1, 2, 4, 8, 16],
            parameters: vec![
                Parameter::integer("futexes", 1024, 1, 1 << 20, "futexes per thread"),
                rates::runtime(),
            ],
            metric: rates::metric("calls per second of one thread, as a mean over the threads"),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::perf_futex::timed("hash", &["futexes"], params, trial);
        }
        let setup = Setup::new(params, trial)?;
        let futexes = params.count("futexes")? as usize;
        rates::measure(&setup, params, trial, |runtime| look_up(&setup, futexes, runtime))
    }
}

/// The value that is waited for, and that no futex has.
const EXPECTED: u32 = 1234;

/// Lets every thread look up its futexes for `runtime` and returns the rate of each.
fn look_up(setup: &Setup, futexes: usize, runtime: Duration) -> Result<Vec<f64>, Failure> {
    let words: Vec<Vec<AtomicU32>> =
        (0..setup.threads).map(|_| (0..futexes).map(|_| AtomicU32::new(0)).collect()).collect();
    let done = AtomicBool::new(false);
    let start_ns = now_ns();
    let (end_ns, threads) = crew::run(
        setup.threads,
        |index, gate| {
            let placed = setup.pin(index);
            let words = words.get(index).map(Vec::as_slice).unwrap_or_default();
            let open = gate.wait();
            let lookups = if open { until_done(words, setup.flags, &done) } else { Lookups::default() };
            placed.map(|()| lookups)
        },
        |gate| {
            gate.open();
            std::thread::sleep(runtime);
            done.store(true, Ordering::Relaxed);
            now_ns()
        },
    )?;
    let mut rates = Vec::with_capacity(threads.len());
    for thread in threads {
        let lookups = thread?;
        if lookups.odd != 0 {
            return Err(Failure::Invariant(format!(
                "{} of {} calls did not return EAGAIN",
                lookups.odd, lookups.calls
            )));
        }
        let own = (lookups.start_ns, lookups.end_ns);
        rates.push(rates::rate(setup.semantics, lookups.calls, own, (start_ns, end_ns))?);
    }
    Ok(rates)
}

#[derive(Default)]
struct Lookups {
    start_ns: u64,
    end_ns: u64,
    calls: u64,
    /// Calls that returned anything but EAGAIN.
    odd: u64,
}

/// What one thread does. As in the original it looks whether it is done after each pass over its futexes.
fn until_done(words: &[AtomicU32], flags: futex::Flags, done: &AtomicBool) -> Lookups {
    let mut lookups = Lookups { start_ns: now_ns(), ..Lookups::default() };
    loop {
        for word in words {
            let answer = futex::wait(word, flags, EXPECTED, None);
            lookups.odd += u64::from(answer != Err(Errno::AGAIN));
        }
        lookups.calls += words.len() as u64;
        if done.load(Ordering::Relaxed) {
            break;
        }
    }
    lookups.end_ns = now_ns();
    lookups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::tests::{bogus_flags, setup};
    use crate::shared::Semantics;

    #[test]
    fn a_call_that_does_not_return_eagain_fails_the_trial() {
        let setup = setup(2, Semantics::Strict, bogus_flags());
        assert!(matches!(look_up(&setup, 8, Duration::from_millis(10)), Err(Failure::Invariant(_))));
    }
}
