//! What one thread does.

use super::queues::Queues;
use super::reads::Reads;
use super::ring::Ring;
use super::{Plan, Target};
use crate::Failure;
use crate::clock::{SECOND_NS, now_ns};
use crate::shared::Semantics;
use crate::sole_writer::add;
use rustix::io::Errno;
use rustix::io_uring::{IoringOp, io_uring_sqe, io_uring_user_data};
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
    let mut operations = Operations {
        queues: &mut ring.queues,
        plan,
        progress,
        measure_from_ns,
        queued: 0,
        in_flight: 0,
        tags_sent: 0,
        tags_back: 0,
        latency_ns: Histogram::reaching(SECOND_NS),
        fault: None,
    };
    match reads {
        None => operations.work(stop, do_nothing),
        Some(mut reads) => operations.work(stop, || reads.next()),
    }
    let Operations { in_flight, tags_sent, tags_back, latency_ns, fault, .. } = operations;
    if in_flight > 0 {
        ring.leave_buffers();
    }
    match fault {
        Some(fault) => Err(fault.explain(plan, target)),
        None if tags_sent != tags_back => Err(Failure::Invariant(format!(
            "the completions are not those of the operations: their tags add up to {tags_back} instead of {tags_sent}"
        ))),
        None => Ok(latency_ns),
    }
}

/// An operation that does nothing.
fn do_nothing() -> io_uring_sqe {
    io_uring_sqe { opcode: IoringOp::Nop, fd: -1, ..io_uring_sqe::default() }
}

/// Operations on their way: first queued, then in flight as the kernel has accepted them, then completed.
struct Operations<'a> {
    queues: &'a mut Queues,
    plan: &'a Plan,
    progress: &'a Progress,
    measure_from_ns: u64,
    queued: u32,
    in_flight: u32,
    /// Every operation carries a tag, and what comes back must add up to what went.
    tags_sent: u64,
    tags_back: u64,
    latency_ns: Histogram,
    fault: Option<Fault>,
}

/// What ends the work early.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The system call failed.
    Enter(Errno),
    /// An operation returned this.
    Result(i32),
    /// More completed than were in flight.
    TooMany,
}

impl Operations<'_> {
    /// The measured loop, and the end of what is then under way.
    fn work(&mut self, stop: &AtomicBool, mut operation: impl FnMut() -> io_uring_sqe) {
        let Plan { depth, submit, complete, .. } = *self.plan;
        loop {
            if self.queued == 0 {
                self.prepare(submit.min(depth - self.in_flight), &mut operation);
            }
            // As the original: wait only where another batch like this one would not fit.
            let fits = self.queued > 0 && self.in_flight + 2 * self.queued <= depth;
            self.enter(if fits { 0 } else { complete.min(self.in_flight + self.queued) });
            self.take();
            if stop.load(Ordering::Relaxed) || self.fault.is_some() {
                break;
            }
        }
        while self.queued + self.in_flight > 0
            && !matches!(self.fault, Some(Fault::Enter(_) | Fault::TooMany))
        {
            self.enter(1);
            self.take();
        }
    }

    #[inline]
    fn prepare(&mut self, count: u32, operation: &mut impl FnMut() -> io_uring_sqe) {
        // A tag is the time or the number of an operation.
        let (first, step) = match self.plan.latency {
            true => (now_ns(), 0),
            false => (self.progress.submitted.load(Ordering::Relaxed), 1),
        };
        let (mut tag, mut tags_sent) = (first, self.tags_sent);
        let tagged = || {
            let mut operation = operation();
            operation.user_data = io_uring_user_data::from_u64(tag);
            tags_sent = tags_sent.wrapping_add(tag);
            tag += step;
            operation
        };
        // SAFETY: what an operation uses lives in `Ring`, and outlives the operation: see the end of `until_stopped`.
        self.queued = unsafe { self.queues.push(count, tagged) };
        self.tags_sent = tags_sent;
    }

    #[inline]
    fn enter(&mut self, wait: u32) {
        let accepted = self.queues.enter(self.queued, wait);
        add(&self.progress.calls, 1);
        match accepted {
            Ok(accepted) => {
                self.queued -= accepted;
                self.in_flight += accepted;
                add(&self.progress.submitted, accepted.into());
            }
            Err(error) => self.not_entered(error),
        }
    }

    /// Where the kernel is short of something for now, it helps to wait for what is in flight.
    #[cold]
    fn not_entered(&mut self, error: Errno) {
        match error {
            Errno::INTR => {}
            Errno::AGAIN | Errno::BUSY if self.in_flight > 0 => {
                if let Err(error) = self.queues.enter(0, 1)
                    && error != Errno::INTR
                {
                    self.fault = Some(Fault::Enter(error));
                }
            }
            Errno::AGAIN => std::thread::yield_now(),
            error => self.fault = Some(Fault::Enter(error)),
        }
    }

    #[inline]
    fn take(&mut self) {
        let Operations { queues, plan, progress, measure_from_ns, tags_back, latency_ns, fault, .. } = self;
        let Plan { expected, latency, semantics, .. } = **plan;
        let now_ns = if latency { now_ns() } else { 0 };
        let mut sum = *tags_back;
        let count = queues.take(|tag, result| {
            sum = sum.wrapping_add(tag);
            if result != expected {
                let tolerated = semantics == Semantics::Original
                    && [Errno::IO, Errno::NODATA].iter().any(|error| -result == error.raw_os_error());
                add(&progress.errors, u64::from(tolerated));
                if !tolerated {
                    *fault = Some(Fault::Result(result));
                }
            }
            if latency && tag >= *measure_from_ns {
                latency_ns.record(now_ns.saturating_sub(tag));
            }
        });
        *tags_back = sum;
        add(&progress.completed, count.into());
        match self.in_flight.checked_sub(count) {
            Some(in_flight) => self.in_flight = in_flight,
            None => self.fault = Some(Fault::TooMany),
        }
    }
}

impl Fault {
    fn explain(self, plan: &Plan, target: &Target) -> Failure {
        let result = match self {
            Fault::Enter(error) => return Failure::Refused(format!("io_uring_enter failed: {error}")),
            Fault::TooMany => {
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
