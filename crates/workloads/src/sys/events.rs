//! Threads that do one event after another, each of which is timed.

use crate::clock::{SECOND_NS, elapsed_ns, now_ns};
use crate::shared::room_for;
use crate::{Failure, Trial, crew};
use stats::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When a round ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// When so much time has passed; events that run then are finished.
    After(Duration),
    /// When each thread has done one event.
    OneEach,
}

/// What the threads did.
#[derive(Debug)]
pub(super) struct Round {
    start_ns: u64,
    threads: Vec<Done>,
}

/// What one thread did.
#[derive(Debug)]
struct Done {
    end_ns: u64,
    events: u64,
    sum_ns: u64,
    latencies: Histogram,
    /// Whether every event came to the result that it should have.
    right: bool,
}

/// Starts `count` threads that call what `worker` makes for each: one call, one event, which returns whether it came to
/// the result that it should have.
pub(super) fn run<W: FnMut() -> bool>(
    count: u64,
    end: End,
    worker: impl Fn(usize) -> W + Sync,
) -> Result<Round, Failure> {
    room_for(count, 0, 0)?;
    let stop_ns = AtomicU64::new(u64::MAX);
    let body = |index: usize, gate: &crew::Gate| {
        let mut event = worker(index);
        let latencies = Histogram::reaching(SECOND_NS);
        let mut done = Done { end_ns: 0, events: 0, sum_ns: 0, latencies, right: true };
        if gate.wait() {
            work(&mut event, matches!(end, End::OneEach), stop_ns.load(Ordering::Relaxed), &mut done);
        }
        done
    };
    let (start_ns, threads) = crew::run(count as usize, body, |gate| {
        let start_ns = now_ns();
        if let End::After(time) = end {
            stop_ns.store(start_ns.saturating_add(time.as_nanos() as u64), Ordering::Relaxed);
        }
        gate.open();
        start_ns
    })?;
    Ok(Round { start_ns, threads })
}

/// What one thread does. The end of an event is the beginning of the next, so that each costs one look at the clock.
fn work(event: &mut impl FnMut() -> bool, once: bool, stop_ns: u64, done: &mut Done) {
    done.end_ns = now_ns();
    loop {
        done.right &= event();
        let end_ns = now_ns();
        let took_ns = end_ns.saturating_sub(done.end_ns);
        done.latencies.record(took_ns);
        done.sum_ns += took_ns;
        done.events += 1;
        done.end_ns = end_ns;
        if once || end_ns >= stop_ns {
            return;
        }
    }
}

impl Round {
    /// Events of all threads.
    pub fn events(&self) -> u64 {
        self.threads.iter().map(|done| done.events).sum()
    }

    /// The round, if so many sections were `counted` under its locks as its events must have done, `each` so many.
    pub fn if_counted(self, counted: u64, each: u64) -> Result<Round, Failure> {
        let wanted = self.events() * each;
        match counted == wanted {
            true => Ok(self),
            false => Err(Failure::Invariant(format!(
                "{counted} sections were counted under the locks, of {wanted}"
            ))),
        }
    }

    /// Leaves the rate and the latencies.
    pub fn leave(&self, trial: &mut Trial) -> Result<(), Failure> {
        if let Some(index) = self.threads.iter().position(|done| !done.right) {
            return Err(Failure::Invariant(format!("an event of thread {index} came to a wrong result")));
        }
        let mut latencies = Histogram::new();
        self.threads.iter().for_each(|done| latencies.merge(&done.latencies));
        let events = self.events();
        let (Some((min_ns, max_ns)), true) = (latencies.range(), latencies.len() == events) else {
            return Err(Failure::Invariant(format!("{events} events have {} latencies", latencies.len())));
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        trial.sample("rate", events as f64 / self.time_s()?)?;
        trial.sample("latency-min", ms(min_ns))?;
        let sum_ns: u64 = self.threads.iter().map(|done| done.sum_ns).sum();
        trial.sample("latency-mean", ms(sum_ns) / events as f64)?;
        for (name, percent) in [("latency-p95", 95.0), ("latency-p99", 99.0)] {
            trial.sample(name, ms(latencies.percentile(percent).unwrap_or(max_ns).min(max_ns)))?;
        }
        trial.sample("latency-max", ms(max_ns))?;
        trial.histogram("latency", &latencies)?;
        let counts = || self.threads.iter().map(|done| done.events as f64);
        trial.counter("events", events as f64);
        trial.counter("events of the slowest thread", counts().fold(f64::INFINITY, f64::min));
        trial.counter("events of the fastest thread", counts().fold(0.0, f64::max));
        Ok(())
    }

    /// From the start to the end of the last thread.
    pub fn time_s(&self) -> Result<f64, Failure> {
        let end_ns = self.threads.iter().map(|done| done.end_ns).max().unwrap_or(self.start_ns);
        match elapsed_ns(self.start_ns, end_ns)? {
            0 => Err(Failure::Refused("the work took no time by the clock; ask for more of it".into())),
            time_ns => Ok(time_ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Point;

    #[test]
    fn a_wrong_result_fails_the_trial() {
        for wrong in [None, Some(1)] {
            let round = run(2, End::OneEach, |index| move || Some(index) != wrong).unwrap();
            assert_eq!(round.events(), 2);
            let mut trial = Trial::new(Point::from(2), vec![0], 1);
            let left = round.leave(&mut trial);
            assert_eq!(wrong.is_some(), matches!(left, Err(Failure::Invariant(_))), "{left:?}");
        }
    }

    #[test]
    fn threads_work_until_the_time_is_over() {
        let round = run(2, End::After(Duration::from_millis(20)), |_| || true).unwrap();
        assert!(round.time_s().unwrap() >= 0.02 && round.events() > 2);
    }
}
