//! What all threads of a trial share, and what workers and message threads do with each other.

use super::handoff::{Group, Worker};
use crate::clock::now_ns;
use crate::shared::Semantics;
use crate::sole_writer::add;
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

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

    /// Measures from now on, which is `start_ns`.
    pub fn measure_from(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Relaxed);
    }

    /// Measures no longer: it is `end_ns`.
    pub fn measure_until(&self, end_ns: u64) {
        self.end_ns.store(end_ns, Ordering::Relaxed);
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
    pub fn stop(&self) {
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
        add(&worker.counts.asked, 1);
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
        for worker in waiting {
            if self.pipe_bytes > 0 {
                worker.pipe.fill(1);
                now_ns = self.stamp_ns();
            }
            worker.answered_ns.store(now_ns, Ordering::Relaxed);
            add(&group.answers, 1);
            worker.post.post()?;
        }
        Ok(())
    }

    /// Gives `worker` a request that began at `start_ns`, and posts it.
    ///
    /// # Errors
    /// What the kernel answered to the futex call.
    pub fn issue(&self, group: &Group, worker: &Worker, start_ns: u64, now_ns: u64) -> Result<(), Errno> {
        add(&group.answers, 1);
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
