//! schbench-old: workers that spin for a time when their message thread wakes them, and how much longer that took.

use super::handoff::Group;
use super::latencies::{Figure, Latencies, metrics};
use super::stage::{Answer, Seat, Shape, Stage};
use super::{ORIGINALS, axis, broken, durations, first_rps, merge, parameters, pipe_metrics, rps_metric};
use crate::clock::{SECOND_NS, now_ns};
use crate::random::Random;
use crate::shared::{Semantics, room_for, semantics, with_shared};
use crate::sole_writer::add;
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Parameter, Params};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::Duration;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SchbenchOld;

/// What is printed of the latencies. The first is judged.
pub const FIGURES: [Figure; 9] = [
    Figure::percentile("p99", 99.0),
    Figure::percentile("p50", 50.0),
    Figure::percentile("p75", 75.0),
    Figure::percentile("p90", 90.0),
    Figure::percentile("p95", 95.0),
    Figure::percentile("p99.5", 99.5),
    Figure::percentile("p99.9", 99.9),
    Figure::LEAST,
    Figure::MOST,
];

/// Durations of the original in microseconds, where nobody sets them.
const USUAL_US: i64 = 30_000;
const LONGEST_US: i64 = 3_600_000_000;

/// A worker is given no further request when more than so many wait for it.
const QUEUE: u64 = 8;

impl Workload for SchbenchOld {
    fn describe(&self) -> Description {
        self.describe_for(&BTreeMap::new())
    }

    fn describe_for(&self, set: &BTreeMap<String, String>) -> Description {
        let mut own = parameters(25.0);
        own.extend([
            Parameter::integer(
                "sleeptime-us",
                USUAL_US,
                0,
                LONGEST_US,
                "microseconds that a message thread sleeps before it answers, and at random up to a quarter more",
            ),
            Parameter::integer("cputime-us", USUAL_US, 0, LONGEST_US, "microseconds that a worker spins"),
            Parameter::integer(
                "message-cputime-us",
                USUAL_US,
                0,
                LONGEST_US,
                "microseconds that a message thread spins before it sleeps; another than the default needs strict \
                 semantics, since the original reads its option for this and ignores it",
            ),
            Parameter::flag("jitter", false, "spin for a random part of these times instead of all of them"),
        ]);
        let mut parameters = with_shared(own, ORIGINALS);
        if let Some(warmup) = parameters.iter_mut().find(|parameter| parameter.name == "warmup") {
            warmup.default = "5".into();
        }
        let of = "from when a message thread began to wake its workers to the end of the worker's spin, less the spin";
        let mut metrics = metrics(&FIGURES, "", "schbench", of);
        metrics.push(rps_metric("rps", "requests that all workers did per second").secondary());
        if super::has(set, "pipe") {
            metrics.extend(pipe_metrics());
        }
        Description {
            name: "schbench-old".into(),
            summary: "latency of workers that message threads wake for a spin (schbench until 2023)".into(),
            about: "Each of `message-threads` message threads has as many workers as the point says. A worker \
                    puts itself on its message thread's list, posts it and waits on a futex of its own. The \
                    message thread spins for `message-cputime-us`, sleeps for `sleeptime-us`, takes the list, \
                    reads the clock once and wakes all who are on it, the last first. A worker that was woken \
                    spins for `cputime-us`. Its latency is the time from that reading of the clock to the end of \
                    its spin, less the spin: the wake-up, the wake-ups before it, and whatever kept it from its \
                    CPU meanwhile.\n\n\
                    With `rps` the message threads issue requests of their own accord, and a latency is from when \
                    a request was made. With `pipe` nobody spins or sleeps: both sides write so many bytes for \
                    each other.\n\n\
                    The first `warmup` seconds are not measured. `runtime` is what comes behind them, and the \
                    percentiles are over all of it."
                .into(),
            source: "schbench e4aa540 of 2021-09-09, `schbench -m 2 -t WORKERS -r 30`, of whose 30 s the first 5 \
                     are its warm-up. With original semantics the clock reads whole microseconds, a latency is at \
                     least 1 us, and those that end while all threads leave are counted. With strict semantics \
                     the clock reads nanoseconds, a latency counts if it began in the time that is measured, and \
                     requests are issued at exactly the rate that was asked for."
                .into(),
            axis: axis(),
            parameters,
            metrics,
            requirements: vec![
                "message-threads x (workers + 1) threads".into(),
                "a schbench of 2016 to 2023-04 on PATH for `via`".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        super::check(params, &plan.shape, || originals::schbench::old::arguments(params, trial))
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        if originals::wanted(params, ORIGINALS)?.is_some() {
            return originals::schbench::old::run(params, trial);
        }
        room_for(plan.shape.threads(), 0, 0)?;
        let (latencies, measured) = plan.run(params)?;
        if latencies.histogram.is_empty() {
            return Err(super::nothing_measured());
        }
        latencies.leave(&FIGURES, "", plan.semantics, trial)?;
        trial.sample("rps", measured.loops as f64 / measured.seconds)?;
        super::leave_pipe(&plan.shape, &measured, trial)?;
        super::leave_counts(&measured, durations(params)?, trial);
        Ok(())
    }
}

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
struct Plan {
    semantics: Semantics,
    shape: Shape,
    sleeptime_us: u64,
    cputime_ns: u64,
    message_cputime_ns: u64,
    jitter: bool,
    seed: u64,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let semantics = semantics(params)?;
        let [sleeptime, cputime, message_cputime] =
            ["sleeptime-us", "cputime-us", "message-cputime-us"].map(|name| params.count(name));
        let (sleeptime_us, cputime_us, message_cputime_us) = (sleeptime?, cputime?, message_cputime?);
        let usual = USUAL_US as u64;
        if semantics == Semantics::Original && message_cputime_us != usual {
            return Err(Failure::Refused(format!(
                "the original ignores its option for message-cputime-us={message_cputime_us} and spins for {usual}; \
                 take semantics=strict, or leave it out"
            )));
        }
        let shape = Shape {
            message_threads: params.count("message-threads")? as usize,
            workers: trial.count()? as usize,
            queue: QUEUE,
            pipe_bytes: params.count("pipe")? as usize,
            rps: first_rps(params)?,
        };
        let piped = shape.pipe_bytes > 0;
        if piped && [sleeptime_us, cputime_us, message_cputime_us] != [usual; 3] {
            return Err(Failure::Refused(
                "in pipe mode nobody sleeps or spins; leave out `pipe`, or the three times".into(),
            ));
        }
        let unless_piped = |value: u64| if piped { 0 } else { value };
        Ok(Plan {
            semantics,
            shape,
            sleeptime_us: unless_piped(sleeptime_us),
            cputime_ns: unless_piped(cputime_us * 1000),
            message_cputime_ns: unless_piped(message_cputime_us * 1000),
            jitter: params.flag("jitter")?,
            seed: trial.seed(),
        })
    }

    fn run(&self, params: &Params) -> Result<(Latencies, super::conduct::Measured), Failure> {
        let stage = Stage::new(self.semantics, self.shape);
        let (measured, latencies) = stage.perform(
            durations(params)?,
            |_| Ok(()),
            |nth, group| {
                let random = Random::new(self.seed, nth);
                match self.shape.rps {
                    0 => self.answer(&stage, group, random),
                    _ => self.issue(&stage, group),
                }
                .map_err(broken)
            },
            || Ok(Latencies::new()),
            |seat, latencies| {
                let random = Random::new(self.seed, self.shape.message_threads + seat.number);
                self.work(&stage, seat, random, latencies).map_err(broken)
            },
        )?;
        Ok((merge(&latencies), measured))
    }

    /// What a message thread does: all who wait are answered, and then it waits until somebody asks.
    fn answer(&self, stage: &Stage, group: &Group, mut random: Random) -> Result<(), Errno> {
        let drawn_ns = draw_ns(self.message_cputime_ns, &mut random);
        loop {
            group.post.block();
            stage.answer_all(group)?;
            if stage.is_stopping() {
                // Whoever asked before seeing that.
                return stage.answer_all(group);
            }
            // The original without a sleep has no wait either: it looks at its list again and again.
            if self.sleeptime_us > 0 || self.semantics == Semantics::Strict {
                group.post.wait()?;
            }
            self.spin(stage, self.spin_ns(self.message_cputime_ns, drawn_ns, &mut random));
            if self.sleeptime_us > 0 {
                sleep(Duration::from_micros(self.sleeptime_us + random.below(self.sleeptime_us / 4)));
            }
        }
    }

    /// What a worker does.
    fn work(
        &self,
        stage: &Stage,
        seat: Seat<'_>,
        mut random: Random,
        mut latencies: Latencies,
    ) -> Result<Latencies, Errno> {
        let counts = &seat.worker.counts;
        let drawn_ns = draw_ns(self.cputime_ns, &mut random);
        let mut starts_ns = Vec::with_capacity(QUEUE as usize + 2);
        while !stage.is_stopping() {
            let answer = stage.ask(seat)?;
            starts_ns.clear();
            match answer {
                _ if self.shape.rps > 0 => seat.worker.requests.take(&mut starts_ns),
                Answer::At(answered_ns) => starts_ns.push(answered_ns),
                Answer::NotNeeded | Answer::Leave => {}
            }
            for start_ns in &starts_ns {
                let spin_ns = self.spin_ns(self.cputime_ns, drawn_ns, &mut random);
                self.spin(stage, spin_ns);
                add(&counts.loops, 1);
                let ended_ns = stage.stamp_ns();
                if stage.counts(*start_ns, ended_ns) {
                    let (less_ns, least_ns) = match self.semantics {
                        Semantics::Original => (self.cputime_ns, 1000),
                        Semantics::Strict => (spin_ns, 0),
                    };
                    latencies.record_less(self.semantics, *start_ns, ended_ns, less_ns, least_ns);
                }
            }
        }
        Ok(latencies)
    }

    /// What a message thread does that issues requests: batches for two thirds of its workers, in turn.
    fn issue(&self, stage: &Stage, group: &Group) -> Result<(), Errno> {
        let batch = (group.workers.len() as u64 * 2 / 3).max(1);
        let mut workers = group.workers.iter().cycle();
        let (mut due_ns, mut owed) = (now_ns(), 0);
        loop {
            let rps = stage.rps.load(Relaxed);
            let batches = rps.div_ceil(batch);
            let period_ns = SECOND_NS / batches;
            let count = match self.semantics {
                Semantics::Original => {
                    due_ns = now_ns() + period_ns;
                    batch
                }
                Semantics::Strict => {
                    due_ns += period_ns;
                    owed += rps;
                    let count = owed / batches;
                    owed -= count * batches;
                    count
                }
            };
            stage.rest_until(due_ns);
            if stage.is_stopping() {
                return Ok(());
            }
            let began_ns = stage.stamp_ns();
            let late_ns = match self.semantics {
                Semantics::Original => 0,
                // A request begins when it is due, also if its message thread comes late.
                Semantics::Strict => began_ns.saturating_sub(due_ns),
            };
            for worker in workers.by_ref().take(count as usize) {
                if worker.requests.len() > QUEUE {
                    add(&group.skipped, 1);
                } else {
                    stage.issue(group, worker, stage.stamp_ns() - late_ns, began_ns)?;
                }
            }
        }
    }

    /// How long to spin this time. With original semantics a thread draws its random part once and for all.
    fn spin_ns(&self, whole_ns: u64, drawn_ns: u64, random: &mut Random) -> u64 {
        match (self.jitter && whole_ns > 0, self.semantics) {
            (false, _) => whole_ns,
            (true, Semantics::Original) => drawn_ns,
            (true, Semantics::Strict) => draw_ns(whole_ns, random),
        }
    }

    fn spin(&self, stage: &Stage, time_ns: u64) {
        if time_ns == 0 {
            return;
        }
        // The original goes on until more has passed than it was told, in whole microseconds.
        let over_ns = if self.semantics == Semantics::Original { 1000 } else { 0 };
        let until_ns = stage.stamp_ns() + time_ns + over_ns;
        while stage.stamp_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

/// A random part of a time, in whole microseconds from 1.
fn draw_ns(whole_ns: u64, random: &mut Random) -> u64 {
    random.below(whole_ns / 1000) * 1000 + 1000
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::schbench::tests::prepared;

    /// The latencies of all workers, with each of them kept.
    pub fn latencies(workers: u64, set: &[(&str, &str)]) -> Result<Latencies, Failure> {
        let (params, trial) = prepared(&SchbenchOld, workers, set)?;
        Plan::new(&params, &trial)?.run(&params).map(|(latencies, _)| latencies)
    }
}
