//! schbench, as it was until 2023 and as it is since: workers that message threads wake. What both have in common.

mod conduct;
mod cpu_locks;
mod handoff;
pub(crate) mod latencies;
mod load;
mod matrices;
pub mod new;
pub mod old;
mod places;
mod sched_delay;
mod stage;
#[cfg(test)]
mod tests;

use crate::buckets::Buckets;
use crate::shared::{room_for, warmup};
use crate::{Failure, Original, Trial, originals};
use conduct::{Durations, Measured};
use experiment::{Axis, Direction, Metric, Parameter, Params, Point, Statistic};
use latencies::Latencies;
use rustix::io::Errno;
use stage::Shape;
use std::collections::BTreeMap;
use std::time::Duration;

/// What does the same work: schbench, old or new.
const ORIGINALS: &[Original] = &[Original::SCHBENCH];

/// The largest transfer of pipe mode, in bytes.
const PIPE_BYTES_MAX: i64 = 1 << 20;
pub(crate) const GIB: f64 = (1 << 30) as f64;

fn axis() -> Axis {
    Axis {
        name: "workers".into(),
        heading: "#workers".into(),
        suffix: String::new(),
        points: [1, 2, 4, 8, 16].map(Point::from).to_vec(),
        range: Some((1, 100_000)),
    }
}

/// The parameters that both have, `runtime` first.
fn parameters(runtime_s: f64) -> Vec<Parameter> {
    vec![
        Parameter::decimal(
            "runtime",
            runtime_s,
            0.01,
            86_400.0,
            "seconds that are measured, behind the warm-up",
        ),
        Parameter::integer(
            "message-threads",
            2,
            1,
            10_000,
            "message threads; each has as many workers as the point says",
        ),
        Parameter::integer(
            "rps",
            0,
            0,
            2_000_000_000,
            "requests per second that the message threads issue together; 0: workers ask for their work",
        ),
        Parameter::integer(
            "auto-rps",
            0,
            0,
            100,
            "percent of their time for which all CPUs are to be busy; `rps` is changed until they are; 0: it stays",
        ),
        Parameter::integer(
            "pipe",
            0,
            0,
            PIPE_BYTES_MAX,
            "bytes that a worker and its message thread write for each other instead of any other work; 0: none",
        ),
    ]
}

/// The metrics of pipe mode besides the latencies.
fn pipe_metrics() -> [Metric; 2] {
    [
        Metric::new(
            "transfers",
            "1/s",
            Direction::Higher,
            "transfers per second and worker",
            "what a worker and its message thread passed to and fro per second, as a mean over the workers",
        )
        .by(Statistic::Median),
        Metric::new(
            "bandwidth",
            "GiB/s",
            Direction::Higher,
            "bandwidth in GiB/s",
            "`transfers` times `pipe`: each of them is written twice",
        )
        .by(Statistic::Median)
        .secondary(),
    ]
}

/// How long a trial takes.
fn durations(params: &Params) -> Result<Durations, Failure> {
    let auto_rps = params.decimal("auto-rps")?;
    Ok(Durations {
        warmup: warmup(params)?,
        runtime: Duration::from_secs_f64(params.decimal("runtime")?),
        auto_rps: (auto_rps > 0.0).then_some(auto_rps),
    })
}

/// Requests per second of all message threads, to begin with; 0 where workers ask for their work.
///
/// # Errors
/// When they cannot be shared out, or do not go together with pipe mode.
fn first_rps(params: &Params) -> Result<u64, Failure> {
    let (rps, auto_rps) = (params.count("rps")?, params.count("auto-rps")?);
    let message_threads = params.count("message-threads")?;
    if rps == 0 && auto_rps == 0 {
        return Ok(0);
    }
    if params.count("pipe")? > 0 {
        return Err(Failure::Refused(
            "pipe mode has no requests; leave out `pipe`, or `rps` and `auto-rps`".into(),
        ));
    }
    if rps > 0 && rps < message_threads {
        return Err(Failure::Refused(format!(
            "rps={rps} cannot be shared out among {message_threads} message threads; take at least as many, or fewer \
             message threads"
        )));
    }
    Ok(if rps > 0 { rps } else { load::FIRST_RPS.max(message_threads) })
}

/// Whether a parameter that is a number is set, and not to 0.
fn has(set: &BTreeMap<String, String>, name: &str) -> bool {
    set.get(name).is_some_and(|value| value.parse() != Ok(0.0))
}

/// A metric in requests per second.
fn rps_metric(name: &str, help: &str) -> Metric {
    Metric::new(name, "1/s", Direction::Higher, "Requests per second", help).by(Statistic::Median)
}

/// The latencies of all workers.
fn merge<'a>(workers: impl IntoIterator<Item = &'a Latencies>) -> Latencies {
    let mut all = Latencies::new();
    workers.into_iter().for_each(|one| all.merge(one));
    all
}

fn nothing_measured() -> Failure {
    Failure::Refused("no latency came to its end within `runtime`; take a longer one".into())
}

/// Leaves the metrics of pipe mode, where it is one.
fn leave_pipe(shape: &Shape, measured: &Measured, trial: &mut Trial) -> Result<(), Failure> {
    if shape.pipe_bytes > 0 {
        let per_s = measured.loops as f64 / measured.seconds / shape.all_workers() as f64;
        trial.sample("transfers", per_s)?;
        trial.sample("bandwidth", per_s * shape.pipe_bytes as f64 / GIB)?;
    }
    Ok(())
}

/// Leaves what readers should know and what is no metric.
fn leave_counts(measured: &Measured, durations: Durations, trial: &mut Trial) {
    let [warmup_s, runtime_s] = [durations.warmup, durations.runtime].map(|time| time.as_secs_f64());
    trial.note(format!(
        "measured for {runtime_s} s behind a warm-up of {warmup_s} s, percentiles over all of it"
    ));
    trial.counter("requests", measured.loops as f64);
    trial.counter("measured seconds", measured.seconds);
    // On which hash all the futexes were can decide how fast they are.
    Buckets::LeftAlone.report(trial);
    if measured.skipped > 0 {
        trial.counter("requests skipped", measured.skipped as f64);
        trial.note(
            "requests were skipped because too many waited for their worker: the rate is too high for it",
        );
    }
}

/// Whether the original is there and takes its `arguments`, where it is asked for, or else whether all threads fit.
fn check(
    params: &Params,
    shape: &Shape,
    arguments: impl FnOnce() -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    match originals::wanted(params, ORIGINALS)? {
        Some(original) => {
            arguments()?;
            original.find().map(drop)
        }
        None => room_for(shape.threads(), 0, 0),
    }
}

/// Why a futex call of a measured loop failed.
fn broken(error: Errno) -> Failure {
    Failure::Invariant(format!("a futex call failed: {error}"))
}
