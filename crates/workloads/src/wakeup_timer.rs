//! wakeup-timer: how late threads wake up that sleep until a moment.

mod idle_states;
mod sleeper;
#[cfg(test)]
mod tests;

use crate::clock::ns_of;
use crate::shared::{Semantics, lock_memory, own_cpu, room_for, semantics, warmup, with_shared};
use crate::{Failure, Original, Trial, Workload, crew, originals};
use experiment::{Axis, Description, Direction, Knob, Metric, Parameter, Params, Point, Scope, Statistic};
pub use idle_states::IdleStates;
use rustix::time::ClockId;
pub use sleeper::Lateness;
use std::time::Duration;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct WakeupTimer;

/// The percentiles that are metrics, by name.
const PERCENTILES: [(&str, f64); 3] = [("p99.9", 99.9), ("p99", 99.0), ("p50", 50.0)];

impl Workload for WakeupTimer {
    fn describe(&self) -> Description {
        Description {
            name: "wakeup-timer".into(),
            summary: "how late threads wake up that sleep until a moment".into(),
            about: "Every thread sleeps until the next multiple of its interval (clock_nanosleep with TIMER_ABSTIME), \
                    looks at the same clock, and notes by how much it is late. Thread i has an interval of `interval` \
                    + i x `distance`, counted from when it was created, and a CPU to itself as long as there are enough.\n\n\
                    With original semantics a thread that is later than its next interval skips what it missed, \
                    lateness is cut off to whole microseconds, and the CPUs' deeper idle states are held off where this \
                    user may. With strict semantics every interval counts, missed ones as late as they were, the \
                    timer slack of the threads is 1 ns instead of 50 us, and idle states are left alone."
                .into(),
            source: "cyclictest of rt-tests 2.4 with a histogram (-h): all threads have the same priority, and \
                     `distance` is 0 unless it is set. Every thread ends after the intervals that `runtime` has."
                .into(),
            axis: Axis {
                name: "threads".into(),
                heading: "Threads".into(),
                suffix: String::new(),
                points: [1, 2, 4, 8].map(Point::from).to_vec(),
                range: Some((1, 10_000)),
            },
            parameters: with_shared(parameters(), self.originals()),
            metrics: metrics(),
            requirements: vec![
                "as many threads as the point says".into(),
                "root, CAP_SYS_NICE or RLIMIT_RTPRIO for `priority`".into(),
                "rt-tests for `via`".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::CYCLICTEST]
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        let plan = Plan::new(params, trial)?;
        match originals::wanted(params, self.originals())? {
            Some(_) => originals::cyclictest::check(&plan)?,
            None => room_for(plan.threads as u64, 0, 0)?,
        }
        IdleStates::new(plan.idle_states).map(drop)?;
        // A thread of its own, so that whoever asks keeps its policy.
        let try_out = |_: usize, gate: &crew::Gate| gate.wait().then(|| plan.apply_policy());
        let ((), tried) = crew::run(1, try_out, |gate| gate.open())?;
        tried.into_iter().flatten().collect()
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        plan.note_idle_settings(params, trial)?;
        if originals::wanted(params, self.originals())?.is_some() {
            return originals::cyclictest::run(&plan, trial);
        }
        if plan.mlockall {
            lock_memory()?;
        }
        room_for(plan.threads as u64, 0, 0)?;
        let _held = IdleStates::new(plan.idle_states)?.note(trial);
        let lateness = plan.sleep()?;
        lateness.report(trial)
    }
}

/// The words of the parameter `realtime`.
const REALTIME: [&str; 2] = ["fifo", "rr"];

/// Whether the calling thread has the policy that threads have unless something gives them another.
pub fn policy_is_other() -> bool {
    // SAFETY: takes no pointer; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_OTHER
}

fn parameters() -> Vec<Parameter> {
    vec![
        Parameter::decimal(
            "interval",
            1000.0,
            1.0,
            1e9,
            "microseconds between two wake-ups of the first thread",
        ),
        Parameter::decimal(
            "distance",
            0.0,
            0.0,
            1e9,
            "microseconds by which the interval of each further thread is longer",
        ),
        Parameter::decimal("runtime", 5.0, 0.01, 86_400.0, "seconds for which the threads wake up"),
        Parameter::integer(
            "priority",
            0,
            0,
            99,
            "real-time priority of the threads; 0 leaves them the policy of the trial",
        ),
        Parameter::choice("realtime", &REALTIME, "the policy of the threads with a `priority` above 0"),
        Parameter::flag("affinity", true, "let thread i run on the (i mod n)-th of the n CPUs only"),
        Parameter::flag("mlockall", false, "lock all memory of the process"),
        Parameter::choice(
            "idle-states",
            &["auto", "hold", "leave"],
            "`hold` keeps CPUs out of deeper idle states meanwhile (0 in /dev/cpu_dma_latency), `leave` does not; \
             `auto` holds with original semantics, where this user may",
        ),
        Parameter::choice("clock", &["monotonic", "realtime"], "the clock that times the sleep"),
    ]
}

fn metrics() -> Vec<Metric> {
    let metric = |name: &str, what: &str| {
        Metric::new(name, "us", Direction::Lower, "wake-up latency in us", what)
            // One long pause of the machine is in one trial, and no reason to judge.
            .by(Statistic::Median)
            .titled(&format!("wakeup-timer-{name}"))
    };
    let mut metrics = vec![metric(
        "max",
        "the latest wake-up of all threads in a trial; the cell's figure is the median trial's",
    )];
    for (name, percent) in PERCENTILES {
        metrics.push(metric(name, &format!("lateness that {percent} % of the wake-ups of all threads kept")));
    }
    metrics.push(metric("mean", "mean lateness"));
    metrics.push(metric("min", "the earliest wake-up"));
    let judged = |metric: &Metric| metric.name == "max" || metric.name == "p99.9";
    metrics.into_iter().map(|metric| if judged(&metric) { metric } else { metric.secondary() }).collect()
}

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Threads.
    pub threads: usize,
    /// Nanoseconds between two wake-ups of the first thread.
    pub interval_ns: u64,
    /// Nanoseconds by which the interval of each further thread is longer.
    pub distance_ns: u64,
    /// How long the threads wake up.
    pub runtime: Duration,
    /// How long they do before.
    pub warmup: Duration,
    /// The policy and priority of the threads, as a knob; `None` leaves them the trial's.
    pub policy: Option<Knob>,
    /// Whether each thread has a CPU to run on.
    pub affinity: bool,
    /// Whether all memory is locked.
    pub mlockall: bool,
    /// What is done about idle states.
    pub idle_states: idle_states::Wish,
    /// The clock that times the sleep.
    pub clock: ClockId,
    /// Which traits of the original are kept.
    pub semantics: Semantics,
    cpus: Vec<u32>,
    /// By how much the threads are made to wake up early: 0, except in tests that break the work.
    early_ns: u64,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let ns = |name: &str| params.decimal(name).map(|us| (us * 1e3).round() as u64);
        let semantics = semantics(params)?;
        let priority = params.count("priority")?;
        let value = format!("{}:{priority}", params.text("realtime")?);
        Ok(Plan {
            threads: trial.count()? as usize,
            interval_ns: ns("interval")?,
            distance_ns: ns("distance")?,
            runtime: Duration::from_secs_f64(params.decimal("runtime")?),
            warmup: warmup(params)?,
            policy: (priority > 0).then_some(Knob { scope: Scope::Policy, value }),
            affinity: params.flag("affinity")?,
            mlockall: params.flag("mlockall")?,
            idle_states: idle_states::Wish::new(params.text("idle-states")?, semantics),
            clock: match params.text("clock")? {
                "realtime" => ClockId::Realtime,
                _ => ClockId::Monotonic,
            },
            semantics,
            cpus: trial.cpus().to_vec(),
            early_ns: 0,
        })
    }

    /// The CPUs that the threads may use.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The interval of the `index`-th thread.
    fn interval_of_ns(&self, index: usize) -> u64 {
        self.interval_ns + index as u64 * self.distance_ns
    }

    /// How many intervals of the `index`-th thread `time` has: one at least.
    pub fn intervals(&self, index: usize, time: Duration) -> u64 {
        (time.as_nanos() as u64 / self.interval_of_ns(index)).max(1)
    }

    /// Says which setting of a policy has no effect. To be called by a thread that has the policy of the trial.
    fn note_idle_settings(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        match &self.policy {
            None if params.text("realtime")? != REALTIME[0] => trial.note(format!(
                "realtime={} had no effect: without a `priority` above 0 the threads have the policy of the trial",
                params.text("realtime")?
            )),
            Some(knob) if !policy_is_other() => trial.note(format!(
                "the policy of the trial had no effect on the threads: `priority` gave them {}",
                knob.value
            )),
            _ => {}
        }
        Ok(())
    }

    /// Gives the calling thread its policy.
    fn apply_policy(&self) -> Result<(), Failure> {
        let Some(knob) = &self.policy else { return Ok(()) };
        machine::apply_to_self(std::slice::from_ref(knob)).map_err(|problem| {
            Failure::Refused(format!("the threads cannot have the policy {}: {}", knob.value, problem.why))
        })
    }

    /// Lets all threads sleep and wake up, and returns how late all of them were.
    fn sleep(&self) -> Result<Lateness, Failure> {
        let ((), threads) = crew::run(
            self.threads,
            |index, gate| {
                // The threads' intervals begin one after the other, as they do in the original, and not all at the gate.
                let begin_ns = ns_of(self.clock);
                let prepared = self.prepare_thread(index);
                let open = gate.wait();
                prepared.and_then(|()| match open {
                    true => sleeper::wake_up_again_and_again(self, index, begin_ns),
                    false => Ok(Lateness::default()),
                })
            },
            |gate| gate.open(),
        )?;
        let mut all = Lateness::default();
        for thread in threads {
            all.merge(&thread?);
        }
        let expected: u64 = (0..self.threads).map(|index| self.intervals(index, self.runtime)).sum();
        all.check(expected)?;
        Ok(all)
    }

    fn prepare_thread(&self, index: usize) -> Result<(), Failure> {
        if self.affinity {
            own_cpu(&self.cpus, index)?;
        }
        if self.semantics == Semantics::Strict {
            sleeper::without_slack()?;
        }
        self.apply_policy()
    }
}
