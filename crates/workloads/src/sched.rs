//! sched-pipe and seccomp-notify, after `perf bench sched`: what they share.
//!
//! Both let pairs of tasks wait for each other in turn. Each pair lives in a process of its own, where it does what
//! perf's process does; the process of the trial only starts them together.

pub mod pipe;
mod seccomp;
pub mod seccomp_notify;

use crate::clock::{elapsed_ns, now_ns};
use crate::process_crew::{self, Gate};
use crate::shared::{Semantics, room_for, semantics, warm_up, with_shared};
use crate::shared_memory::SharedWords;
use crate::{Failure, Original, Trial};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point, counted};
use std::sync::atomic::Ordering::Relaxed;

/// What does the same work: `perf bench sched`.
const ORIGINALS: &[Original] = &[Original::PERF];

/// What the description of one says that the other's does not.
struct Special<'a> {
    name: &'a str,
    summary: &'a str,
    about: &'a str,
    source: &'a str,
    operation: &'a str,
    parameters: Vec<Parameter>,
    requirements: &'a [&'a str],
}

fn description(special: Special) -> Description {
    let mut parameters = vec![Parameter::integer(
        "loops",
        100_000,
        1,
        2_000_000_000,
        &format!("{} of each pair", special.operation),
    )];
    parameters.extend(special.parameters);
    Description {
        name: special.name.into(),
        summary: special.summary.into(),
        about: format!(
            "{}\n\nEvery pair has a process to itself, which does what perf's does. With original semantics the time \
             begins before the second task of a pair is made and ends when it has been waited for. With strict \
             semantics both tasks are there and have met once before the time begins, and it ends with their last \
             exchange. With several pairs it goes from the first beginning to the last end.",
            special.about
        ),
        source: special.source.into(),
        axis: Axis {
            name: "pairs".into(),
            heading: "Case".into(),
            suffix: "-pairs".into(),
            points: vec![Point::from(1)],
            range: Some((1, 10_000)),
        },
        parameters: with_shared(parameters, ORIGINALS),
        metrics: vec![
            Metric::new(
                "rate",
                "ops/s",
                Direction::Higher,
                "operations per second",
                &format!("{} of all pairs per second", special.operation),
            ),
            Metric::new(
                "time-per-op",
                "us",
                Direction::Lower,
                "time per operation in us",
                &format!("the time over the {} of one pair", special.operation),
            )
            .secondary(),
        ],
        requirements: special.requirements.iter().map(|clause| clause.to_string()).collect(),
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Pairs of tasks.
    pub pairs: u64,
    /// Operations of each pair.
    pub loops: u64,
    semantics: Semantics,
    /// Operations that the second task of a pair takes part in: `loops`, except in tests that break the work.
    expected_loops: u64,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let (pairs, loops) = (trial.count()?, params.count("loops")?);
        Ok(Plan { pairs, loops, semantics: semantics(params)?, expected_loops: loops })
    }

    /// Makes sure that the tasks of all pairs fit into every limit, each with two pipes at the most.
    fn make_room(&self, tasks_of_a_pair: u64) -> Result<(), Failure> {
        room_for(0, tasks_of_a_pair * self.pairs, 8)
    }

    /// Warms up, lets all pairs work once, and leaves what came of it. `pair` is what the process of one pair does.
    fn measure(
        &self,
        params: &Params,
        trial: &mut Trial,
        pair: impl Fn(&Start) -> Result<Span, Failure>,
    ) -> Result<(), Failure> {
        warm_up(params, || self.time_ns(&pair).map(drop))?;
        let time_ns = self.time_ns(&pair)?;
        self.leave(time_ns as f64 / 1e3 / self.loops as f64, trial)
    }

    /// Leaves the metrics of a run in which an operation of a pair took `time_per_op_us`.
    pub fn leave(&self, time_per_op_us: f64, trial: &mut Trial) -> Result<(), Failure> {
        trial.sample("rate", self.pairs as f64 * 1e6 / time_per_op_us)?;
        trial.sample("time-per-op", time_per_op_us)
    }

    /// Nanoseconds from the first beginning of a pair to the last end.
    fn time_ns(&self, pair: impl Fn(&Start) -> Result<Span, Failure>) -> Result<u64, Failure> {
        // The first use of the clock looks for it; a process that inherits what was found need not.
        now_ns();
        let pairs = self.pairs as usize;
        let spans = SharedWords::new(2 * pairs).map_err(|error| {
            Failure::Refused(format!("no memory to share with {}: {error}", counted(pairs, "process")))
        })?;
        let body = |index: usize, gate: &Gate| {
            let span = pair(&Start { gate })?;
            let words = spans.chunks_exact(2).nth(index).unwrap_or_default();
            words.iter().zip([span.start_ns, span.end_ns]).for_each(|(word, time)| word.store(time, Relaxed));
            Ok(())
        };
        process_crew::run(pairs, body, |gate| {
            gate.open();
            Ok(())
        })?;
        // They have all been reaped.
        let times = |place| spans.iter().skip(place).step_by(2).map(|word| word.load(Relaxed));
        elapsed_ns(times(0).min().unwrap_or(0), times(1).max().unwrap_or(0))
    }
}

/// The gate at which all pairs wait, where it opens the measured time.
struct Start<'a> {
    gate: &'a Gate,
}

impl Start<'_> {
    /// Waits for the others and gives the time of the beginning.
    fn wait(&self) -> Result<u64, Failure> {
        match self.gate.wait() {
            true => Ok(now_ns()),
            false => Err(Failure::Refused("another pair could not start".into())),
        }
    }
}

/// The measured time of one pair.
#[derive(Debug, Clone, Copy)]
struct Span {
    start_ns: u64,
    end_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Workload, originals};
    use experiment::Outcome;
    use std::collections::BTreeMap;

    pub(super) fn run(
        workload: &dyn Workload,
        pairs: u64,
        set: &[(&str, &str)],
    ) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = workload.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(pairs), vec![0], 1);
        workload.check(&params, &trial)?;
        workload.run(&params, &mut trial)?;
        match trial.into_outcome() {
            Outcome::Done { samples, .. } => Ok(samples),
            missing => panic!("{missing:?}"),
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let both: [&dyn Workload; 2] = [&pipe::SchedPipe, &seccomp_notify::SeccompNotify];
        for workload in both {
            for pairs in [0, 1_000_000_000] {
                let error = run(workload, pairs, &[]).unwrap_err().to_string();
                assert!(error.contains("from 1 to 10000"), "{error}");
            }
            assert!(run(workload, 1, &[("loops", "0")]).is_err());
            let error = run(workload, 2, &[("via", "perf")]).unwrap_err().to_string();
            assert!(error.contains("one pair") || error.contains("not installed"), "{error}");
            assert!(matches!(
                run(workload, 1, &[("via", "perf"), ("semantics", "strict")]),
                Err(Failure::Refused(_))
            ));
        }
    }

    #[test]
    fn perf_is_run_and_read_or_said_to_be_too_old() {
        if originals::on_path("perf").is_none() {
            println!("skipped: perf is not installed");
            return;
        }
        for mode in ["process", "thread"] {
            let samples =
                run(&pipe::SchedPipe, 1, &[("via", "perf"), ("mode", mode), ("loops", "100")]).unwrap();
            assert!((samples["rate"][0] * samples["time-per-op"][0] / 1e6 - 1.0).abs() < 1e-9);
        }
        match run(&seccomp_notify::SeccompNotify, 1, &[("via", "perf"), ("loops", "100")]) {
            Ok(samples) => assert!(samples["rate"][0] > 0.0),
            Err(error) => assert!(error.to_string().contains("Linux 6.6"), "{error}"),
        }
    }
}
