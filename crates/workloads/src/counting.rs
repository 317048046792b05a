//! Tasks, which are threads or processes, that loop for a time and count what they do.
//!
//! Each task counts in a line of memory of its own, where it also finds the flag that stops it. So counting and
//! looking whether to go on cost one addition to and one load from a line that no other CPU touches, except at the
//! two ends of the measured time, when the counters are read.

use crate::clock::{elapsed_ns, now_ns};
use crate::gate::Gate;
use crate::shared::{Mode, pin, warmup};
use crate::shared_memory::{Shared, SharedValue};
use crate::{Failure, crew, process_crew};
use experiment::{Parameter, Params, counted};
use machine::CpuSet;
use rustix::thread::futex;
use rustix::time::Timespec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How tasks loop, and for how long.
#[derive(Debug, Clone)]
pub struct Looping {
    /// What a task is.
    pub mode: Mode,
    /// How many there are.
    pub tasks: usize,
    /// Where they may run: task i on the (i mod n)-th of these n sets of CPUs, or where the trial may if there is none.
    pub places: Vec<CpuSet>,
    /// Time for which they loop before anything is measured.
    pub warmup: Duration,
    /// Time that is measured.
    pub runtime: Duration,
    /// Turns of the loop between two looks at the flag that ends it.
    pub batch: u64,
}

/// What tasks counted in the measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Operations of each task in the measured time.
    pub tasks: Vec<u64>,
    /// The measured time, by the clock.
    pub elapsed_ns: u64,
    /// Operations of all tasks from their start to their end, warm-up included.
    pub total: u64,
}

impl Counted {
    /// Operations of all tasks in the measured time.
    pub fn sum(&self) -> u64 {
        self.tasks.iter().sum()
    }

    /// Operations of the slowest task and of the fastest.
    pub fn extremes(&self) -> (u64, u64) {
        let (min, max) = (self.tasks.iter().min(), self.tasks.iter().max());
        (min.copied().unwrap_or(0), max.copied().unwrap_or(0))
    }

    /// Operations of all tasks per second of the measured time.
    pub fn rate_per_s(&self) -> f64 {
        self.sum() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// The parameters `runtime` and `batch`.
pub fn parameters(runtime_s: f64) -> Vec<Parameter> {
    vec![
        Parameter::decimal("runtime", runtime_s, 0.01, 86_400.0, "seconds that are measured"),
        Parameter::integer(
            "batch",
            1,
            1,
            1_000_000,
            "turns of the loop between two looks at the counter and at the flag that ends it; more than one makes a \
             difference only where a turn takes a few nanoseconds",
        ),
    ]
}

impl Looping {
    /// As [`parameters`] and `warmup` say, for `tasks` tasks that may run anywhere.
    ///
    /// # Errors
    /// When the workload's description lacks one of the parameters.
    pub fn new(mode: Mode, tasks: u64, params: &Params) -> Result<Looping, Failure> {
        Ok(Looping {
            mode,
            tasks: tasks as usize,
            places: Vec::new(),
            warmup: warmup(params)?,
            runtime: Duration::from_secs_f64(params.decimal("runtime")?),
            batch: params.count("batch")?,
        })
    }

    /// Starts the tasks, lets all of them do `body` at the same time, and returns what they counted. A body prepares
    /// itself, loops by [`Task::repeat`] or [`Task::until_stopped`] exactly once, and then checks what it did. Where
    /// tasks are processes it must be called while there is no second thread, and a body has copies of what it
    /// borrows.
    ///
    /// # Errors
    /// When a task cannot be started, and what a body failed with; all tasks then end at once. When nothing was done in
    /// the measured time.
    pub fn run(&self, body: impl Fn(&Task) -> Result<(), Failure> + Sync) -> Result<Counted, Failure> {
        let memory = |error| {
            Failure::Refused(format!(
                "no memory for the counters of {}: {error}",
                counted(self.tasks, "task")
            ))
        };
        let slots = Shared::<Slot>::new(self.tasks).map_err(memory)?;
        let alarm = SharedValue::new(Alarm::default).map_err(memory)?;
        let (slots, alarm) = (&*slots, &*alarm);
        // The first use of the clock looks for it, which is not to be measured.
        now_ns();
        let work = |index: usize, gate: &Gate| {
            let slot = slots.get(index).ok_or_else(|| Failure::Invariant(format!("no task {index}")))?;
            let task = Task { index, batch: self.batch, slot, gate, arrived: Cell::new(false) };
            let done = self.place(index).and_then(|()| body(&task)).and_then(|()| match task.arrived.get() {
                true => Ok(()),
                false => Err(Failure::Invariant(format!("task {index} did not loop"))),
            });
            if done.is_err() {
                alarm.ring();
                // The others wait until all have come. A process that ends is not waited for.
                let _ = self.mode == Mode::Thread && !task.arrived.get() && gate.wait();
            }
            done
        };
        let mut counted = match self.mode {
            Mode::Process => {
                process_crew::run(self.tasks, work, |gate| Ok(self.measure(gate, slots, alarm)))?
            }
            Mode::Thread => {
                let (counted, tasks) = crew::run(self.tasks, work, |gate| self.measure(gate, slots, alarm))?;
                tasks.into_iter().collect::<Result<(), Failure>>()?;
                counted
            }
        }?;
        counted.total = slots.iter().map(|slot| slot.count.load(Relaxed)).sum();
        if counted.sum() == 0 {
            return Err(Failure::Refused(format!(
                "no operation came to its end in {} s; take a longer runtime",
                self.runtime.as_secs_f64()
            )));
        }
        Ok(counted)
    }

    fn place(&self, index: usize) -> Result<(), Failure> {
        match self.places.get(index % self.places.len().max(1)) {
            None => Ok(()),
            Some(cpus) => pin(cpus),
        }
    }

    /// Lets the tasks go, waits for the warm-up and then for the measured time, and stops them.
    fn measure(&self, gate: &Gate, slots: &[Slot], alarm: &Alarm) -> Result<Counted, Failure> {
        let read = || slots.iter().map(|slot| slot.count.load(Relaxed)).collect::<Vec<u64>>();
        gate.open();
        alarm.sleep(self.warmup);
        let (start_ns, before) = (now_ns(), read());
        alarm.sleep(self.runtime);
        let (end_ns, after) = (now_ns(), read());
        for slot in slots {
            slot.stop.store(true, Relaxed);
        }
        let tasks = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        Ok(Counted { tasks, elapsed_ns: elapsed_ns(start_ns, end_ns)?, total: 0 })
    }
}

/// A task, as its body sees it.
#[derive(Debug)]
pub struct Task<'a> {
    index: usize,
    batch: u64,
    slot: &'a Slot,
    gate: &'a Gate,
    arrived: Cell<bool>,
}

impl Task<'_> {
    /// Which task it is, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Does `work` until the time is over, and counts `operations` each time.
    ///
    /// # Errors
    /// What `work` failed with.
    #[inline]
    pub fn repeat(
        &self,
        operations: u64,
        mut work: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.until_stopped(|| {
            for _ in 0..self.batch {
                work()?;
            }
            self.count(operations * self.batch);
            Ok(())
        })
    }

    /// Waits for the start, and does `work` until the time is over. `work` counts by itself, with [`Task::count`].
    ///
    /// # Errors
    /// What `work` failed with.
    #[inline]
    pub fn until_stopped(&self, mut work: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
        self.arrived.set(true);
        if self.gate.wait() {
            while !self.slot.stop.load(Relaxed) {
                work()?;
            }
        }
        Ok(())
    }

    /// Counts `operations` that are done.
    #[inline]
    pub fn count(&self, operations: u64) {
        // Nobody else writes it, so no atomic addition is needed.
        self.slot.count.store(self.slot.count.load(Relaxed) + operations, Relaxed);
    }

    /// What this task counted since its start, warm-up and end included.
    pub fn counted(&self) -> u64 {
        self.slot.count.load(Relaxed)
    }
}

/// What a task and the one who measures share. So far apart that no prefetcher brings one CPU the line of another.
#[derive(Debug, Default)]
#[repr(align(256))]
struct Slot {
    count: AtomicU64,
    stop: AtomicBool,
}

/// Wakes the one who measures when a task has failed.
#[derive(Debug, Default)]
struct Alarm(AtomicU32);

impl Alarm {
    fn ring(&self) {
        self.0.store(1, Relaxed);
        // Waking cannot fail on an aligned word of our own.
        let _ = futex::wake(&self.0, futex::Flags::empty(), 1);
    }

    /// Sleeps for `time`, or until it rings.
    fn sleep(&self, time: Duration) {
        let start_ns = now_ns();
        let left = || time.checked_sub(Duration::from_nanos(now_ns().saturating_sub(start_ns)));
        while self.0.load(Relaxed) == 0
            && let Some(left) = left().filter(|left| !left.is_zero())
        {
            // EAGAIN, EINTR and ETIMEDOUT mean that it has to be looked again.
            let _ = futex::wait(&self.0, futex::Flags::empty(), 0, Timespec::try_from(left).ok().as_ref());
        }
    }
}

/// The runtime of a test whose work fails in its loop, which ends it at once.
#[cfg(test)]
pub const UNTIL_IT_FAILS: Duration = Duration::from_secs(3600);

/// For tests, which other work may keep from the CPUs: takes a longer runtime until something is done in it.
#[cfg(test)]
pub fn patiently<T>(mut run: impl FnMut(Duration) -> Result<T, Failure>) -> Result<T, Failure> {
    for runtime_ms in [10, 100, 1000] {
        match run(Duration::from_millis(runtime_ms)) {
            Err(Failure::Refused(why)) if why.ends_with("take a longer runtime") => {}
            other => return other,
        }
    }
    run(Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::shared_memory::SharedWords;

    fn looping(mode: Mode, runtime: Duration) -> Looping {
        Looping { mode, tasks: 3, places: Vec::new(), warmup: Duration::from_millis(5), runtime, batch: 7 }
    }

    #[test]
    fn counts_are_those_of_the_measured_time_and_every_task_ends() {
        alone("counting::tests::counts_are_those_of_the_measured_time_and_every_task_ends", || {
            for mode in [Mode::Process, Mode::Thread] {
                let words = SharedWords::new(3).unwrap();
                let body = |task: &Task| {
                    let word = &words[task.index()];
                    task.repeat(2, || {
                        word.fetch_add(1, Relaxed);
                        Ok(())
                    })?;
                    assert_eq!(task.counted(), 2 * word.load(Relaxed));
                    Ok(())
                };
                let counted = patiently(|runtime| {
                    words.iter().for_each(|word| word.store(0, Relaxed));
                    leaving_nothing(|| looping(mode, runtime).run(body))
                })
                .unwrap();
                assert!(counted.elapsed_ns >= 10_000_000, "{counted:?}");
                for (counted, word) in counted.tasks.iter().zip(&*words) {
                    // What was done in the warm-up does not count.
                    let done = word.load(Relaxed);
                    assert!(done.is_multiple_of(7) && *counted <= 2 * done, "{counted} of {done}");
                }
                assert_eq!(counted.total, 2 * words.iter().map(|word| word.load(Relaxed)).sum::<u64>());
                assert!(counted.extremes().0 <= counted.extremes().1);
            }
        });
    }

    #[test]
    fn a_task_that_fails_ends_all_at_once() {
        alone("counting::tests::a_task_that_fails_ends_all_at_once", || {
            for mode in [Mode::Process, Mode::Thread] {
                for early in [true, false] {
                    let hour = looping(mode, UNTIL_IT_FAILS);
                    let broken = || Err(Failure::Invariant("on purpose".into()));
                    let result = leaving_nothing(|| {
                        hour.run(|task| match task.index() {
                            1 if early => broken(),
                            1 => task.repeat(1, broken),
                            _ => task.repeat(1, || Ok(())),
                        })
                    });
                    let error = result.unwrap_err().to_string();
                    assert!(error.ends_with("on purpose"), "{error}");
                }
                let lazy = leaving_nothing(|| looping(mode, UNTIL_IT_FAILS).run(|_| Ok(()))).unwrap_err();
                assert!(lazy.to_string().contains("did not loop"), "{lazy}");
            }
        });
    }

    #[test]
    fn a_place_that_cannot_be_had_and_a_time_without_work_are_told() {
        alone("counting::tests::a_place_that_cannot_be_had_and_a_time_without_work_are_told", || {
            for mode in [Mode::Process, Mode::Thread] {
                let nowhere = Looping { places: vec![CpuSet::one(100_000)], ..looping(mode, UNTIL_IT_FAILS) };
                let error = leaving_nothing(|| nowhere.run(|task| task.repeat(1, || Ok(())))).unwrap_err();
                assert!(matches!(error, Failure::Refused(_)), "{error}");
                let idle = looping(mode, Duration::from_millis(1));
                let error = idle.run(|task| task.until_stopped(|| Ok(()))).unwrap_err().to_string();
                assert!(error.contains("take a longer runtime"), "{error}");
            }
        });
    }
}
