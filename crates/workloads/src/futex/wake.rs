//! futex-wake: how long it takes to wake all threads that wait for one futex.

use super::waiters::{Word, with_waiters};
use super::{
    ORIGINALS, Setup, Special, WAITING_QUIRKS, broken, description, elapsed_ms, latency, repeat,
    report_empty_calls,
};
use crate::shared::warm_up;
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Parameter, Params};
use rustix::thread::futex;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct FutexWake;

impl Workload for FutexWake {
    fn describe(&self) -> Description {
        description(Special {
            name: "futex-wake",
            summary: "time to wake all threads that wait for one futex",
            about: "The threads wait for one futex, so that all of them queue in one hash bucket. Then the \
                    main thread wakes `nwakes` of them with each call until all are woken. What is measured \
                    is the time that the waker needs for its calls, not the time until the woken threads \
                    run.",
            quirks: WAITING_QUIRKS,
            points: &[32, 64, 128, 256, 512],
            parameters: vec![
                Parameter::integer("nwakes", 1, 1, 100_000, "threads that each call wakes at the most"),
                repeat(),
            ],
            metric: latency("from the first wake-up call to the return of the last"),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::perf_futex::repeated("wake", &["nwakes"], params, trial);
        }
        let setup = Setup::of_waiting(params, trial, 0)?;
        let nwakes = params.count("nwakes")? as u32;
        warm_up(params, || wake_once(&setup, nwakes).map(drop))?;
        let mut empty_calls = 0;
        for _ in 0..params.count("repeat")? {
            let wakeup = wake_once(&setup, nwakes)?;
            trial.sample("latency", elapsed_ms(wakeup.start_ns, wakeup.end_ns)?)?;
            empty_calls += wakeup.empty_calls;
        }
        report_empty_calls(empty_calls, trial);
        setup.buckets.report(trial);
        Ok(())
    }
}

pub(super) struct Wakeup {
    start_ns: u64,
    end_ns: u64,
    woken: usize,
    /// Calls that found nobody, because a waiter was late.
    empty_calls: u64,
}

fn wake_once(setup: &Setup, nwakes: u32) -> Result<Wakeup, Failure> {
    wake_at(setup, nwakes, &Word::default())
}

pub(super) fn wake_at(setup: &Setup, nwakes: u32, word: &Word) -> Result<Wakeup, Failure> {
    let (wakeup, left) = with_waiters(
        setup,
        word,
        || word.wait(setup.flags).map_err(|error| broken("futex wait", error)),
        || wake_all(setup, word, nwakes),
        || word.release(setup.flags),
    )?;
    if wakeup.woken != setup.threads || left != 0 {
        return Err(Failure::Invariant(format!(
            "{} of {} threads were woken, and {left} still waited",
            wakeup.woken, setup.threads
        )));
    }
    Ok(wakeup)
}

/// The measured region.
fn wake_all(setup: &Setup, word: &Word, nwakes: u32) -> Result<Wakeup, Failure> {
    let mut wakeup = Wakeup { start_ns: setup.stamp_ns(), end_ns: 0, woken: 0, empty_calls: 0 };
    while wakeup.woken < setup.threads {
        match futex::wake(&word.futex, setup.flags, nwakes) {
            Ok(0) => {
                wakeup.empty_calls += 1;
                if word.is_deserted(wakeup.woken, setup.threads) {
                    break;
                }
            }
            Ok(woken) => wakeup.woken += woken,
            Err(error) => return Err(broken("futex wake", error)),
        }
    }
    wakeup.end_ns = setup.stamp_ns();
    Ok(wakeup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::tests::setup;
    use crate::shared::Semantics;

    #[test]
    fn waiters_that_leave_early_fail_the_trial_instead_of_hanging_it() {
        let word = Word::default();
        word.release(futex::Flags::PRIVATE);
        for semantics in [Semantics::Original, Semantics::Strict] {
            let setup = setup(3, semantics, futex::Flags::PRIVATE);
            assert!(matches!(wake_at(&setup, 1, &word), Err(Failure::Invariant(_))));
        }
    }
}
