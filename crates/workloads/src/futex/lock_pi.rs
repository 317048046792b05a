//! futex-lock-pi: how fast threads pass on a lock with priority inheritance.

use super::{ORIGINALS, Setup, Special, broken, description, rates};
use crate::clock::now_ns;
use crate::shared::Semantics;
use crate::{Failure, Original, Trial, Workload, crew, originals};
use experiment::{Description, Parameter, Params};
use rustix::thread::futex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct FutexLockPi;

impl Workload for FutexLockPi {
    fn describe(&self) -> Description {
        description(Special {
            name: "futex-lock-pi",
            summary: "rate at which threads pass on a lock with priority inheritance",
            about: "Each thread locks a futex with FUTEX_LOCK_PI, sleeps for a microsecond while it holds \
                    it, and unlocks it with FUTEX_UNLOCK_PI, over and over. It always enters the kernel, \
                    also where the lock is free. The sleep lasts 50 to 60 microseconds with the usual timer \
                    slack, so that this measures how the lock is handed on, not how fast it could be taken. \
                    All threads use one lock, or with `multi` each its own: 32 bytes apart with original \
                    semantics, on cache lines of their own with strict ones.",
            quirks: rates::QUIRKS,
            points: &[1, 2, 4, 8, 16],
            parameters: vec![
                Parameter::flag("multi", false, "give each thread a lock of its own"),
                rates::runtime(),
            ],
            metric: rates::metric("locks taken per second by one thread, as a mean over the threads"),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::perf_futex::timed("lock-pi", &["multi"], params, trial);
        }
        let setup = Setup::new(params, trial)?;
        let locks = Locks::new(&setup, params.flag("multi")?);
        rates::measure(&setup, params, trial, |runtime| pass_on(&setup, &locks, runtime))
    }
}

/// A lock and the number of times it was taken. The number is read and written in two steps by its holder only,
/// so it comes out wrong if two ever hold the lock. It lies next to the futex, whose cache line the holder has.
#[derive(Default)]
struct Lock {
    futex: AtomicU32,
    taken: AtomicU64,
}

/// The locks, 16 bytes each, with idle ones between them to keep their distance.
struct Locks {
    all: Vec<Lock>,
    distance: usize,
    multi: bool,
}

impl Locks {
    fn new(setup: &Setup, multi: bool) -> Locks {
        let distance_bytes = match setup.semantics {
            Semantics::Original => 32,
            Semantics::Strict => 128,
        };
        let distance = distance_bytes / size_of::<Lock>();
        let count = if multi { setup.threads } else { 1 };
        Locks { all: (0..count * distance).map(|_| Lock::default()).collect(), distance, multi }
    }

    fn of(&self, index: usize) -> Option<&Lock> {
        self.all.get(if self.multi { index * self.distance } else { 0 })
    }
}

/// Lets every thread pass its lock on for `runtime` and returns the rate of each.
fn pass_on(setup: &Setup, locks: &Locks, runtime: Duration) -> Result<Vec<f64>, Failure> {
    let before: u64 = locks.all.iter().map(|lock| lock.taken.load(Relaxed)).sum();
    let done = AtomicBool::new(false);
    let start_ns = now_ns();
    let (end_ns, threads) = crew::run(
        setup.threads,
        |index, gate| {
            let placed = setup.pin(index);
            match (gate.wait(), locks.of(index)) {
                (true, Some(lock)) => placed.and(until_done(lock, setup.flags, &done)),
                _ => placed.map(|()| Passes::default()),
            }
        },
        |gate| {
            gate.open();
            std::thread::sleep(runtime);
            done.store(true, Relaxed);
            now_ns()
        },
    )?;
    let threads = threads.into_iter().collect::<Result<Vec<Passes>, Failure>>()?;
    let locked: u64 = threads.iter().map(|thread| thread.count).sum();
    let taken = locks.all.iter().map(|lock| lock.taken.load(Relaxed)).sum::<u64>() - before;
    if locked != taken {
        return Err(Failure::Invariant(format!(
            "the lock was taken {locked} times, and its holders counted {taken}: two held it at once"
        )));
    }
    let of = |thread: &Passes| {
        rates::rate(setup.semantics, thread.count, (thread.start_ns, thread.end_ns), (start_ns, end_ns))
    };
    threads.iter().map(of).collect()
}

#[derive(Default)]
struct Passes {
    start_ns: u64,
    end_ns: u64,
    count: u64,
}

/// What one thread does.
fn until_done(lock: &Lock, flags: futex::Flags, done: &AtomicBool) -> Result<Passes, Failure> {
    let mut passes = Passes { start_ns: now_ns(), ..Passes::default() };
    loop {
        futex::lock_pi(&lock.futex, flags, None).map_err(|error| broken("futex lock_pi", error))?;
        let taken = lock.taken.load(Relaxed);
        std::thread::sleep(Duration::from_micros(1));
        lock.taken.store(taken + 1, Relaxed);
        futex::unlock_pi(&lock.futex, flags).map_err(|error| broken("futex unlock_pi", error))?;
        passes.count += 1;
        if done.load(Relaxed) {
            break;
        }
    }
    passes.end_ns = now_ns();
    Ok(passes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futex::tests::{bogus_flags, setup};

    #[test]
    fn a_call_that_fails_fails_the_trial() {
        let setup = setup(2, Semantics::Strict, bogus_flags());
        let locks = Locks::new(&setup, false);
        assert!(matches!(pass_on(&setup, &locks, Duration::from_millis(10)), Err(Failure::Invariant(_))));
    }

    #[test]
    fn a_holder_that_is_not_alone_fails_the_trial() {
        let setup = setup(2, Semantics::Strict, futex::Flags::PRIVATE);
        let locks = Locks::new(&setup, false);
        let intruder_done = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !intruder_done.load(Relaxed) {
                    locks.all[0].taken.fetch_add(1, Relaxed);
                    std::thread::yield_now();
                }
            });
            let result = pass_on(&setup, &locks, Duration::from_millis(20));
            intruder_done.store(true, Relaxed);
            result
        });
        assert!(result.unwrap_err().to_string().contains("two held it at once"));
    }
}
