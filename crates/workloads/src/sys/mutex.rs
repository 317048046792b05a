//! `sys-mutex`: threads take locks at random, one short section each, with work in between.

use super::events::{End, Round};
use super::{ORIGINALS, Special, description, events, lock, measure};
use crate::originals::sysbench::Test;
use crate::random::Random;
use crate::shared::{Semantics, memory_for, semantics};
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::Direction::Lower;
use experiment::{Description, Metric, Parameter, Params};
use locks::{Guarded, Lock, Visitor};
use std::sync::atomic::{AtomicU32, Ordering};

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SysMutex;

/// The same in sysbench.
const SYSBENCH: Test = Test {
    name: "mutex",
    options: &[("mutexes", "mutex-num"), ("locks", "mutex-locks"), ("loops", "mutex-loops")],
};

impl Workload for SysMutex {
    fn describe(&self) -> Description {
        description(Special {
            name: "sys-mutex",
            summary: "threads take one of thousands of locks at random, for a section of one instruction",
            about: "Each thread does one event: `locks` times it takes one of `mutexes` locks at random, after `loops` \
                    turns of an empty loop. Each lock stands on 256 bytes of its own. With the defaults two threads \
                    seldom meet, so it measures the cost of a free lock whose cache line is elsewhere.\n\n\
                    The trial counts only if what every lock protects was counted up once per section.",
            quirks: "With original semantics every section also counts up one word that all threads share, without \
                     protecting it, as the original does: it bounces between the CPUs and costs more than the locks. \
                     With strict semantics a section touches only what its lock protects.",
            parameters: vec![
                Parameter::integer("mutexes", 4096, 1, 10_000_000, "how many locks there are"),
                Parameter::integer("locks", 50_000, 1, 1_000_000_000, "sections that a thread does"),
                Parameter::integer(
                    "loops",
                    10_000,
                    0,
                    1_000_000_000,
                    "turns of an empty loop before each section",
                ),
                lock(),
            ],
            metrics: vec![
                Metric::new(
                    "time",
                    "s",
                    Lower,
                    "time in seconds",
                    "until the last thread has done its event",
                )
                .secondary(),
            ],
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        super::check(&SYSBENCH, params, trial)?;
        make_room(params)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if let Some(original) = originals::wanted(params, self.originals())? {
            return SYSBENCH.run(original, params, trial);
        }
        make_room(params)?;
        let sections = params.count("locks")?;
        let (threads, seed, name) = (trial.count()?, trial.seed(), params.text("lock")?);
        let (mutexes, loops) = (params.count("mutexes")? as usize, params.count("loops")?);
        let shared_word = semantics(params)? == Semantics::Original;
        let mut time_s = 0.0;
        measure(params, trial, End::OneEach, |end| {
            let task = Task { threads, mutexes, sections, expected: sections, loops, shared_word, seed, end };
            let round = locks::visit(name, task).map_err(|error| Failure::Refused(error.to_string()))??;
            time_s = round.time_s()?;
            Ok(round)
        })?;
        trial.sample("time", time_s)
    }
}

/// Makes sure of the memory for the locks, each of which takes at least the distance between two.
fn make_room(params: &Params) -> Result<(), Failure> {
    let mutexes = params.count("mutexes")?;
    memory_for(mutexes * APART_BYTES, &format!("{mutexes} mutexes"), "fewer")
}

/// What is to be done with a lock whose type is not known yet.
struct Task {
    threads: u64,
    mutexes: usize,
    sections: u64,
    /// Sections that an event must have done: `sections`, except in tests that break the work.
    expected: u64,
    loops: u64,
    shared_word: bool,
    seed: u64,
    end: End,
}

/// From one lock to the next.
const APART_BYTES: u64 = 256;

/// A lock at a distance from the next.
#[repr(align(256))]
struct Apart<L>(Guarded<L, u64>);

impl Visitor for Task {
    type Output = Result<Round, Failure>;

    fn visit<L: Lock>(self) -> Self::Output {
        let locks =
            (0..self.mutexes).map(|_| Guarded::new(0).map(Apart)).collect::<Result<Vec<Apart<L>>, _>>();
        let locks = locks.map_err(|error| Failure::Refused(error.to_string()))?;
        let word = AtomicU32::new(0);
        let round = events::run(self.threads, self.end, |index| {
            let mut context = L::Context::default();
            let mut random = Random::new(self.seed, index);
            let (locks, word, task) = (&locks[..], &word, &self);
            move || {
                for _ in 0..task.sections {
                    let place = random.below(locks.len() as u64) as usize;
                    pass(task.loops);
                    let Some(Apart(lock)) = locks.get(place) else { return false };
                    match task.shared_word {
                        true => lock.with(&mut context, |count| {
                            *count += 1;
                            // Not one atomic step, since the original's is none.
                            word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
                        }),
                        false => lock.with(&mut context, |count| *count += 1),
                    }
                }
                true
            }
        })?;
        let counted: u64 = locks.into_iter().map(|Apart(lock)| lock.into_inner()).sum();
        round.if_counted(counted, self.expected)
    }
}

/// So many turns of an empty loop, of one cycle each.
#[inline(always)]
fn pass(mut turns: u64) {
    while turns != 0 {
        turns -= 1;
        // SAFETY: there is no instruction. That the number is said to pass through keeps the compiler from counting
        // the turns in advance, or doing several in one.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) turns, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task {
            threads: 2,
            mutexes: 7,
            sections: 500,
            expected: 500,
            loops: 3,
            shared_word: true,
            seed: 1,
            end: End::OneEach,
        }
    }

    #[test]
    fn a_section_that_was_not_done_is_found() {
        for sections in [500, 499, 501] {
            let round = Task { sections, ..task() }.visit::<locks::Pthread>();
            assert_eq!(round.is_ok(), sections == 500, "{round:?}");
            assert!(matches!(round, Ok(_) | Err(Failure::Invariant(_))));
        }
    }
}
