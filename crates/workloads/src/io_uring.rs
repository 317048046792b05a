//! io-uring: how many I/O operations per second threads get through rings of their own.

mod conduct;
mod description;
mod queues;
mod reads;
mod ring;
mod target;
#[cfg(test)]
mod tests;
mod work;

use crate::shared::{Semantics, memory_for, room_for, semantics, warmup};
use crate::{Failure, Original, Trial, Workload, originals};
use conduct::Measured;
pub use description::PERCENTILES;
use description::{description, metrics};
use experiment::{Description, Params};
use std::collections::BTreeMap;
use std::time::Duration;
pub use target::Target;

/// What does the same work where it is installed.
const ORIGINALS: &[Original] = &[Original::FIO];

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct IoUring;

impl Workload for IoUring {
    fn describe(&self) -> Description {
        description()
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let description = self.describe();
        let Ok(params) = description.params(set) else { return description };
        let moves = params.text("target").is_ok_and(|target| target != target::NOP);
        let latency = params.flag("latency").unwrap_or_default();
        Description { metrics: metrics(moves, latency), ..description }
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        originals::check(params, self.originals())?;
        let plan = Plan::new(params, trial)?;
        let target = Target::open(&plan.target, Some(plan.bs))?;
        match originals::wanted(params, self.originals())? {
            Some(_) => originals::fio::check(&plan),
            None => {
                // One batch shows whether the ring, its buffers and the target can be had as asked.
                conduct::try_out(&plan, &target)?;
                plan.make_room()
            }
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        let target = Target::open(&plan.target, None)?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::fio::run(&plan, &target, trial);
        }
        plan.make_room()?;
        let measured = conduct::run(&plan, &target)?;
        plan.report(&measured, trial)
    }
}

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads, each with a ring.
    pub threads: usize,
    /// What is read.
    pub target: target::Wanted,
    /// Operations in flight per thread.
    pub depth: u32,
    /// Operations per submission.
    pub submit: u32,
    /// Completions to wait for.
    pub complete: u32,
    /// Bytes per read.
    pub bs: u32,
    /// Random blocks instead of one after the other.
    pub random: bool,
    /// IORING_SETUP_IOPOLL.
    pub polled: bool,
    /// Registered buffers.
    pub fixed_buffers: bool,
    /// Registered files.
    pub registered_files: bool,
    /// A registered ring.
    pub registered_ring: bool,
    /// Whether the latency of every operation is taken.
    pub latency: bool,
    /// How long is measured.
    pub runtime: Duration,
    /// How long the work is done before.
    pub warmup: Duration,
    /// Which traits of the original are kept.
    pub semantics: Semantics,
    /// The seed of the random blocks.
    pub seed: u64,
    /// What every operation returns: the bytes of a read, and nothing for one that does nothing; another number only
    /// in tests that break the work.
    expected: i32,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let [depth, submit, complete, bs] =
            ["depth", "submit", "complete", "bs"].map(|name| params.count(name).map(|count| count as u32));
        let (depth, bs) = (depth?, bs?);
        let target = target::Wanted::new(params)?;
        let fixed_buffers = params.flag("fixed-buffers")?;
        if fixed_buffers && depth > ring::MOST_BUFFERS {
            return Err(Failure::Refused(format!(
                "the kernel registers no more than {} buffers; take a smaller depth or fixed-buffers=off",
                ring::MOST_BUFFERS
            )));
        }
        Ok(Plan {
            threads: trial.count()? as usize,
            depth,
            submit: submit?,
            complete: complete?,
            bs,
            random: params.flag("random")?,
            polled: params.flag("polled")?,
            fixed_buffers,
            registered_files: params.flag("registered-files")?,
            registered_ring: params.flag("registered-ring")?,
            latency: params.flag("latency")?,
            runtime: Duration::from_secs_f64(params.decimal("runtime")?),
            warmup: warmup(params)?,
            semantics: semantics(params)?,
            seed: trial.seed(),
            expected: if target.is_nop() { 0 } else { bs as i32 },
            target,
        })
    }

    /// Makes sure that threads, rings and buffers fit into every limit.
    fn make_room(&self) -> Result<(), Failure> {
        let threads = self.threads as u64;
        room_for(threads, 0, 2 * threads + 8)?;
        let bytes = if self.target.is_nop() { 0 } else { threads.saturating_mul(ring::buffer_bytes(self)) };
        memory_for(bytes, "the buffers of all threads", "fewer threads, or a smaller depth or bs")
    }

    fn report(&self, measured: &Measured, trial: &mut Trial) -> Result<(), Failure> {
        let counts = |counts: &conduct::Counts| match self.semantics {
            Semantics::Original => counts.submitted - counts.errors,
            Semantics::Strict => counts.completed,
        };
        let whole = &measured.whole;
        let iops = counts(whole) as f64 / measured.time_s;
        trial.sample("iops", iops)?;
        trial.sample("ios-per-call", counts(whole) as f64 / whole.calls.max(1) as f64)?;
        let seconds = measured.seconds.iter().map(|(second, time_s)| counts(second) as f64 / time_s);
        trial.sample("best-second", seconds.fold(0.0, f64::max))?;
        if !self.target.is_nop() {
            trial.sample("bandwidth", iops * f64::from(self.bs) / f64::from(1 << 20))?;
        }
        if self.latency {
            trial.histogram("latency", &measured.latency_ns)?;
            for (name, percent) in PERCENTILES {
                let latency_ns = measured.latency_ns.percentile(percent).ok_or_else(|| {
                    Failure::Invariant(
                        "no operation was both begun and completed while it was measured".into(),
                    )
                })?;
                trial.sample(name, latency_ns as f64 / 1e3)?;
            }
        }
        trial.counter("submitted", whole.submitted as f64);
        trial.counter("completed", whole.completed as f64);
        trial.counter("calls", whole.calls as f64);
        trial.counter("submitted per second", whole.submitted as f64 / measured.time_s);
        trial.counter("completed per second", whole.completed as f64 / measured.time_s);
        if whole.errors > 0 {
            trial.counter("io errors", whole.errors as f64);
            trial.note(
                "some reads failed with EIO or ENODATA and are not counted; semantics=strict fails instead",
            );
        }
        for note in &measured.notes {
            trial.note(note.clone());
        }
        Ok(())
    }
}
