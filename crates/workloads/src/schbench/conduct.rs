//! How the threads of a trial start and end, and what is measured in between.

use super::handoff::{Group, Worker};
use super::load::AutoRps;
use super::stage::{Seat, Stage};
use crate::clock::{SECOND_NS, now_ns};
use crate::gate::Gate;
use crate::shared::Semantics;
use crate::{Failure, crew};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a trial takes.
#[derive(Debug, Clone, Copy)]
pub struct Durations {
    /// For which the work is done before it is measured.
    pub warmup: Duration,
    /// For which it is measured.
    pub runtime: Duration,
    /// The share of their time in percent for which all CPUs are to be busy.
    pub auto_rps: Option<f64>,
}

/// What was measured of all threads together.
#[derive(Debug)]
pub struct Measured {
    /// How long it was measured.
    pub seconds: f64,
    /// Requests that were done in that time.
    pub loops: u64,
    /// Requests per second, in each second of it.
    pub rates: Vec<f64>,
    /// Requests per second that were asked for in the end.
    pub goal: u64,
    /// Requests that were due and not issued, because too many waited.
    pub skipped: u64,
}

impl Stage {
    /// Starts all threads, lets them warm up, measures and lets them go. `pin` is what a message thread does before the
    /// start, `prepare` what a worker does then.
    ///
    /// # Errors
    /// When a thread could not be started or failed, or when the work did not add up.
    pub fn perform<P, T: Send>(
        &self,
        durations: Durations,
        pin: impl Fn(usize) -> Result<(), Failure> + Sync,
        message: impl Fn(usize, &Group) -> Result<(), Failure> + Sync,
        prepare: impl Fn() -> Result<P, Failure> + Sync,
        work: impl Fn(Seat<'_>, P) -> Result<T, Failure> + Sync,
    ) -> Result<(Measured, Vec<T>), Failure> {
        let workers = self.groups.first().map_or(0, |group| group.workers.len());
        let body = |number: usize, gate: &Gate| {
            let (nth, slot) = (number / (workers + 1), number % (workers + 1));
            let Some(group) = self.groups.get(nth) else { return Ok(None) };
            let Some(index) = slot.checked_sub(1) else {
                // Its workers wait for it, whatever happens to it.
                let _leaving = Leaving { stage: self, group };
                let pinned = pin(nth);
                return if gate.wait() {
                    pinned.and_then(|()| message(nth, group)).map(|()| None)
                } else {
                    Ok(None)
                };
            };
            let prepared = prepare();
            match (gate.wait(), group.workers.get(index)) {
                (true, Some(worker)) => prepared
                    .and_then(|prepared| work(Seat { number, group, index, worker }, prepared))
                    .map(Some)
                    .inspect_err(|_| self.stop()),
                _ => Ok(None),
            }
        };
        // What can fail comes before the threads, which would wait for the gate.
        let auto = durations.auto_rps.map(|percent| AutoRps::new(percent, self.semantics)).transpose()?;
        let (measured, ended) = crew::run(self.groups.len() * (workers + 1), body, |gate| {
            let measured = self.measure(durations, auto, gate);
            self.stop();
            measured
        })?;
        let done = ended.into_iter().collect::<Result<Vec<Option<T>>, Failure>>()?;
        self.check()?;
        let skipped = self.groups.iter().map(|group| group.skipped.load(Ordering::Relaxed)).sum();
        Ok((Measured { skipped, ..measured? }, done.into_iter().flatten().collect()))
    }

    fn measure(
        &self,
        durations: Durations,
        mut auto: Option<AutoRps>,
        gate: &Gate,
    ) -> Result<Measured, Failure> {
        let mut there = auto.is_none();
        let mut scale = |stage: &Stage| match &mut auto {
            Some(auto) => auto.scale(&stage.rps).map(|()| auto.is_there()),
            None => Ok(true),
        };
        let warms_up = !durations.warmup.is_zero();
        // With strict semantics nothing is measured before the load is what it was to be.
        let begin = |start: &Moment, there: bool| {
            if there || self.semantics == Semantics::Original {
                self.measure_from(start.at_ns);
            }
        };
        let mut start = self.now();
        if !warms_up {
            begin(&start, there);
        }
        gate.open();
        for end_ns in seconds_of(start.at_ns, durations.warmup) {
            self.rest_until(end_ns);
            there = scale(self)?;
        }
        if warms_up {
            start = self.now();
            begin(&start, there);
        }
        // The original notes a rate of zero before the first second, and forgets it where it warms up.
        let first_rate = self.semantics == Semantics::Original && !warms_up;
        let mut rates: Vec<f64> = first_rate.then_some(0.0).into_iter().collect();
        let mut last = start;
        for end_ns in seconds_of(start.at_ns, durations.runtime) {
            self.rest_until(end_ns);
            let now = self.now();
            rates.push(now.loops_since(&last) as f64 / now.seconds_since(&last));
            last = now;
            if scale(self)? && !there {
                there = true;
                rates.clear();
                if self.semantics == Semantics::Strict {
                    start = now;
                    begin(&start, there);
                }
            }
        }
        self.measure_until(last.at_ns);
        if !there && self.semantics == Semantics::Strict {
            return Err(Failure::Refused(
                "the CPUs were not as busy as `auto-rps` says within `runtime`; take a longer one, more workers, or \
                 semantics=original, which counts what came before, too"
                    .into(),
            ));
        }
        Ok(Measured {
            seconds: last.seconds_since(&start),
            loops: last.loops_since(&start),
            rates,
            goal: self.rps.load(Ordering::Relaxed) * self.groups.len() as u64,
            skipped: 0,
        })
    }

    fn now(&self) -> Moment {
        Moment { at_ns: now_ns(), loops: self.loops() }
    }

    /// The invariant: every worker that asked was answered, and every request that was issued was done, or both wait still.
    fn check(&self) -> Result<(), Failure> {
        let sum = |of: &dyn Fn(&Worker) -> u64| -> u64 {
            self.groups.iter().flat_map(|group| &group.workers).map(of).sum()
        };
        let answers: u64 = self.groups.iter().map(|group| group.answers.load(Ordering::Relaxed)).sum();
        let asked = sum(&|worker| worker.counts.asked.load(Ordering::Relaxed));
        let loops = self.loops();
        if self.rps.load(Ordering::Relaxed) > 0 {
            let left = sum(&|worker| worker.requests.len() + worker.counts.given_up.load(Ordering::Relaxed));
            if answers != loops + left {
                return Err(Failure::Invariant(format!(
                    "{answers} requests were issued, {loops} done and {left} left over"
                )));
            }
            return Ok(());
        }
        let left: usize = self.groups.iter().map(|group| group.take_waiting().count()).sum();
        if asked != answers + left as u64 {
            return Err(Failure::Invariant(format!(
                "workers asked {asked} times, were answered {answers} times, and {left} still wait"
            )));
        }
        Ok(())
    }
}

/// A moment, and how many requests had been done by then.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at_ns: u64,
    loops: u64,
}

impl Moment {
    fn seconds_since(&self, before: &Moment) -> f64 {
        (self.at_ns - before.at_ns).max(1) as f64 / 1e9
    }

    fn loops_since(&self, before: &Moment) -> u64 {
        self.loops - before.loops
    }
}

/// The ends of the seconds of which a time consists; of one piece if it is shorter.
fn seconds_of(start_ns: u64, time: Duration) -> impl Iterator<Item = u64> {
    let time_ns = time.as_nanos() as u64;
    let count = (time_ns + SECOND_NS / 2) / SECOND_NS;
    let count = if time_ns > 0 { count.max(1) } else { 0 };
    (1..=count).map(move |nth| start_ns + (time_ns as u128 * nth as u128 / count as u128) as u64)
}

/// Releases the workers of a message thread when that ends, and everybody if it ends before its time.
struct Leaving<'a> {
    stage: &'a Stage,
    group: &'a Group,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.stage.is_stopping() {
            self.stage.stop();
        }
        self.group.release();
    }
}
