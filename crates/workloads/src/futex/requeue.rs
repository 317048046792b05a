//! futex-requeue: how long it takes to move all threads that wait for one futex to another.

use super::waiters::{Word, with_waiters};
use super::{
    ORIGINALS, Setup, Special, WAITING_QUIRKS, broken, description, elapsed_ms, latency, repeat,
    report_empty_calls,
};
use crate::shared::warm_up;
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Parameter, Params};
use rustix::io::Errno;
use rustix::thread::futex;
use std::sync::atomic::Ordering;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct FutexRequeue;

impl Workload for FutexRequeue {
    fn describe(&self) -> Description {
        description(Special {
            name: "futex-requeue",
            summary: "time to move all threads that wait for one futex to another",
            about: "The threads wait for one futex. The main thread moves `nrequeue` of them with each call \
                    to a second futex, without waking any, until all are moved. Only that is measured; then \
                    all are woken. With `pi` the second futex is a lock with priority inheritance: each call \
                    also gives the lock to the first waiter if it is free, and every woken thread unlocks it \
                    for the next.\n\n\
                    Whether the two futexes share a hash bucket is left to chance in each process, as in the \
                    original.",
            quirks: WAITING_QUIRKS,
            points: &[32, 64, 128, 256, 512],
            parameters: vec![
                Parameter::integer("nrequeue", 1, 1, 100_000, "threads that each call moves at the most"),
                Parameter::flag(
                    "broadcast",
                    false,
                    "move all threads with one call, whatever `nrequeue` says",
                ),
                Parameter::flag("pi", false, "move them to a lock with priority inheritance"),
                repeat(),
            ],
            metric: latency("from the first requeue call to the return of the last"),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::perf_futex::repeated(
                "requeue",
                &["nrequeue", "broadcast", "pi"],
                params,
                trial,
            );
        }
        let setup = Setup::of_waiting(params, trial, 0)?;
        let most =
            if params.flag("broadcast")? { setup.threads as u32 } else { params.count("nrequeue")? as u32 };
        let pi = params.flag("pi")?;
        let once = || requeue_once(&setup, most, pi, &Words::default());
        warm_up(params, || once().map(drop))?;
        let mut empty_calls = 0;
        for _ in 0..params.count("repeat")? {
            let moving = once()?;
            trial.sample("latency", elapsed_ms(moving.start_ns, moving.end_ns)?)?;
            empty_calls += moving.empty_calls;
        }
        report_empty_calls(empty_calls, trial);
        setup.buckets.report(trial);
        Ok(())
    }
}

/// The futex that the threads wait for, and the one that they are moved to.
#[derive(Default)]
struct Words {
    from: Word,
    to: Word,
}

struct Moving {
    start_ns: u64,
    end_ns: u64,
    /// Threads that were moved, or woken as new owners of the lock.
    moved: usize,
    /// Calls that found nobody, because a waiter was late.
    empty_calls: u64,
}

fn requeue_once(setup: &Setup, most: u32, pi: bool, words: &Words) -> Result<Moving, Failure> {
    let (moving, (left, woken)) = with_waiters(
        setup,
        &words.from,
        || words.wait(setup.flags, pi),
        || move_all(setup, words, most, pi),
        || words.release(setup.flags, pi),
    )?;
    if moving.moved != setup.threads || left != 0 || (!pi && woken != setup.threads) {
        return Err(Failure::Invariant(format!(
            "{} of {} threads were moved, {left} were left, {woken} woken afterwards",
            moving.moved, setup.threads
        )));
    }
    Ok(moving)
}

/// The measured region.
fn move_all(setup: &Setup, words: &Words, most: u32, pi: bool) -> Result<Moving, Failure> {
    let Words { from, to } = words;
    let mut moving = Moving { start_ns: setup.stamp_ns(), end_ns: 0, moved: 0, empty_calls: 0 };
    while moving.moved < setup.threads {
        let moved = match pi {
            false => futex::cmp_requeue(&from.futex, setup.flags, 0, most, &to.futex, 0),
            true => futex::cmp_requeue_pi(&from.futex, setup.flags, most, &to.futex, 0),
        };
        match moved {
            Ok(0) => {
                moving.empty_calls += 1;
                if from.is_deserted(moving.moved, setup.threads) {
                    break;
                }
            }
            Ok(moved) => moving.moved += moved,
            Err(error) => return Err(broken("futex requeue", error)),
        }
    }
    moving.end_ns = setup.stamp_ns();
    Ok(moving)
}

impl Words {
    /// Waits until moved and woken, and gives the lock to the next if it came with it.
    fn wait(&self, flags: futex::Flags, pi: bool) -> Result<(), Failure> {
        if !pi {
            return self.from.wait(flags).map_err(|error| broken("futex wait", error));
        }
        while let Err(error) = futex::wait_requeue_pi(&self.from.futex, flags, 0, None, &self.to.futex) {
            if error != Errno::INTR {
                self.from.left_early.fetch_add(1, Ordering::Relaxed);
                return Err(broken("futex wait_requeue_pi", error));
            }
        }
        futex::unlock_pi(&self.to.futex, flags).map_err(|error| broken("futex unlock_pi", error))
    }

    /// Lets everybody go, whatever went wrong. Returns how many still waited for the first futex and how many
    /// for the second; a lock passes itself on, so with `pi` nobody is counted there.
    fn release(&self, flags: futex::Flags, pi: bool) -> (usize, usize) {
        if !pi {
            let left = self.from.release(flags);
            return (left, futex::wake(&self.to.futex, flags, i32::MAX as u32).unwrap_or(0));
        }
        self.from.futex.store(1, Ordering::Release);
        let left = futex::cmp_requeue_pi(&self.from.futex, flags, i32::MAX as u32, &self.to.futex, 1);
        (left.unwrap_or(0), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::tests::setup;
    use crate::shared::Semantics;

    #[test]
    fn waiters_that_leave_early_fail_the_trial_instead_of_hanging_it() {
        for pi in [false, true] {
            let words = Words::default();
            words.release(futex::Flags::PRIVATE, pi);
            let setup = setup(2, Semantics::Original, futex::Flags::PRIVATE);
            assert!(matches!(requeue_once(&setup, 1, pi, &words), Err(Failure::Invariant(_))), "pi {pi}");
        }
    }
}
