//! `lock-busy`: lock owners that are preempted. On every CPU one thread takes a lock that all share, and busy threads
//! take the CPU away from it.

mod round;

use crate::shared::{self, Semantics, with_shared};
use crate::times::Times;
use crate::{Failure, Trial, Workload, clock};
use experiment::Direction::{Higher, Lower};
use experiment::{Axis, Description, Metric, Parameter, Params, Point};
use round::{Plan, Round, check};
use std::time::Duration;

/// A lock thread and busy threads on every CPU, for a fixed time.
pub struct LockBusy;

impl Workload for LockBusy {
    fn describe(&self) -> Description {
        Description {
            name: "lock-busy".into(),
            summary:
                "one lock thread per CPU among busy threads: how often the lock is had, how long waited for"
                    .into(),
            about: ABOUT.into(),
            source: SOURCE.into(),
            axis: Axis {
                name: "busy".into(),
                heading: "Busy".into(),
                suffix: "-per-cpu".into(),
                points: vec![Point::from(5)],
                range: Some((0, BUSY_MAX)),
            },
            parameters: with_shared(parameters(), &[]),
            metrics: metrics(),
            requirements: Vec::new(),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let lock = params.text("lock")?;
        let plan = plan(params, trial)?;
        let warmup = shared::warmup(params)?;
        if !warmup.is_zero() {
            play(lock, &Plan { time: warmup, ..plan.clone() })?;
        }
        leave(&play(lock, &plan)?, trial)
    }
}

/// More busy threads than would help anybody.
const BUSY_MAX: u64 = 10_000;

fn plan(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
    let busy = trial.count()?;
    if busy > BUSY_MAX {
        return Err(Failure::Refused(format!("{busy} busy threads per CPU: take from 0 to {BUSY_MAX}")));
    }
    let microseconds = |name: &str| Ok::<_, Failure>(Duration::from_micros(params.count(name)?));
    Ok(Plan {
        cpus: trial.cpus().to_vec(),
        busy: busy as usize,
        time: Duration::from_secs_f64(params.decimal("seconds")?),
        hold_fences: params.count("hold-fences")?,
        rest: microseconds("rest-us")?,
        rest_step: microseconds("rest-step-us")?,
        busy_fences: params.count("busy-fences")?,
        busy_rest: microseconds("busy-rest-us")?,
        tick_ns: if shared::semantics(params)? == Semantics::Original { 1000 } else { 1 },
    })
}

fn play(lock: &str, plan: &Plan) -> Result<Round, Failure> {
    let round = locks::visit(lock, plan).map_err(|error| Failure::Refused(error.to_string()))??;
    check(&round)?;
    Ok(round)
}

fn leave(round: &Round, trial: &mut Trial) -> Result<(), Failure> {
    let (mut waits, mut holds) = (Times::default(), Times::default());
    for member in &round.members {
        waits.merge(&member.waits);
        holds.merge(&member.holds);
    }
    let ended_ns = round.members.iter().map(|member| member.ended_ns).max().unwrap_or(round.opened_ns);
    let elapsed_s = clock::seconds_between(round.opened_ns, ended_ns);
    if elapsed_s <= 0.0 {
        return Err(Failure::Invariant(format!("the round took {elapsed_s} s by the clock")));
    }
    let sections = round.count as f64;
    let contended: u64 = round.members.iter().map(|member| member.contended).sum();
    trial.sample("rate", sections / elapsed_s)?;
    trial.sample("wait-mean", waits.sum_ns as f64 / 1e3 / sections)?;
    trial.sample("wait-max", waits.max_ns as f64 / 1e3)?;
    trial.sample("hold-mean", holds.sum_ns as f64 / 1e3 / sections)?;
    trial.sample("hold-max", holds.max_ns as f64 / 1e3)?;
    trial.sample("contention", contended as f64 / sections)?;
    trial.histogram("wait", &waits.histogram)?;
    trial.histogram("hold", &holds.histogram)?;
    trial.counter("sections", sections);
    trial.counter("contended", contended as f64);
    Ok(())
}

fn parameters() -> Vec<Parameter> {
    let lock = Parameter::choice("lock", &locks::names(), "which lock; `kduel list locks` says what each is");
    vec![
        Parameter { default: "ttas".into(), ..lock },
        Parameter::decimal("seconds", 5.0, 0.001, 86_400.0, "how long it runs"),
        Parameter::integer("hold-fences", 15_000, 0, 1_000_000_000, "store fences inside a section"),
        Parameter::integer(
            "rest-us",
            100,
            0,
            1_000_000_000,
            "sleep of a lock thread between two sections, in us",
        ),
        Parameter::integer(
            "rest-step-us",
            27,
            0,
            1_000_000,
            "how much longer the lock thread of each further CPU sleeps, in us",
        ),
        Parameter::integer(
            "busy-fences",
            100,
            0,
            1_000_000_000,
            "store fences of a busy thread between two sleeps",
        ),
        Parameter::integer("busy-rest-us", 10, 0, 1_000_000_000, "sleep of a busy thread, in us"),
    ]
}

fn metrics() -> Vec<Metric> {
    let us = |name: &str, units_line: &str, help: &str| Metric::new(name, "us", Lower, units_line, help);
    vec![
        Metric::new(
            "rate",
            "1/s",
            Higher,
            "acquisitions per second",
            "acquisitions of the lock per second, all CPUs together",
        ),
        us("wait-mean", "mean wait in us", "the mean wait for the lock, over all acquisitions"),
        us("wait-max", "longest wait in us", "the longest wait for the lock").secondary(),
        us("hold-mean", "mean hold in us", "the mean time in a section, time without the CPU included")
            .secondary(),
        us("hold-max", "longest hold in us", "the longest time in a section").secondary(),
        Metric::new(
            "contention",
            "",
            Lower,
            "contended acquisitions",
            "the part of the acquisitions that found the lock held",
        )
        .secondary(),
    ]
}

const SOURCE: &str = "\
extend-sched.c by Steven Rostedt, as attached to a public mail of June 2025, by its description. Its flags for the time \
slice extension have no counterpart yet.";

const ABOUT: &str = "\
On every CPU that the trial may use, one lock thread and `busy` busy threads are pinned. The lock thread takes a lock \
that all share, holds it for `hold-fences` store fences, releases it and sleeps for `rest-us` plus `rest-step-us` for \
each CPU before its own. A busy thread does `busy-fences` store fences and sleeps for `busy-rest-us`, over and over. So \
owners lose their CPU inside sections, and others spin meanwhile. All run for `seconds` after a common start.

The trial counts only if no two sections overlapped and the counter under the lock equals the number of sections.

With `semantics=original` times are taken in whole microseconds, as the original has them; with `semantics=strict` in \
nanoseconds. Both use the monotonic raw clock, which nobody sets, where the original used the time of day; and both \
use the CPUs that the trial may use, where the original used all that are configured.";
