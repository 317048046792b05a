//! Threads that work, and one that watches.

use super::ring::Ring;
use super::work::{Progress, until_stopped};
use super::{Plan, Target};
use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::{Failure, crew};
use stats::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How far all threads came in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that the kernel accepted.
    pub submitted: u64,
    /// Operations that completed.
    pub completed: u64,
    /// Entries into the kernel.
    pub calls: u64,
    /// Operations that failed with EIO or ENODATA.
    pub errors: u64,
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// How far the threads came.
    pub whole: Counts,
    /// In this time.
    pub time_s: f64,
    /// The same for each second of it, with its length; the only one may be shorter.
    pub seconds: Vec<(Counts, f64)>,
    /// From the submission to the completion of each operation, where asked for.
    pub latency_ns: Histogram,
    /// What is to be said about the rings.
    pub notes: Vec<String>,
}

/// Lets all threads work for the time of the plan.
///
/// # Errors
/// The first failure of a thread, which ends the work of all.
pub fn run(plan: &Plan, target: &Target) -> Result<Measured, Failure> {
    let progress: Vec<Progress> = (0..plan.threads).map(|_| Progress::default()).collect();
    let stop = AtomicBool::new(false);
    let watcher = thread::current();
    let (mut measured, threads) = crew::run(
        plan.threads,
        |index, gate| {
            // A ring belongs to the thread that makes it.
            let ring = Ring::new(plan, target);
            let progress = progress.get(index);
            let opened = gate.wait();
            let worked = ring.and_then(|mut ring| match progress {
                Some(progress) if opened => {
                    let measure_from_ns = now_ns() + plan.warmup.as_nanos() as u64;
                    let latency_ns =
                        until_stopped(&mut ring, plan, target, index, (progress, &stop), measure_from_ns)?;
                    Ok((latency_ns, ring.notes))
                }
                _ => Ok((Histogram::new(), Vec::new())),
            });
            if worked.is_err() {
                stop.store(true, Ordering::Relaxed);
                watcher.unpark();
            }
            worked
        },
        |gate| {
            gate.open();
            let watched = watch(plan, &progress, &stop);
            stop.store(true, Ordering::Relaxed);
            watched
        },
    )?;
    for thread in threads {
        let (latency_ns, notes) = thread?;
        measured.latency_ns.merge(&latency_ns);
        // Those of one thread are those of all, mostly.
        measured.notes.extend(notes);
    }
    measured.notes.sort();
    measured.notes.dedup();
    let counts = sum(&progress);
    if counts.submitted != counts.completed {
        return Err(Failure::Invariant(format!(
            "{} operations were submitted and {} completed",
            counts.submitted, counts.completed
        )));
    }
    Ok(measured)
}

/// Does one batch, to see whether it can be done at all.
///
/// # Errors
/// Why it cannot.
pub fn try_out(plan: &Plan, target: &Target) -> Result<(), Failure> {
    let mut ring = Ring::new(plan, target)?;
    let nothing_more = (&Progress::default(), &AtomicBool::new(true));
    until_stopped(&mut ring, plan, target, 0, nothing_more, 0).map(drop)
}

/// Sees how far the threads come, second by second.
fn watch(plan: &Plan, progress: &[Progress], stop: &AtomicBool) -> Measured {
    let mut deadline_ns = now_ns() + plan.warmup.as_nanos() as u64;
    sleep_until(deadline_ns, stop);
    let first = (sum(progress), now_ns());
    let end_ns = first.1 + plan.runtime.as_nanos() as u64;
    let (mut last, mut seconds) = (first, Vec::new());
    deadline_ns = first.1;
    while deadline_ns < end_ns && !stop.load(Ordering::Relaxed) {
        // A rest of less than a second belongs to the second before it.
        deadline_ns = if end_ns - deadline_ns < 2 * SECOND_NS { end_ns } else { deadline_ns + SECOND_NS };
        sleep_until(deadline_ns, stop);
        let now = (sum(progress), now_ns());
        seconds.push((now.0.since(&last.0), seconds_between(last.1, now.1)));
        last = now;
    }
    Measured {
        whole: last.0.since(&first.0),
        time_s: seconds_between(first.1, last.1),
        seconds,
        latency_ns: Histogram::new(),
        notes: Vec::new(),
    }
}

/// Sleeps until then, or until a thread has given up.
fn sleep_until(deadline_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left_ns = deadline_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            break;
        }
        thread::park_timeout(Duration::from_nanos(left_ns));
    }
}

fn sum(progress: &[Progress]) -> Counts {
    let mut counts = Counts::default();
    for thread in progress {
        counts.submitted += thread.submitted.load(Ordering::Relaxed);
        counts.completed += thread.completed.load(Ordering::Relaxed);
        counts.calls += thread.calls.load(Ordering::Relaxed);
        counts.errors += thread.errors.load(Ordering::Relaxed);
    }
    counts
}

impl Counts {
    fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            submitted: self.submitted - earlier.submitted,
            completed: self.completed - earlier.completed,
            calls: self.calls - earlier.calls,
            errors: self.errors - earlier.errors,
        }
    }
}
