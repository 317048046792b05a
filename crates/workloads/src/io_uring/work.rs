//! What one thread does.

use super::reads::Reads;
use super::ring::Ring;
use super::{Plan, Target};
use crate::Failure;
use crate::clock::now_ns;
use crate::shared::Semantics;
use io_uring::squeue::Entry;
use io_uring::{CompletionQueue, EnterFlags, SubmissionQueue, Submitter, opcode};
use stats::Histogram;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far a thread has come. It alone writes, others may watch. Alone in its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    /// Operations that the kernel has accepted.
    pub submitted: AtomicU64,
    /// Operations that have completed.
    pub completed: AtomicU64,
    /// Entries into the kernel.
    pub calls: AtomicU64,
    /// Operations that failed with EIO or ENODATA.
    pub errors: AtomicU64,
}

/// Keeps operations in flight until `stop`, and then waits for those that are left. Returns the latencies of those that
/// were prepared at `measure_from_ns` or later, where the plan asks for them.
///
/// # Errors
/// When an operation fails, is lost or completes twice.
pub fn until_stopped(
    ring: &mut Ring,
    plan: &Plan,
    target: &Target,
    index: usize,
    (progress, stop): (&Progress, &AtomicBool),
    measure_from_ns: u64,
) -> Result<Histogram, Failure> {
    let reads = Reads::new(plan, ring, target, index)?;
    let (mut submitter, queue, completions) = ring.uring.split();
    if plan.registered_ring {
        // Older kernels have no such thing, and the ring works without.
        let _ = submitter.register_ring_fd();
    }
    let operations = Operations {
        submitter,
        queue,
        completions,
        plan,
        progress,
        measure_from_ns,
        queued: 0,
        books: Books { in_flight: 0, tags_sent: 0, tags_back: 0, latency_ns: Histogram::new(), fault: None },
    };
    let ended = match reads {
        None => operations.work(stop, || opcode::Nop::new().build()),
        Some(mut reads) => operations.work(stop, || reads.next()),
    };
    if ended.in_flight > 0 {
        ring.leave_buffers();
    }
    match ended.fault {
        Some(fault) => Err(fault.explain(plan, target)),
        None if ended.tags_sent != ended.tags_back => Err(Failure::Invariant(format!(
            "the completions are not those of the operations: their tags add up to {} instead of {}",
            ended.tags_back, ended.tags_sent
        ))),
        None => Ok(ended.latency_ns),
    }
}

/// Operations on their way: first queued, then in flight as the kernel has accepted them, then completed.
struct Operations<'a> {
    submitter: Submitter<'a>,
    queue: SubmissionQueue<'a>,
    completions: CompletionQueue<'a>,
    plan: &'a Plan,
    progress: &'a Progress,
    measure_from_ns: u64,
    queued: u32,
    books: Books,
}

/// What must add up at the end, and what is kept.
struct Books {
    in_flight: u32,
    /// Every operation carries a tag, and what comes back must add up to what went.
    tags_sent: u64,
    tags_back: u64,
    latency_ns: Histogram,
    fault: Option<Fault>,
}

/// What ends the work early.
enum Fault {
    /// The system call failed.
    Enter(io::Error),
    /// An operation returned this.
    Result(i32),
    /// There was no room for an operation that must have some, or more completed than were in flight.
    Count,
}

impl Operations<'_> {
    /// The measured loop, and the end of what is then under way.
    fn work(mut self, stop: &AtomicBool, mut entry: impl FnMut() -> Entry) -> Books {
        let Plan { depth, submit, complete, .. } = *self.plan;
        loop {
            if self.queued == 0 {
                self.prepare(submit.min(depth - self.books.in_flight), &mut entry);
            }
            // As the original: wait only where another batch like this one would not fit.
            let fits = self.queued > 0 && self.books.in_flight + 2 * self.queued <= depth;
            self.enter(if fits { 0 } else { complete.min(self.books.in_flight + self.queued) });
            self.reap();
            if stop.load(Ordering::Relaxed) || self.books.fault.is_some() {
                break;
            }
        }
        while self.queued + self.books.in_flight > 0
            && !matches!(self.books.fault, Some(Fault::Enter(_) | Fault::Count))
        {
            self.enter(1);
            self.reap();
        }
        self.books
    }

    fn prepare(&mut self, count: u32, entry: &mut impl FnMut() -> Entry) {
        // A tag is the time or the number of an operation.
        let (first, step) = match self.plan.latency {
            true => (now_ns(), 0),
            false => (self.progress.submitted.load(Ordering::Relaxed), 1),
        };
        // What the kernel has taken by now makes room.
        self.queue.sync();
        for nth in 0..u64::from(count) {
            let tag = first + nth * step;
            self.books.tags_sent = self.books.tags_sent.wrapping_add(tag);
            // SAFETY: what an operation uses lives in `Ring`, and outlives the operation: see the end of `until_stopped`.
            if unsafe { self.queue.push(&entry().user_data(tag)) }.is_err() {
                self.books.fault = Some(Fault::Count);
                return;
            }
        }
        self.queue.sync();
        self.queued = count;
    }

    fn enter(&mut self, wait: u32) {
        let flags = if wait > 0 { EnterFlags::GETEVENTS } else { EnterFlags::empty() };
        // SAFETY: the call takes no pointer.
        let accepted =
            unsafe { self.submitter.enter::<libc::sigset_t>(self.queued, wait, flags.bits(), None) };
        add(&self.progress.calls, 1);
        match accepted {
            Ok(accepted) => {
                self.queued -= accepted as u32;
                self.books.in_flight += accepted as u32;
                add(&self.progress.submitted, accepted as u64);
            }
            Err(error) => self.not_entered(error),
        }
    }

    /// Where the kernel is short of something for now, it helps to wait for what is in flight.
    #[cold]
    fn not_entered(&mut self, error: io::Error) {
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::EBUSY) if self.books.in_flight > 0 => {
                let flags = EnterFlags::GETEVENTS;
                // SAFETY: the call takes no pointer.
                let _ = unsafe { self.submitter.enter::<libc::sigset_t>(0, 1, flags.bits(), None) };
            }
            Some(libc::EAGAIN) => std::thread::yield_now(),
            _ => self.books.fault = Some(Fault::Enter(error)),
        }
    }

    fn reap(&mut self) {
        self.completions.sync();
        let now_ns = if self.plan.latency && !self.completions.is_empty() { now_ns() } else { 0 };
        let mut count = 0;
        for completion in &mut self.completions {
            let tag = completion.user_data();
            self.books.tags_back = self.books.tags_back.wrapping_add(tag);
            count += 1;
            if completion.result() != self.plan.expected {
                let tolerated = self.plan.semantics == Semantics::Original
                    && matches!(-completion.result(), libc::EIO | libc::ENODATA);
                add(&self.progress.errors, u64::from(tolerated));
                if !tolerated {
                    self.books.fault = Some(Fault::Result(completion.result()));
                }
            }
            if self.plan.latency && tag >= self.measure_from_ns {
                self.books.latency_ns.record(now_ns.saturating_sub(tag));
            }
        }
        self.completions.sync();
        add(&self.progress.completed, u64::from(count));
        match self.books.in_flight.checked_sub(count) {
            Some(in_flight) => self.books.in_flight = in_flight,
            None => self.books.fault = Some(Fault::Count),
        }
    }
}

/// Adds to a word that only this thread writes, which needs no locked instruction.
fn add(word: &AtomicU64, count: u64) {
    word.store(word.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

impl Fault {
    fn explain(self, plan: &Plan, target: &Target) -> Failure {
        let result = match self {
            Fault::Enter(error) => return Failure::Refused(format!("io_uring_enter failed: {error}")),
            Fault::Count => {
                return Failure::Invariant("the completions are more than the operations in flight".into());
            }
            Fault::Result(result) => result,
        };
        let Target::Readable { name, direct, .. } = target else {
            return Failure::Invariant(format!("an operation that does nothing returned {result}"));
        };
        if result >= 0 {
            return Failure::Invariant(format!(
                "a read of {name} returned {result} of {} bytes",
                plan.expected
            ));
        }
        let remedy = match -result {
            libc::EOPNOTSUPP if plan.polled => {
                "; it cannot be polled, which needs `direct`, and a device with polled queues (nvme.poll_queues, \
                 null_blk.poll_queues): set polled=off"
            }
            libc::EINVAL if *direct => {
                "; with `direct`, bs must be a multiple of the device's logical block, often 512 or 4096"
            }
            _ => "",
        };
        let error = io::Error::from_raw_os_error(-result);
        Failure::Refused(format!("a read of {name} failed: {error}{remedy}"))
    }
}
