//! `global-lock`: a number of threads and one lock.

mod contend;
mod figures;
mod observer;
mod place;
mod round;
mod work;

use crate::shared::{self, Semantics, with_shared};
use crate::slice::{self, Protocol, Sliced, Slicing};
use crate::{Failure, Trial, Workload, originals};
use experiment::Direction::{Higher, Lower};
use experiment::{Axis, Description, Knob, Metric, Parameter, Params, Point};
use machine::{Root, SliceCounts};
use round::{End, Layout, Observe, Plan, Round};
use std::time::Duration;

/// More threads than any kernel takes.
const THREADS_MAX: u64 = 1 << 22;

/// A number of threads take one lock, add one to a counter and release it, until a fixed number of sections is done.
pub struct GlobalLock;

impl Workload for GlobalLock {
    fn describe(&self) -> Description {
        Description {
            name: "global-lock".into(),
            summary: "threads contend for one lock: the time for a fixed number of critical sections".into(),
            about: ABOUT.into(),
            source: SOURCE.into(),
            axis: Axis {
                name: "threads".into(),
                heading: "Threads".into(),
                suffix: String::new(),
                points: [1, 2, 4, 8].map(Point::from).to_vec(),
                range: Some((1, THREADS_MAX)),
            },
            parameters: with_shared(parameters(), &[]),
            metrics: metrics(),
            requirements: vec![
                "for `lock=pthread-pi`: futexes with priority inheritance (CONFIG_FUTEX_PI)".into(),
                slice::REQUIREMENT.into(),
            ],
        }
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        plan(params, &Slicing::new(params)?, trial)?;
        originals::check(params, self.originals())
    }

    fn knobs(&self, params: &Params) -> Result<Vec<Knob>, Failure> {
        slice::knobs(params, &Root::real())
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let lock = params.text("lock")?;
        let slicing = Slicing::new(params)?;
        let plan = plan(params, &slicing, trial)?;
        let warmup = shared::warmup(params)?;
        if !warmup.is_zero() {
            play(lock, &Plan { end: End::After(warmup), observe: Observe::Off, ..plan.clone() })?;
        }
        let counted = SliceCounts::read(&Root::real());
        let round = play(lock, &plan)?;
        figures::check(&plan, &round)?;
        figures::leave(&round, params.count("total")?, trial)?;
        slicing.leave(round.members.iter().map(|member| member.slices).sum(), counted, trial);
        Ok(())
    }
}

fn play(lock: &str, plan: &Plan) -> Result<Round, Failure> {
    let played = match plan.slice {
        Some(Protocol::Try) => locks::visit_on::<Sliced, _>(lock, plan),
        Some(Protocol::Section) | None => locks::visit(lock, plan),
    };
    played.map_err(|error| Failure::Refused(error.to_string()))?
}

fn plan(params: &Params, slicing: &Slicing, trial: &Trial) -> Result<Plan, Failure> {
    let lock = params.text("lock")?;
    if slicing.asked_protocol() == Some(Protocol::Try) && !locks::own_names().contains(&lock) {
        return Err(Failure::Refused(format!(
            "slice-protocol=try needs a lock that takes its request back while it waits, and lock={lock} does not; take one \
             of {}, or slice-protocol=section",
            locks::own_names().join(", ")
        )));
    }
    let threads = trial.count()?;
    if !(1..=THREADS_MAX).contains(&threads) {
        return Err(Failure::Refused(format!("{threads} threads: take from 1 to {THREADS_MAX}")));
    }
    let total = params.count("total")?;
    let seconds = params.decimal("seconds")?;
    let strict = shared::semantics(params)? == Semantics::Strict;
    let end = match params.text("count")? {
        _ if seconds > 0.0 => End::After(Duration::from_secs_f64(seconds)),
        "split" if !strict => End::Split(total),
        _ => End::Claim(total),
    };
    if end == End::Split(total) && total < threads {
        return Err(Failure::Refused(format!(
            "{total} sections cannot be split among {threads} threads: raise `total`, or set `count=claim`"
        )));
    }
    Ok(Plan {
        threads: threads as usize,
        end,
        steady: strict,
        layout: if params.text("layout")? == "split" { Layout::Split } else { Layout::Same },
        hold: params.count("hold")?,
        think: params.count("think")?,
        observe: match params.text("observe")? {
            "owners" => Observe::Owners,
            "waits" => Observe::Waits,
            _ => Observe::Off,
        },
        slice: slicing.protocol(),
        seed: trial.seed(),
    })
}

fn parameters() -> Vec<Parameter> {
    let mut own = vec![
        Parameter::choice("lock", &locks::names(), "which lock; `kduel list locks` says what each is"),
        Parameter::integer(
            "total",
            10_000_000,
            1,
            1_000_000_000_000,
            "critical sections, all threads together; `time` is the time for so many",
        ),
        Parameter::choice(
            "count",
            &["split", "claim"],
            "`split`: each thread does an equal share of them; `claim`: whoever gets the lock does the next, as always with \
             `semantics=strict`",
        ),
        Parameter::decimal(
            "seconds",
            0.0,
            0.0,
            86_400.0,
            "run for so long instead, and compute `time` from the rate; 0 runs until `total` sections are done",
        ),
        Parameter::choice(
            "layout",
            &["same", "split"],
            "whether lock and counter stand on the same cache line, or each on its own",
        ),
        Parameter::integer(
            "hold",
            0,
            0,
            1_000_000_000,
            "units of work inside a section, each about 6 cycles",
        ),
        Parameter::integer(
            "think",
            0,
            0,
            1_000_000_000,
            "units of work between two sections, each about 6 cycles",
        ),
        Parameter::choice(
            "observe",
            &["off", "owners", "waits"],
            "what is recorded about each section, at a cost inside the loop: nothing, who owns the lock, or how \
             long it was waited for",
        ),
    ];
    own.extend(slice::parameters());
    own
}

fn metrics() -> Vec<Metric> {
    vec![
        Metric::new("time", "s", Lower, "time in seconds", "the time for `total` critical sections"),
        Metric::new("rate", "1/s", Higher, "critical sections per second", "critical sections per second").secondary(),
        Metric::new(
            "fairness",
            "",
            Higher,
            "fairness (Jain)",
            "Jain's index of the threads' own rates: 1 if all got the lock equally often while they ran, 1/n if \
             one of n threads got it alone",
        )
        .secondary(),
        Metric::new(
            "finish-skew",
            "",
            Lower,
            "finish skew",
            "from the first thread's finish to the last one's, as a part of the whole time",
        )
        .secondary(),
        Metric::new(
            "cpu-per-op",
            "ns",
            Lower,
            "CPU time per section in nanoseconds",
            "processor time of all threads, per critical section",
        )
        .secondary(),
        Metric::new(
            "longest-owner-run",
            "",
            Lower,
            "longest run of one owner",
            "the most sections in a row that one thread did; with `observe=owners`",
        )
        .secondary(),
        Metric::new(
            "hand-off-rate",
            "",
            Higher,
            "hand-offs per section",
            "how often the lock went from one thread to another, per section; with `observe=owners`",
        )
        .secondary(),
        Metric::new(
            "wait-p99",
            "ns",
            Lower,
            "99th percentile wait in nanoseconds",
            "the wait for the lock that one section in a hundred exceeds; with `observe=waits`",
        )
        .secondary(),
        Metric::new(
            "wait-max",
            "ns",
            Lower,
            "longest wait in nanoseconds",
            "the longest wait for the lock; with `observe=waits`",
        )
        .secondary(),
    ]
}

const SOURCE: &str = "\
pause_bench of Netflix's global-lock-bench, as described in public mails of November 2025 (its source was not at hand): \
a fixed total of sections under a trylock-and-pause spin lock. Whether the original splits the total or lets threads \
claim it, and where its counter stands, is not known; both are parameters.";

const ABOUT: &str = "\
All threads wait at a gate. When it opens, each repeats: take the lock, add one to the counter, do `hold` units of \
work, release the lock, do `think` units of work. The time runs from the opening of the gate until the last thread \
has finished. The trial counts only if the counter equals the number of sections. Where the threads run is left to \
the scheduler, within the CPUs of the trial.

With `semantics=original` the time for waking the threads is part of the result, and who is woken first works alone \
for a while; with `count=split`, a thread that has done its share leaves, so the last one works alone again. With \
`semantics=strict` all threads contend for the whole time: it begins when the last one has come to the lock, the total \
is claimed, never split, and it ends when the total is reached.

The queue locks and the ticket lock hand over to the next in line even if it is not running. With more threads than \
CPUs each hand-over can take a time slice, so use `seconds` there instead of `total`.";
