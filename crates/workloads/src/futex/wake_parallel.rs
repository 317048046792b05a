//! futex-wake-parallel: how long a wake-up call takes when several threads make one at the same time.

use super::waiters::{Word, with_waiters};
use super::{ORIGINALS, Setup, Special, WAITING_QUIRKS, broken, description, elapsed_ms, latency, repeat};
use crate::barrier::Barrier;
use crate::shared::{room_for, warm_up};
use crate::{Failure, Original, Trial, Workload, originals, threads};
use experiment::{Description, Parameter, Params};
use rustix::thread::futex;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct FutexWakeParallel;

impl Workload for FutexWakeParallel {
    fn describe(&self) -> Description {
        description(Special {
            name: "futex-wake-parallel",
            summary: "time of a wake-up call when several threads wake waiters of one futex at once",
            about: "The threads wait for one futex. Then `nwakers` further threads start together, and each \
                    makes one call that wakes its equal share of the waiters, so that all wakers contend for \
                    one hash bucket. What is measured is the time of that one call, as a mean over the \
                    wakers of a run. The wakers run on any CPU that the trial may use. A run in which a \
                    waiter was late is no result.",
            quirks: WAITING_QUIRKS,
            points: &[32, 64, 128, 256, 512],
            parameters: vec![
                Parameter::integer(
                    "nwakers",
                    0,
                    0,
                    100_000,
                    "threads that wake, a divisor of the number of waiters; 0 for as many as there are waiters",
                ),
                repeat(),
            ],
            metric: latency("from a waker's call to its return, as a mean over the wakers"),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let threads = trial.count()? as usize;
        let nwakers = match params.count("nwakers")? as usize {
            0 => threads,
            nwakers if threads.is_multiple_of(nwakers) => nwakers,
            nwakers => {
                return Err(Failure::Refused(format!(
                    "nwakers={nwakers} does not divide {threads} waiters into equal shares"
                )));
            }
        };
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::perf_futex::repeated("wake-parallel", &["nwakers"], params, trial);
        }
        room_for((threads + nwakers) as u64, 0, 0)?;
        let setup = Setup::of_waiting(params, trial, nwakers)?;
        warm_up(params, || wake_once(&setup, nwakers).map(drop))?;
        for _ in 0..params.count("repeat")? {
            trial.sample("latency", wake_once(&setup, nwakers)?)?;
        }
        setup.buckets.report(trial);
        Ok(())
    }
}

/// The mean time of the wakers' calls, in milliseconds.
fn wake_once(setup: &Setup, nwakers: usize) -> Result<f64, Failure> {
    wake_at(setup, nwakers, &Word::default())
}

fn wake_at(setup: &Setup, nwakers: usize, word: &Word) -> Result<f64, Failure> {
    let (wakeups, left) = with_waiters(
        setup,
        word,
        || word.wait(setup.flags).map_err(|error| broken("futex wait", error)),
        || wake_together(setup, word, nwakers),
        || word.release(setup.flags),
    )?;
    let woken: usize = wakeups.iter().map(|wakeup| wakeup.woken).sum();
    if woken != setup.threads {
        return Err(Failure::Invariant(format!(
            "the wakers woke {woken} of {} threads, and {left} were late",
            setup.threads
        )));
    }
    let mut total_ms = 0.0;
    for wakeup in &wakeups {
        total_ms += elapsed_ms(wakeup.start_ns, wakeup.end_ns)?;
    }
    Ok(total_ms / wakeups.len().max(1) as f64)
}

#[derive(Default)]
struct Wakeup {
    start_ns: u64,
    end_ns: u64,
    woken: usize,
}

/// Lets all wakers start together, and measures the one call of each.
fn wake_together(setup: &Setup, word: &Word, nwakers: usize) -> Result<Vec<Wakeup>, Failure> {
    let share = (setup.threads / nwakers.max(1)) as u32;
    // As in the original. It is not the gate of a crew, where all sleep until somebody else opens it, because how many of the
    // wakers are preempted in their call, and so the mean, depends on how they come to it.
    let barrier = Barrier::new(nwakers as u32 + 1, 0);
    threads::scope(setup.stack_bytes(), |scope| {
        for index in 0..nwakers {
            let waker = || {
                if !barrier.wait() {
                    return Ok(Wakeup::default());
                }
                let start_ns = setup.stamp_ns();
                let woken = futex::wake(&word.futex, setup.flags, share);
                let end_ns = setup.stamp_ns();
                let woken = woken.map_err(|error| broken("futex wake", error))?;
                Ok(Wakeup { start_ns, end_ns, woken })
            };
            if let Err(error) = scope.start(waker) {
                barrier.cancel();
                return Err(Failure::Spawn { nth: index + 1, count: nwakers, why: error.to_string() });
            }
        }
        // Only this thread could say that not all will come.
        let _ = barrier.wait();
        let panicked = || Failure::Invariant("a thread of the workload panicked".into());
        scope.join().into_iter().map(|ended| ended.into_result().unwrap_or_else(|| Err(panicked()))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::tests::setup;
    use crate::shared::Semantics;

    #[test]
    fn waiters_that_leave_early_fail_the_trial() {
        let word = Word::default();
        word.release(futex::Flags::PRIVATE);
        let setup = setup(2, Semantics::Original, futex::Flags::PRIVATE);
        assert!(matches!(wake_at(&setup, 2, &word), Err(Failure::Invariant(_))));
    }
}
