//! What all threads of a trial share, how they start and end, and what is measured in between.

use super::handoff::{Group, Worker};
use super::load::AutoRps;
use crate::clock::now_ns;
use crate::gate::Gate;
use crate::shared::Semantics;
use crate::{Failure, crew};
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A second, or what comes nearest to it in a shorter time.
const SECOND_NS: u64 = 1_000_000_000;

/// What all threads of a trial see.
#[derive(Debug)]
pub struct Stage {
    pub semantics: Semantics,
    pub groups: Vec<Group>,
    /// Requests per second that each message thread issues; 0: workers ask for their work.
    pub rps: AtomicU64,
    /// Bytes that pipe mode moves; 0: none of that.
    pub pipe_bytes: usize,
    /// When measuring begins and when it has ended: never, until that is known.
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    /// 1 when all threads are to leave.
    stopping: AtomicU32,
}

/// The shape of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub message_threads: usize,
    /// Of each message thread.
    pub workers: usize,
    /// A worker is given no further request when more than so many wait for it.
    pub queue: u64,
    pub pipe_bytes: usize,
    /// Requests per second of all message threads; 0: workers ask for their work.
    pub rps: u64,
}

impl Shape {
    /// Of both kinds.
    pub fn threads(&self) -> u64 {
        self.message_threads as u64 * (self.workers as u64 + 1)
    }

    /// Of all message threads.
    pub fn all_workers(&self) -> u64 {
        self.message_threads as u64 * self.workers as u64
    }
}

impl Stage {
    pub fn new(semantics: Semantics, shape: Shape) -> Stage {
        let room = if shape.rps > 0 { shape.queue as usize + 1 } else { 0 };
        let group = |_| Group::new(shape.workers, room, shape.pipe_bytes);
        Stage {
            semantics,
            groups: (0..shape.message_threads).map(group).collect(),
            rps: AtomicU64::new(shape.rps / shape.message_threads.max(1) as u64),
            pipe_bytes: shape.pipe_bytes,
            start_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            stopping: AtomicU32::new(0),
        }
    }

    /// The time; with original semantics cut off to microseconds, as the original reads it.
    #[inline]
    pub fn stamp_ns(&self) -> u64 {
        match self.semantics {
            Semantics::Original => now_ns() / 1000 * 1000,
            Semantics::Strict => now_ns(),
        }
    }

    /// Whether all threads are to leave.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst) != 0
    }

    /// Whether a latency is of the time that is measured. With original semantics it is if it ended after the warm-up, and
    /// those that end while all threads leave are counted with the others. With strict semantics it must have begun within
    /// the time; how long it lasts beyond makes no difference, so that none is left out for being long.
    #[inline]
    pub fn counts(&self, began_ns: u64, ended_ns: u64) -> bool {
        let start_ns = self.start_ns.load(Ordering::Relaxed);
        match self.semantics {
            Semantics::Original => ended_ns >= start_ns,
            Semantics::Strict => (start_ns..self.end_ns.load(Ordering::Relaxed)).contains(&began_ns),
        }
    }

    /// Rests until `until_ns`, or until all threads are to leave.
    pub fn rest_until(&self, until_ns: u64) {
        while !self.is_stopping() {
            let left_ns = until_ns.saturating_sub(now_ns());
            let Ok(left) = Timespec::try_from(Duration::from_nanos(left_ns)) else { return };
            if left_ns == 0 {
                return;
            }
            // ETIMEDOUT, EAGAIN and EINTR mean that one has to look again.
            let _ = futex::wait(&self.stopping, futex::Flags::PRIVATE, 0, Some(&left));
        }
    }

    /// Tells all threads to leave.
    fn stop(&self) {
        self.stopping.store(1, Ordering::SeqCst);
        // Waking cannot fail on an aligned word of our own.
        let _ = futex::wake(&self.stopping, futex::Flags::PRIVATE, i32::MAX as u32);
        for group in &self.groups {
            let _ = group.post.post();
        }
    }

    /// Requests that all workers have done so far.
    pub fn loops(&self) -> u64 {
        let workers = self.groups.iter().flat_map(|group| &group.workers);
        workers.map(|worker| worker.counts.loops.load(Ordering::Relaxed)).sum()
    }

    /// What a worker does to be given work: it puts itself on its message thread's list, posts that, and waits until it is
    /// posted itself.
    ///
    /// # Errors
    /// What the kernel answered to a futex call.
    pub fn ask(&self, Seat { group, index, worker, .. }: Seat<'_>) -> Result<Answer, Errno> {
        if self.pipe_bytes > 0 {
            worker.pipe.fill(2);
        }
        worker.post.block();
        worker.answered_ns.store(
            match self.semantics {
                Semantics::Original => self.stamp_ns(),
                Semantics::Strict => 0,
            },
            Ordering::Relaxed,
        );
        worker.counts.asked.store(worker.counts.asked.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if self.rps.load(Ordering::Relaxed) == 0 {
            group.push(index, worker);
        } else if worker.requests.len() > 0 {
            worker.post.unblock();
            return Ok(Answer::NotNeeded);
        }
        group.post.post()?;
        if self.is_stopping() && self.semantics == Semantics::Strict {
            return Ok(Answer::Leave);
        }
        if !self.is_stopping() {
            worker.post.wait()?;
        }
        match worker.answered_ns.load(Ordering::Relaxed) {
            0 => Ok(Answer::Leave),
            answered_ns => Ok(Answer::At(answered_ns)),
        }
    }

    /// What a message thread does: it answers all who wait, the last first, each with the time at which it began to.
    ///
    /// # Errors
    /// What the kernel answered to a futex call.
    pub fn answer_all(&self, group: &Group) -> Result<(), Errno> {
        let waiting = group.take_waiting();
        let mut now_ns = self.stamp_ns();
        let mut answers = group.answers.load(Ordering::Relaxed);
        for worker in waiting {
            if self.pipe_bytes > 0 {
                worker.pipe.fill(1);
                now_ns = self.stamp_ns();
            }
            worker.answered_ns.store(now_ns, Ordering::Relaxed);
            worker.post.post()?;
            answers += 1;
        }
        group.answers.store(answers, Ordering::Relaxed);
        Ok(())
    }

    /// Gives `worker` a request that began at `start_ns`, and posts it.
    ///
    /// # Errors
    /// What the kernel answered to the futex call.
    pub fn issue(&self, group: &Group, worker: &Worker, start_ns: u64, now_ns: u64) -> Result<(), Errno> {
        group.answers.store(group.answers.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        worker.requests.push(start_ns);
        match self.semantics {
            // Also where the worker was posted for an earlier request and has not run yet.
            Semantics::Original => worker.answered_ns.store(now_ns, Ordering::Relaxed),
            Semantics::Strict => {
                let _ = worker.answered_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        worker.post.post()
    }

    /// Starts all threads, lets them warm up, measures and lets them go. `pin` is what a message thread does before the
    /// start, `prepare` what a worker does then.
    ///
    /// # Errors
    /// When a thread could not be started or failed, or when the work did not add up.
    pub fn perform<P, T: Send>(
        &self,
        durations: Durations,
        pin: impl Fn(usize) -> Result<(), Failure> + Sync,
        message: impl Fn(usize, &Group) -> Result<(), Failure> + Sync,
        prepare: impl Fn() -> Result<P, Failure> + Sync,
        work: impl Fn(Seat<'_>, P) -> Result<T, Failure> + Sync,
    ) -> Result<(Measured, Vec<T>), Failure> {
        let workers = self.groups.first().map_or(0, |group| group.workers.len());
        let body = |number: usize, gate: &Gate| {
            let (nth, slot) = (number / (workers + 1), number % (workers + 1));
            let Some(group) = self.groups.get(nth) else { return Ok(None) };
            let Some(index) = slot.checked_sub(1) else {
                // Its workers wait for it, whatever happens to it.
                let _leaving = Leaving { stage: self, group };
                let pinned = pin(nth);
                return if gate.wait() {
                    pinned.and_then(|()| message(nth, group)).map(|()| None)
                } else {
                    Ok(None)
                };
            };
            let prepared = prepare();
            match (gate.wait(), group.workers.get(index)) {
                (true, Some(worker)) => work(Seat { number, group, index, worker }, prepared?).map(Some),
                _ => Ok(None),
            }
        };
        let (measured, ended) = crew::run(self.groups.len() * (workers + 1), body, |gate| {
            gate.open();
            let measured = self.measure(durations);
            self.stop();
            measured
        })?;
        let done = ended.into_iter().collect::<Result<Vec<Option<T>>, Failure>>()?;
        self.check()?;
        let skipped = self.groups.iter().map(|group| group.skipped.load(Ordering::Relaxed)).sum();
        Ok((Measured { skipped, ..measured? }, done.into_iter().flatten().collect()))
    }

    fn measure(&self, durations: Durations) -> Result<Measured, Failure> {
        let mut auto = durations.auto_rps.map(|percent| AutoRps::new(percent, self.semantics)).transpose()?;
        let mut scale = |stage: &Stage| match &mut auto {
            Some(auto) => auto.scale(&stage.rps),
            None => Ok(false),
        };
        let began_ns = now_ns();
        for end_ns in seconds_of(began_ns, durations.warmup) {
            self.rest_until(end_ns);
            scale(self)?;
        }
        let mut start_ns = now_ns();
        self.start_ns.store(start_ns, Ordering::Relaxed);
        let (first, mut loops, mut last_ns) = (start_ns, self.loops(), start_ns);
        let mut at_start = loops;
        // Before anything is known of the first second the original notes a rate of zero, and forgets it where it warms up.
        let first_rate = self.semantics == Semantics::Original && durations.warmup.is_zero();
        let mut rates: Vec<f64> = first_rate.then_some(0.0).into_iter().collect();
        for end_ns in seconds_of(first, durations.runtime) {
            self.rest_until(end_ns);
            let (now_ns, done) = (now_ns(), self.loops());
            rates.push((done - loops) as f64 * 1e9 / (now_ns - last_ns).max(1) as f64);
            (last_ns, loops) = (now_ns, done);
            if scale(self)? {
                // The load is what it was to be, so what came before does not count.
                rates.clear();
                if self.semantics == Semantics::Strict {
                    (start_ns, at_start) = (now_ns, done);
                    self.start_ns.store(start_ns, Ordering::Relaxed);
                }
            }
        }
        self.end_ns.store(last_ns, Ordering::Relaxed);
        if auto.is_some_and(|auto| !auto.is_there()) && self.semantics == Semantics::Strict {
            return Err(Failure::Refused(
                "the CPUs were not as busy as `auto-rps` says within `runtime`; take a longer one, more workers, or \
                 semantics=original, which counts what came before, too"
                    .into(),
            ));
        }
        Ok(Measured {
            seconds: (last_ns - start_ns) as f64 / 1e9,
            loops: loops - at_start,
            rates,
            goal: self.rps.load(Ordering::Relaxed) * self.groups.len() as u64,
            skipped: 0,
        })
    }

    /// The invariant: every worker that asked was answered, and every request that was issued was done, or both wait still.
    fn check(&self) -> Result<(), Failure> {
        let sum = |of: &dyn Fn(&Worker) -> u64| -> u64 {
            self.groups.iter().flat_map(|group| &group.workers).map(of).sum()
        };
        let answers: u64 = self.groups.iter().map(|group| group.answers.load(Ordering::Relaxed)).sum();
        let asked = sum(&|worker| worker.counts.asked.load(Ordering::Relaxed));
        let loops = self.loops();
        if self.rps.load(Ordering::Relaxed) > 0 {
            let left = sum(&|worker| worker.requests.len());
            if answers != loops + left {
                return Err(Failure::Invariant(format!(
                    "{answers} requests were issued, {loops} done and {left} left over"
                )));
            }
            return Ok(());
        }
        let left: usize = self.groups.iter().map(|group| group.take_waiting().count()).sum();
        if asked != answers + left as u64 {
            return Err(Failure::Invariant(format!(
                "workers asked {asked} times, were answered {answers} times, and {left} still wait"
            )));
        }
        Ok(())
    }
}

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The message thread began to answer at this time, in nanoseconds.
    At(u64),
    /// There was work already.
    NotNeeded,
    /// There will be none: all threads are to leave.
    Leave,
}

/// Where a worker sits.
#[derive(Debug, Clone, Copy)]
pub struct Seat<'a> {
    /// Which of all threads it is.
    pub number: usize,
    pub group: &'a Group,
    /// Which of its group's workers it is.
    pub index: usize,
    pub worker: &'a Worker,
}

/// How long a trial takes.
#[derive(Debug, Clone, Copy)]
pub struct Durations {
    /// For which the work is done before it is measured.
    pub warmup: Duration,
    /// For which it is measured.
    pub runtime: Duration,
    /// The share of their time in percent for which all CPUs are to be busy.
    pub auto_rps: Option<f64>,
}

/// What was measured of all threads together.
#[derive(Debug)]
pub struct Measured {
    /// How long it was measured.
    pub seconds: f64,
    /// Requests that were done in that time.
    pub loops: u64,
    /// Requests per second, in each second of it.
    pub rates: Vec<f64>,
    /// Requests per second that were asked for in the end.
    pub goal: u64,
    /// Requests that were due and not issued, because too many waited.
    pub skipped: u64,
}

/// The ends of the seconds of which a time consists; of one piece if it is shorter.
fn seconds_of(start_ns: u64, time: Duration) -> impl Iterator<Item = u64> {
    let time_ns = time.as_nanos() as u64;
    let count = (time_ns + SECOND_NS / 2) / SECOND_NS;
    let count = if time_ns > 0 { count.max(1) } else { 0 };
    (1..=count).map(move |nth| start_ns + (time_ns as u128 * nth as u128 / count as u128) as u64)
}

/// Releases the workers of a message thread when that ends, and everybody if it ends before its time.
struct Leaving<'a> {
    stage: &'a Stage,
    group: &'a Group,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.stage.is_stopping() {
            self.stage.stop();
        }
        self.group.release();
    }
}
