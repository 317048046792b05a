//! What is done for a request, and by whom.

use crate::clock::{SECOND_NS, now_ns};
use crate::schbench::conduct::Measured;
use crate::schbench::cpu_locks::{CpuLocks, Locked};
use crate::schbench::handoff::Group;
use crate::schbench::latencies::Latencies;
use crate::schbench::matrices::Matrices;
use crate::schbench::places::Places;
use crate::schbench::stage::{Answer, Seat, Shape, Stage};
use crate::schbench::{broken, durations, first_rps, merge, sched_delay};
use crate::shared::{Semantics, memory_for, semantics};
use crate::slice::{self, Own, Protocol, Slicing, Used};
use crate::sole_writer::add;
use crate::{Failure, Trial};
use experiment::Params;
use rustix::io::Errno;
use std::hint::spin_loop;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// A worker is given no further request when more than so many wait for it.
const QUEUE: u64 = 128;
/// What a message thread sleeps instead.
const REST: Duration = Duration::from_micros(100);

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    pub semantics: Semantics,
    pub shape: Shape,
    sleep: Duration,
    work: Work,
    locking: bool,
    calibrate: bool,
    /// When workers ask for more time, where they do.
    slice: Option<Protocol>,
    places: Places,
    cpus: Vec<u32>,
}

/// The matrices of a request, and how often they are multiplied.
#[derive(Debug, Clone, Copy)]
struct Work {
    own_bytes: u64,
    own_operations: u64,
    common_bytes: u64,
    common_operations: u64,
    touch: bool,
}

impl Plan {
    pub fn new(params: &Params, slicing: &Slicing, trial: &Trial) -> Result<Plan, Failure> {
        let semantics = semantics(params)?;
        let message_threads = params.count("message-threads")? as usize;
        let shape = Shape {
            message_threads,
            workers: trial.count()? as usize,
            queue: QUEUE,
            pipe_bytes: params.count("pipe")? as usize,
            rps: first_rps(params)?,
        };
        let durations = durations(params)?;
        if semantics == Semantics::Original
            && durations.warmup.is_zero()
            && durations.runtime < Duration::from_millis(1500)
            && shape.pipe_bytes == 0
        {
            return Err(Failure::Refused(
                "the original notes a first second of 0 requests, which is the median of so short a run; take runtime=2, \
                 a `warmup`, or semantics=strict"
                    .into(),
            ));
        }
        let (bytes, operations) = (params.count("cache-footprint-kb")? * 1024, params.count("operations")?);
        let split = params.count("split")?;
        let own = |whole: u64| whole * split / 100;
        let calibrate = params.flag("calibrate")?;
        let locking = params.flag("locking")? && !calibrate;
        if slicing.asked_protocol().is_some() && (!locking || shape.pipe_bytes > 0) {
            return Err(Failure::Refused(
                "slice is for workers that hold a lock, and these take none; leave out `slice`, or `locking=off`, `calibrate` \
                 and `pipe`"
                    .into(),
            ));
        }
        Ok(Plan {
            semantics,
            shape,
            sleep: Duration::from_micros(params.count("sleep-us")?),
            work: Work {
                own_bytes: own(bytes),
                own_operations: own(operations),
                common_bytes: bytes - own(bytes),
                common_operations: operations - own(operations),
                touch: params.flag("touch")? || semantics == Semantics::Strict,
            },
            locking,
            calibrate,
            slice: slicing.protocol(),
            places: Places::new(
                params.text("message-cpus")?,
                params.text("worker-cpus")?,
                message_threads,
                trial.cpus(),
                semantics,
            )?,
            cpus: trial.cpus().to_vec(),
        })
    }

    /// Whether a request neither sleeps nor works.
    pub fn is_nothing(&self) -> bool {
        self.sleep.is_zero() && self.work.own_operations + self.work.common_operations == 0
    }

    /// Makes sure of the memory for the matrices. Of those that are not touched only the product takes any.
    pub fn make_room(&self) -> Result<(), Failure> {
        let Work { own_bytes, common_bytes, touch, .. } = self.work;
        let bytes = self.shape.all_workers().saturating_mul(own_bytes).saturating_add(common_bytes);
        let bytes = if touch { bytes } else { bytes / 3 };
        memory_for(bytes, "the matrices of all workers", "a smaller cache-footprint-kb or fewer workers")
    }

    pub fn run(&self, params: &Params) -> Result<Done, Failure> {
        let stage = Stage::new(self.semantics, self.shape);
        let locks = self.locking.then(|| CpuLocks::new(&self.cpus, self.semantics));
        let common = Matrices::new(self.work.common_bytes, self.work.touch)?;
        let message_delays_us = Mutex::new(Vec::new());
        let (measured, workers) = stage.perform(
            durations(params)?,
            |nth| self.places.pin_message_thread(nth),
            |_, group| {
                match self.shape.rps {
                    0 => answer(&stage, group),
                    _ => issue(&stage, group),
                }
                .map_err(broken)?;
                message_delays_us.lock().unwrap_or_else(PoisonError::into_inner).push(sched_delay::own_us());
                Ok(())
            },
            || {
                self.places.pin_worker()?;
                if self.slice.is_some() {
                    slice::of_this_thread(|own| own.map(|_| ()))?;
                }
                Matrices::new(self.work.own_bytes, self.work.touch)
            },
            |seat, matrices| {
                let serve =
                    |own: Option<&Own>| self.serve(&stage, seat, &matrices, &common, locks.as_ref(), own);
                match self.slice {
                    None => serve(None),
                    Some(_) => slice::of_this_thread(|own| serve(Some(own?))),
                }
            },
        )?;
        if self.work.common_operations > 0 && self.shape.pipe_bytes == 0 && stage.loops() > 0 {
            common.check()?;
        }
        Ok(Done {
            wakeups: merge(workers.iter().map(|worker| &worker.wakeups)),
            requests: merge(workers.iter().map(|worker| &worker.requests)),
            cut_off: workers.iter().map(|worker| worker.cut_off).sum(),
            slices: workers.iter().map(|worker| worker.slices).sum(),
            message_delay_us: sched_delay::mean_of_threads(
                message_delays_us.into_inner().unwrap_or_else(PoisonError::into_inner),
            ),
            worker_delay_us: sched_delay::mean_of_threads(workers.iter().map(|worker| worker.delay_us)),
            all_loops: stage.loops(),
            measured,
        })
    }

    /// What a worker does. `matrices` are its own, and `own` is how it asks for more time, if it does.
    fn serve(
        &self,
        stage: &Stage,
        seat: Seat<'_>,
        matrices: &Matrices,
        common: &Matrices,
        locks: Option<&CpuLocks>,
        own: Option<&Own>,
    ) -> Result<Served, Failure> {
        let counts = &seat.worker.counts;
        let mut served = Served::default();
        let mut starts_ns = Vec::with_capacity(QUEUE as usize + 2);
        while !stage.is_stopping() {
            let answer = stage.ask(seat).map_err(broken)?;
            if let Answer::At(answered_ns) = answer {
                let now_ns = stage.stamp_ns();
                if stage.counts(answered_ns, now_ns) {
                    served.wakeups.record(self.semantics, answered_ns, now_ns);
                }
            }
            starts_ns.clear();
            match answer {
                _ if self.shape.rps > 0 => seat.worker.requests.take(&mut starts_ns),
                Answer::Leave => {}
                Answer::At(_) | Answer::NotNeeded => starts_ns.push(0),
            }
            for issued_ns in &starts_ns {
                if self.shape.rps > 0 && stage.is_stopping() {
                    add(&counts.given_up, 1);
                    continue;
                }
                let mut began_ns = stage.stamp_ns();
                let mut done = true;
                if self.shape.pipe_bytes == 0 {
                    if !self.sleep.is_zero() {
                        sleep(self.sleep);
                    }
                    if self.calibrate {
                        began_ns = stage.stamp_ns();
                    } else if self.semantics == Semantics::Strict && *issued_ns > 0 {
                        began_ns = *issued_ns;
                    }
                    let multiply = || self.multiply(stage, matrices, common, locks, own);
                    done = match own {
                        None => multiply()?,
                        Some(own) => own.during(multiply)?,
                    };
                }
                let ended_ns = stage.stamp_ns();
                add(if done { &counts.loops } else { &counts.given_up }, 1);
                if stage.counts(began_ns, ended_ns) && (done || self.semantics == Semantics::Strict) {
                    served.requests.record(self.semantics, began_ns, ended_ns);
                    served.cut_off += u64::from(!done);
                }
            }
        }
        if self.work.own_operations > 0 && counts.loops.load(Relaxed) > 0 && self.shape.pipe_bytes == 0 {
            matrices.check()?;
        }
        let slices = own.map_or(Used::default(), |own| own.used(0));
        Ok(Served { delay_us: sched_delay::own_us(), slices, ..served })
    }

    /// The work of a request, with the lock of the CPU held. False if all threads are to leave before that is free: with
    /// many threads on few CPUs the last would get it after minutes.
    fn multiply(
        &self,
        stage: &Stage,
        matrices: &Matrices,
        common: &Matrices,
        locks: Option<&CpuLocks>,
        own: Option<&Own>,
    ) -> Result<bool, Failure> {
        let pause = || match own.filter(|_| self.slice == Some(Protocol::Try)) {
            Some(own) => own.waiting(spin_loop),
            None => spin_loop(),
        };
        let _locked: Option<Locked<'_>> = match locks {
            None => None,
            Some(locks) => match locks.lock(|| stage.is_stopping(), pause)? {
                None => return Ok(false),
                locked => locked,
            },
        };
        for _ in 0..self.work.own_operations {
            matrices.multiply();
        }
        for _ in 0..self.work.common_operations {
            common.multiply();
        }
        Ok(true)
    }
}

/// What a message thread does: all who wait are answered, and then it waits until somebody asks.
fn answer(stage: &Stage, group: &Group) -> Result<(), Errno> {
    loop {
        group.post.block();
        stage.answer_all(group)?;
        if stage.is_stopping() {
            // Whoever asked before seeing that.
            return stage.answer_all(group);
        }
        group.post.wait()?;
    }
}

/// What a message thread does that issues requests: those of a second to its workers in turn, as fast as it can.
fn issue(stage: &Stage, group: &Group) -> Result<(), Errno> {
    let mut workers = group.workers.iter().cycle();
    let mut due_ns = now_ns();
    while !stage.is_stopping() {
        let began_ns = now_ns();
        let late_ns = match stage.semantics {
            Semantics::Original => 0,
            // A request begins when it is due, also if its message thread comes late.
            Semantics::Strict => began_ns.saturating_sub(due_ns),
        };
        for worker in workers.by_ref().take(stage.rps.load(Relaxed) as usize) {
            if stage.is_stopping() {
                return Ok(());
            }
            let now_ns = stage.stamp_ns();
            if worker.requests.len() > QUEUE {
                add(&group.skipped, 1);
                sleep(REST);
            } else {
                stage.issue(group, worker, now_ns - late_ns, now_ns)?;
            }
        }
        due_ns = match stage.semantics {
            Semantics::Original => began_ns + SECOND_NS,
            Semantics::Strict => due_ns + SECOND_NS,
        };
        stage.rest_until(due_ns);
    }
    Ok(())
}

/// What a worker leaves behind.
#[derive(Default)]
struct Served {
    wakeups: Latencies,
    requests: Latencies,
    cut_off: u64,
    delay_us: Option<f64>,
    slices: Used,
}

/// What all threads leave behind.
pub struct Done {
    pub wakeups: Latencies,
    pub requests: Latencies,
    /// Latencies among them of requests that were given up when all threads were to leave.
    pub cut_off: u64,
    /// What became of the workers' requests for more time.
    pub slices: Used,
    pub message_delay_us: Option<f64>,
    pub worker_delay_us: Option<f64>,
    /// Requests since the start.
    pub all_loops: u64,
    pub measured: Measured,
}
