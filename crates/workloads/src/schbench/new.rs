//! schbench: workers that sleep, multiply matrices and ask for the next request; how many they do and how long they wait.

use super::cpu_locks::CpuLocks;
use super::handoff::Group;
use super::latencies::{Figure, Latencies, What, metrics};
use super::matrices::Matrices;
use super::places::Places;
use super::stage::{Answer, Measured, Seat, Shape, Stage};
use super::{
    ORIGINALS, axis, broken, durations, first_rps, merge, parameters, pipe_metrics, rps_metric, sched_delay,
};
use crate::clock::now_ns;
use crate::shared::{Semantics, room_for, semantics, with_shared};
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Direction, Metric, Parameter, Params, Statistic};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Schbench;

/// What is printed of wake-up and of request latencies. The first is judged.
pub const FIGURES: [Figure; 6] = [
    Figure::percentile("p99", 99.0),
    Figure::percentile("p50", 50.0),
    Figure::percentile("p90", 90.0),
    Figure::percentile("p99.9", 99.9),
    Figure::LEAST,
    Figure::MOST,
];

pub const WAKEUP: &str = "wakeup-";
pub const REQUEST: &str = "request-";

/// What is printed of the requests per second, by metric. The first is judged.
pub const RPS_FIGURES: [(&str, What); 5] = [
    ("rps", What::Percentile(50.0)),
    ("rps-p20", What::Percentile(20.0)),
    ("rps-p90", What::Percentile(90.0)),
    ("rps-min", What::Least),
    ("rps-max", What::Most),
];

/// A worker is given no further request when more than so many wait for it.
const QUEUE: u64 = 128;
/// What a message thread sleeps instead.
const REST: Duration = Duration::from_micros(100);
const SECOND_NS: u64 = 1_000_000_000;

impl Workload for Schbench {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        Description {
            name: "schbench".into(),
            summary: "requests per second, wake-up and request latency of workers that message threads wake".into(),
            about: "Each of `message-threads` message threads has as many workers as the point says. A worker \
                    puts itself on its message thread's list, posts it and waits on a futex of its own; the \
                    message thread takes the list, reads the clock once and wakes all who are on it, the last \
                    first. The worker then does one request: it sleeps for `sleep-us`, takes the spin lock of the \
                    CPU that it is on, and multiplies matrices `operations` times. So whoever is preempted in the \
                    middle makes the next on that CPU spin.\n\n\
                    The wake-up latency is from that reading of the clock to the first of the woken worker. The \
                    request latency is from before the sleep to the end of the work. Requests per second are \
                    counted anew each second; the metric is the median of these.\n\n\
                    With `rps` the message threads issue requests of their own accord, a second's worth at its \
                    beginning. With `pipe` there are no requests: both sides write so many bytes for each \
                    other.\n\n\
                    The first `warmup` seconds are not measured. `runtime` is what comes behind them, and the \
                    percentiles are over all of it."
                .into(),
            source: "schbench 24e32b8 of 2025-12-23, whose own default is one message thread. With original \
                     semantics the clock reads whole microseconds, latencies of 0 us are left out and those that \
                     end while all threads leave are counted, the factors of the product are never written, and \
                     the average counts all requests over the nominal time. With strict semantics the clock reads \
                     nanoseconds, a latency counts if it began in the time that is measured, with `rps` a \
                     request's latency is from when it was to be issued, every matrix is written first, and the \
                     locks lie on cache lines of their own."
                .into(),
            axis: axis(),
            parameters: own_parameters(),
            metrics: own_metrics(set),
            requirements: vec![
                "message-threads x (workers + 1) threads".into(),
                "a schbench of 2023-04 or later on PATH for `via`".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        match originals::wanted(params, ORIGINALS)? {
            Some(original) => {
                originals::schbench::new_arguments(params, trial)?;
                original.find().map(drop)
            }
            None => room_for(plan.shape.threads(), 0, 0),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        if originals::wanted(params, ORIGINALS)?.is_some() {
            return originals::schbench::run_new(params, trial);
        }
        room_for(plan.shape.threads(), 0, 0)?;
        let done = plan.run(params)?;
        done.leave(&plan, params, trial)
    }
}

fn own_parameters() -> Vec<Parameter> {
    let mut own = parameters(30.0);
    own.extend([
        Parameter::integer(
            "cache-footprint-kb",
            256,
            0,
            1 << 30,
            "KiB that the three matrices of a worker take together",
        ),
        Parameter::integer("operations", 5, 0, 1_000_000_000, "how often a request multiplies the matrices"),
        Parameter::integer("sleep-us", 100, 0, 3_600_000_000, "microseconds that a request sleeps first"),
        Parameter::flag("locking", true, "take the spin lock of the CPU for the multiplications"),
        Parameter::flag(
            "calibrate",
            false,
            "take no lock, and leave the sleep out of the request latency: how long is the work alone?",
        ),
        Parameter::integer(
            "split",
            100,
            0,
            100,
            "percent of footprint and operations that are a worker's own; the rest of the matrices is one for all \
             workers, who write it at once",
        ),
        Parameter::flag(
            "touch",
            false,
            "write the matrices first; strict semantics do so in any case. Otherwise two of three are the \
             kernel's page of zeros and take no room in the caches",
        ),
        Parameter::text(
            "message-cpus",
            "",
            "CPUs such as 0-3,8 on which message threads run, one on each; `auto`: on the first ones, and the \
             workers on the others",
        ),
        Parameter::text("worker-cpus", "", "CPUs on which workers run, or `auto`"),
    ]);
    with_shared(own, ORIGINALS)
}

fn own_metrics(set: &BTreeMap<String, String>) -> Vec<Metric> {
    let wakeup = metrics(
        &FIGURES,
        WAKEUP,
        "new-schbench-wakeup-latency",
        "from when a message thread began to wake its workers until the worker ran",
    );
    if super::has(set, "pipe") {
        let [transfers, bandwidth] = pipe_metrics();
        return [vec![transfers], wakeup, vec![bandwidth]].concat();
    }
    let request = metrics(
        &FIGURES,
        REQUEST,
        "new-schbench-request-latency",
        "from before the sleep of a request to the end of its work",
    );
    let test = "new-schbench-requests-per-second";
    let rps =
        rps_metric("rps", "requests of all workers in a second: the median of all seconds").titled(test);
    let more = [
        ("rps-p20", "requests in a second: what 20 % of the seconds do not exceed"),
        ("rps-p90", "requests in a second: what 90 % of the seconds do not exceed"),
        ("rps-min", "requests in the slowest second"),
        ("rps-max", "requests in the fastest second"),
        ("rps-average", "requests over the whole time"),
    ];
    let mut all = vec![rps];
    all.extend(wakeup);
    // As in `Done::leave`.
    let is = |name: &str, value: &str| set.get(name).is_some_and(|set| set == value);
    if !(is("operations", "0") && is("sleep-us", "0")) || is("semantics", "strict") {
        all.extend(request);
    }
    all.extend(more.map(|(name, help)| rps_metric(name, help).titled(test).secondary()));
    if super::has(set, "auto-rps") {
        all.push(
            rps_metric("rps-goal", "requests per second that were asked for in the end")
                .titled(test)
                .secondary(),
        );
    }
    let delays = [("message-delay", "message threads"), ("worker-delay", "workers")];
    all.extend(delays.map(|(name, whose)| {
        let help =
            format!("how long {whose} were ready to run before they ran, by the kernel's count: the mean");
        Metric::new(name, "us", Direction::Lower, "scheduling delay in us", &help)
            .by(Statistic::Median)
            .secondary()
    }));
    all
}

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
struct Plan {
    semantics: Semantics,
    shape: Shape,
    sleep: Duration,
    work: Work,
    locking: bool,
    calibrate: bool,
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
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
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
        let own = |whole: u64| whole * params.count("split").unwrap_or(100) / 100;
        let calibrate = params.flag("calibrate")?;
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
            locking: params.flag("locking")? && !calibrate,
            calibrate,
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
    fn is_nothing(&self) -> bool {
        self.sleep.is_zero() && self.work.own_operations + self.work.common_operations == 0
    }

    fn run(&self, params: &Params) -> Result<Done, Failure> {
        let stage = Stage::new(self.semantics, self.shape);
        let locks = self.locking.then(|| CpuLocks::new(&self.cpus, self.semantics));
        let common = Arc::new(Matrices::new(self.work.common_bytes, self.work.touch));
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
                Ok(Matrices::new(self.work.own_bytes, self.work.touch))
            },
            |seat, own| self.serve(&stage, seat, own, &common, locks.as_ref()),
        )?;
        if self.work.common_operations > 0 && self.shape.pipe_bytes == 0 {
            common.check()?;
        }
        Ok(Done {
            wakeups: merge(workers.iter().map(|worker| &worker.wakeups)),
            requests: merge(workers.iter().map(|worker| &worker.requests)),
            message_delay_us: sched_delay::mean_of_threads(
                message_delays_us.into_inner().unwrap_or_else(PoisonError::into_inner),
            ),
            worker_delay_us: sched_delay::mean_of_threads(workers.iter().map(|worker| worker.delay_us)),
            all_loops: stage.loops(),
            measured,
        })
    }

    /// What a worker does.
    fn serve(
        &self,
        stage: &Stage,
        seat: Seat<'_>,
        own: Matrices,
        common: &Matrices,
        locks: Option<&CpuLocks>,
    ) -> Result<Served, Failure> {
        let counts = &seat.worker.counts;
        let (mut wakeups, mut requests) = (Latencies::new(), Latencies::new());
        let mut starts_ns = Vec::with_capacity(QUEUE as usize + 2);
        while !stage.is_stopping() {
            let answer = stage.ask(seat).map_err(broken)?;
            if let Answer::At(answered_ns) = answer {
                let now_ns = stage.stamp_ns();
                if stage.counts(answered_ns, now_ns) {
                    wakeups.record(self.semantics, answered_ns, now_ns);
                }
            }
            starts_ns.clear();
            match answer {
                _ if self.shape.rps > 0 => seat.worker.requests.take(&mut starts_ns),
                Answer::Leave => {}
                Answer::At(_) | Answer::NotNeeded => starts_ns.push(0),
            }
            for issued_ns in &starts_ns {
                let mut began_ns = stage.stamp_ns();
                if self.shape.pipe_bytes == 0 {
                    if !self.sleep.is_zero() {
                        sleep(self.sleep);
                    }
                    if self.calibrate {
                        began_ns = stage.stamp_ns();
                    } else if self.semantics == Semantics::Strict && *issued_ns > 0 {
                        began_ns = *issued_ns;
                    }
                    let locked = locks.map(CpuLocks::lock).transpose()?;
                    for _ in 0..self.work.own_operations {
                        own.multiply();
                    }
                    for _ in 0..self.work.common_operations {
                        common.multiply();
                    }
                    drop(locked);
                }
                let ended_ns = stage.stamp_ns();
                counts.loops.store(counts.loops.load(Relaxed) + 1, Relaxed);
                if stage.counts(began_ns, ended_ns) {
                    requests.record(self.semantics, began_ns, ended_ns);
                }
            }
        }
        if self.work.own_operations > 0 && counts.loops.load(Relaxed) > 0 && self.shape.pipe_bytes == 0 {
            own.check()?;
        }
        Ok(Served { wakeups, requests, delay_us: sched_delay::own_us() })
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
                group.skipped.store(group.skipped.load(Relaxed) + 1, Relaxed);
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
struct Served {
    wakeups: Latencies,
    requests: Latencies,
    delay_us: Option<f64>,
}

/// What all threads leave behind.
struct Done {
    wakeups: Latencies,
    requests: Latencies,
    message_delay_us: Option<f64>,
    worker_delay_us: Option<f64>,
    /// Requests since the start.
    all_loops: u64,
    measured: Measured,
}

impl Done {
    fn leave(&self, plan: &Plan, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let Done { wakeups, requests, measured, .. } = self;
        if wakeups.histogram.is_empty() && wakeups.zeros == 0 {
            return Err(super::nothing_measured());
        }
        wakeups.leave(&FIGURES, WAKEUP, plan.semantics, trial)?;
        super::leave_counts(measured, wakeups.zeros + requests.zeros, trial);
        if plan.shape.pipe_bytes > 0 {
            return super::leave_pipe(&plan.shape, measured, trial);
        }
        // With original semantics requests of nothing take 0 us, which are left out, unless they were interrupted.
        if !plan.is_nothing() || plan.semantics == Semantics::Strict {
            requests.leave(&FIGURES, REQUEST, plan.semantics, trial)?;
        }
        let mut rates = measured.rates.clone();
        rates.sort_by(f64::total_cmp);
        let whole = |rate: f64| if plan.semantics == Semantics::Original { rate.floor() } else { rate };
        for (name, what) in RPS_FIGURES {
            let rate = of_ascending(&rates, what).ok_or_else(|| {
                Failure::Refused(
                    "the CPUs were as busy as `auto-rps` says only at the end; take a longer `runtime`"
                        .into(),
                )
            })?;
            trial.sample(name, whole(rate))?;
        }
        trial.sample(
            "rps-average",
            match plan.semantics {
                Semantics::Original => {
                    let durations = durations(params)?;
                    self.all_loops as f64 / (durations.warmup + durations.runtime).as_secs_f64()
                }
                Semantics::Strict => measured.loops as f64 / measured.seconds,
            },
        )?;
        if params.count("auto-rps")? > 0 {
            trial.sample("rps-goal", measured.goal as f64)?;
        }
        for (name, delay_us) in
            [("message-delay", self.message_delay_us), ("worker-delay", self.worker_delay_us)]
        {
            match delay_us {
                Some(delay_us) => trial.sample(name, delay_us)?,
                None => trial.note("this kernel does not count scheduling delays (/proc/PID/schedstat)"),
            }
        }
        Ok(())
    }
}

/// A figure of ascending values.
fn of_ascending(values: &[f64], what: What) -> Option<f64> {
    let rank = match what {
        What::Percentile(percent) => (percent / 100.0 * values.len() as f64).ceil() as usize,
        What::Least => 1,
        What::Most => values.len(),
    };
    values.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::schbench::tests::prepared;

    /// The wake-up and the request latencies of all workers, with each of them kept.
    pub fn latencies(workers: u64, set: &[(&str, &str)]) -> Result<(Latencies, Latencies), Failure> {
        let (params, trial) = prepared(&Schbench, workers, set)?;
        Plan::new(&params, &trial)?.run(&params).map(|done| (done.wakeups, done.requests))
    }

    #[test]
    fn figures_of_few_seconds_are_values_that_were_seen() {
        let seconds = [0.0, 10.0, 20.0];
        let of = |what| of_ascending(&seconds, what).unwrap();
        assert_eq!(RPS_FIGURES.map(|(_, what)| of(what)), [10.0, 0.0, 20.0, 0.0, 20.0]);
        assert_eq!(of_ascending(&[], What::Percentile(50.0)), None);
        assert_eq!(of_ascending(&[7.0], What::Percentile(0.0)), Some(7.0));
    }
}
