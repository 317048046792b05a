//! schbench: workers that sleep, multiply matrices and ask for the next request; how many they do and how long they wait.

mod requests;

use super::latencies::{Figure, What, metrics};
use super::{ORIGINALS, axis, durations, parameters, pipe_metrics, rps_metric};
use crate::shared::{Semantics, room_for, with_shared};
use crate::slice::{self, Slicing};
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Direction, Knob, Metric, Parameter, Params, Statistic};
use machine::{Root, SliceCounts};
use requests::{Done, Plan};
use std::collections::BTreeMap;

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
                slice::REQUIREMENT.into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, &Slicing::new(params)?, trial)?;
        plan.make_room()?;
        super::check(params, &plan.shape, || originals::schbench::new::arguments(params, trial))
    }

    fn knobs(&self, params: &Params) -> Result<Vec<Knob>, Failure> {
        slice::knobs(params, &Root::real())
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let slicing = Slicing::new(params)?;
        let plan = Plan::new(params, &slicing, trial)?;
        if originals::wanted(params, ORIGINALS)?.is_some() {
            return originals::schbench::new::run(params, trial);
        }
        room_for(plan.shape.threads(), 0, 0)?;
        plan.make_room()?;
        let counted = SliceCounts::read(&Root::real());
        let done = plan.run(params)?;
        done.leave(&plan, params, trial)?;
        slicing.leave(done.slices, counted, trial);
        Ok(())
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
    own.extend(slice::parameters());
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

impl Done {
    fn leave(&self, plan: &Plan, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let Done { wakeups, requests, measured, .. } = self;
        let durations = durations(params)?;
        super::leave_counts(measured, durations, trial);
        for (name, latencies) in [("wake-up", wakeups), ("request", requests)] {
            if latencies.zeros > 0 {
                trial.counter(&format!("{name} latencies of 0 us, left out"), latencies.zeros as f64);
            }
        }
        if wakeups.histogram.is_empty() {
            return Err(super::nothing_measured());
        }
        wakeups.leave(&FIGURES, WAKEUP, plan.semantics, trial)?;
        if plan.shape.pipe_bytes > 0 {
            return super::leave_pipe(&plan.shape, measured, trial);
        }
        // With original semantics requests of nothing take 0 us, which are left out, unless they were interrupted.
        if !plan.is_nothing() || plan.semantics == Semantics::Strict {
            requests.leave(&FIGURES, REQUEST, plan.semantics, trial)?;
        }
        if self.cut_off > 0 {
            trial.counter("request latencies cut off at the end", self.cut_off as f64);
        }
        self.leave_rates(plan, trial)?;
        let average = match plan.semantics {
            Semantics::Original => {
                self.all_loops as f64 / (durations.warmup + durations.runtime).as_secs_f64()
            }
            Semantics::Strict => measured.loops as f64 / measured.seconds,
        };
        trial.sample("rps-average", average)?;
        if durations.auto_rps.is_some() {
            trial.sample("rps-goal", measured.goal as f64)?;
        }
        let delays = [("message-delay", self.message_delay_us), ("worker-delay", self.worker_delay_us)];
        for (name, delay_us) in delays {
            match delay_us {
                Some(delay_us) => trial.sample(name, delay_us)?,
                None => trial.note("this kernel does not count scheduling delays (/proc/PID/schedstat)"),
            }
        }
        Ok(())
    }

    fn leave_rates(&self, plan: &Plan, trial: &mut Trial) -> Result<(), Failure> {
        let mut rates = self.measured.rates.clone();
        rates.sort_by(f64::total_cmp);
        for (name, what) in RPS_FIGURES {
            let rate = of_ascending(&rates, what).ok_or_else(|| {
                Failure::Refused(
                    "the CPUs were as busy as `auto-rps` says only at the end; take a longer `runtime`"
                        .into(),
                )
            })?;
            // The original counts whole requests.
            let whole = plan.semantics == Semantics::Original;
            trial.sample(name, if whole { rate.floor() } else { rate })?;
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
    use crate::schbench::latencies::Latencies;
    use crate::schbench::tests::prepared;

    /// The wake-up and the request latencies of all workers, with each of them kept.
    pub fn latencies(workers: u64, set: &[(&str, &str)]) -> Result<(Latencies, Latencies), Failure> {
        let (params, trial) = prepared(&Schbench, workers, set)?;
        Plan::new(&params, &Slicing::new(&params)?, &trial)?
            .run(&params)
            .map(|done| (done.wakeups, done.requests))
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
