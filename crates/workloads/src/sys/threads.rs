//! `sys-threads`: threads take a lock, give up the CPU while they hold it, and release it.

use super::{ORIGINALS, Special, after_runtime, description, events, lock, measure, runtime};
use crate::originals::sysbench::Test;
use crate::sys::events::{End, Round};
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Parameter, Params};
use locks::{Guarded, Lock, Visitor};
use rustix::thread::sched_yield;
use std::sync::atomic::{AtomicU64, Ordering};

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SysThreads;

/// The same in sysbench.
const SYSBENCH: Test =
    Test { name: "threads", options: &[("yields", "thread-yields"), ("locks", "thread-locks")] };

impl Workload for SysThreads {
    fn describe(&self) -> Description {
        description(Special {
            name: "sys-threads",
            summary: "threads yield the CPU while they hold one of a few locks",
            about: "An event takes the next of `locks` locks, by a counter that all threads share, and then `yields` \
                    times in a row: takes it, calls sched_yield, releases it. Whoever wants the same lock has to wait \
                    until the owner runs again: it is a test of the scheduler's choice among threads that yield and \
                    threads that wait.\n\n\
                    The trial counts only if what every lock protects was counted up once per section.",
            quirks: "It calls the kernel's sched_yield once more than it must, as the original does: also when nobody \
                     waits. Nothing differs between original and strict semantics.",
            parameters: vec![
                runtime(),
                Parameter::integer(
                    "yields",
                    1000,
                    1,
                    1_000_000_000,
                    "sections, and calls of sched_yield, of an event",
                ),
                Parameter::integer("locks", 8, 1, 1_000_000, "how many locks there are"),
                lock(),
            ],
            metrics: Vec::new(),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        super::check(&SYSBENCH, params, trial)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if let Some(original) = originals::wanted(params, self.originals())? {
            return SYSBENCH.run(original, params, trial);
        }
        let (threads, yields) = (trial.count()?, params.count("yields")?);
        let (name, locks) = (params.text("lock")?, params.count("locks")? as usize);
        measure(params, trial, after_runtime(params)?, |end| {
            let task = Task { threads, yields, expected: yields, locks, end };
            locks::visit(name, task).map_err(|error| Failure::Refused(error.to_string()))?
        })
    }
}

/// What is to be done with a lock whose type is not known yet.
struct Task {
    threads: u64,
    yields: u64,
    /// Sections that an event must have done: `yields`, except in tests that break the work.
    expected: u64,
    locks: usize,
    end: End,
}

impl Visitor for Task {
    type Output = Result<Round, Failure>;

    fn visit<L: Lock>(self) -> Self::Output {
        let locks = (0..self.locks).map(|_| Guarded::<L, u64>::new(0)).collect::<Result<Vec<_>, _>>();
        let locks = locks.map_err(|error| Failure::Refused(error.to_string()))?;
        let (next, yields) = (AtomicU64::new(0), self.yields);
        let round = events::run(self.threads, self.end, |_| {
            let mut context = L::Context::default();
            let (locks, next) = (&locks, &next);
            move || {
                let turn = next.fetch_add(1, Ordering::Relaxed) as usize % locks.len();
                let Some(lock) = locks.get(turn) else { return false };
                for _ in 0..yields {
                    lock.with(&mut context, |count| {
                        *count += 1;
                        sched_yield();
                    });
                }
                true
            }
        })?;
        let counted: u64 = locks.into_iter().map(Guarded::into_inner).sum();
        round.if_counted(counted, self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_was_not_done_is_found() {
        for (yields, expected) in [(3, 3), (2, 3), (4, 3)] {
            let task = Task { threads: 2, yields, expected, locks: 4, end: End::OneEach };
            let round = task.visit::<locks::Pthread>();
            assert_eq!(round.is_ok(), yields == expected, "{round:?}");
            assert!(matches!(round, Ok(_) | Err(Failure::Invariant(_))));
        }
    }
}
