//! `sys-cpu`, `sys-threads` and `sys-mutex`: the tests of sysbench that need no server.

pub mod cpu;
mod events;
pub mod mutex;
pub mod threads;

use crate::originals::sysbench::Test;
use crate::shared::{room_for, with_shared};
use crate::{Failure, Original, Trial, originals};
use events::{End, Round};
use experiment::Direction::{Higher, Lower};
use experiment::{Axis, Description, Metric, Parameter, Params, Point};
use std::time::Duration;

/// What does the same work.
const ORIGINALS: &[Original] = &[Original::SYSBENCH];

/// More threads than any kernel takes.
const THREADS_MAX: u64 = 1 << 22;

/// What the description of one of them says that the others' do not.
struct Special<'a> {
    name: &'a str,
    summary: &'a str,
    about: &'a str,
    quirks: &'a str,
    parameters: Vec<Parameter>,
    metrics: Vec<Metric>,
}

fn description(special: Special) -> Description {
    let test = special.name.trim_start_matches("sys-");
    let ms = |name: &str, what: &str| {
        Metric::new(
            name,
            "ms",
            Lower,
            &format!("{what} event latency in ms"),
            &format!("the {what} time of an event"),
        )
        .secondary()
    };
    let mut metrics = vec![Metric::new(
        "rate",
        "events/s",
        Higher,
        "events per second",
        "events of all threads per second",
    )];
    metrics.extend(special.metrics);
    metrics.extend([
        ms("latency-min", "shortest"),
        ms("latency-mean", "mean"),
        ms("latency-p95", "95th percentile"),
        ms("latency-p99", "99th percentile"),
        ms("latency-max", "longest"),
    ]);
    Description {
        name: special.name.into(),
        summary: special.summary.into(),
        about: special.about.into(),
        source: format!("`sysbench {test}` of sysbench 1.0.20. {}", special.quirks),
        axis: Axis {
            name: "threads".into(),
            heading: "Threads".into(),
            suffix: String::new(),
            points: [1, 2, 4, 8].map(Point::from).to_vec(),
            range: Some((1, THREADS_MAX)),
        },
        parameters: with_shared(special.parameters, ORIGINALS),
        metrics,
        requirements: vec!["as many threads as the point says".into(), "sysbench for `via`".into()],
    }
}

fn runtime() -> Parameter {
    Parameter::decimal("runtime", 10.0, 0.001, 86_400.0, "seconds for which the threads work")
}

/// The lock that the threads share, the C library's mutex unless another is named.
fn lock() -> Parameter {
    let lock = Parameter::choice("lock", &locks::names(), "which lock; `kduel list locks` says what each is");
    Parameter { default: "pthread".into(), ..lock }
}

/// Lets `work` run for the warm-up time and then to the end that counts, and leaves what the second run yielded.
fn measure(
    params: &Params,
    trial: &mut Trial,
    end: End,
    mut work: impl FnMut(End) -> Result<Round, Failure>,
) -> Result<(), Failure> {
    let warmup = crate::shared::warmup(params)?;
    if !warmup.is_zero() {
        work(End::After(warmup))?;
    }
    work(end)?.leave(trial)
}

/// The end of a run by time.
fn after_runtime(params: &Params) -> Result<End, Failure> {
    Ok(End::After(Duration::from_secs_f64(params.decimal("runtime")?)))
}

/// Whether the original is there and can do its `test`, if it is asked for, or else whether all threads fit.
fn check(test: &Test, params: &Params, trial: &Trial) -> Result<(), Failure> {
    match originals::wanted(params, ORIGINALS)? {
        Some(original) => test.check(original, params, trial),
        None => room_for(trial.count()?, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use experiment::Outcome;
    use std::collections::BTreeMap;

    fn run(
        workload: &dyn Workload,
        threads: u64,
        set: &[(&str, &str)],
    ) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = workload.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(threads), vec![0], 1);
        workload.run(&params, &mut trial)?;
        match trial.into_outcome() {
            Outcome::Done { samples, .. } => Ok(samples),
            missing => panic!("{missing:?}"),
        }
    }

    type Short = (&'static dyn Workload, &'static [(&'static str, &'static str)]);

    const SHORT: &[Short] = &[
        (&cpu::SysCpu, &[("runtime", "0.05"), ("max-prime", "1000")]),
        (&threads::SysThreads, &[("runtime", "0.05"), ("yields", "20")]),
        (&mutex::SysMutex, &[("locks", "200"), ("loops", "100")]),
    ];

    #[test]
    fn each_yields_a_rate_and_ordered_latencies() {
        for (workload, set) in SHORT {
            for threads in [1, 3] {
                let samples = run(*workload, threads, set).unwrap();
                let name = workload.describe().name;
                assert!(samples["rate"][0] > 0.0, "{name}");
                let latencies =
                    ["min", "p95", "p99", "max"].map(|what| samples[&format!("latency-{what}")][0]);
                assert!(latencies.is_sorted() && latencies[0] > 0.0, "{name}: {latencies:?}");
                let mean = samples["latency-mean"][0];
                assert!((latencies[0]..=latencies[3]).contains(&mean), "{name}: {mean} of {latencies:?}");
            }
        }
    }

    #[test]
    fn every_lock_protects_what_it_should() {
        for lock in ["tas", "mcs", "futex-3-state", "pthread-pi"] {
            run(&threads::SysThreads, 2, &[("runtime", "0.02"), ("yields", "5"), ("lock", lock)]).unwrap();
            run(&mutex::SysMutex, 2, &[("locks", "300"), ("loops", "10"), ("lock", lock)]).unwrap();
        }
    }

    #[test]
    fn zero_threads_and_too_many_are_refused_with_nothing_left() {
        for (workload, set) in SHORT {
            for threads in [0, THREADS_MAX + 1] {
                let error = run(*workload, threads, set).unwrap_err().to_string();
                assert!(error.contains("from 1 to 4194304"), "{error}");
            }
            let params = workload.describe().params(&BTreeMap::new()).unwrap();
            let most = Trial::new(Point::from(THREADS_MAX), vec![0], 1);
            assert!(matches!(workload.check(&params, &most), Err(Failure::Refused(_))));
        }
        alone("sys::tests::zero_threads_and_too_many_are_refused_with_nothing_left", || {
            if !limit_tasks(8) {
                return;
            }
            for (workload, set) in SHORT {
                let error = leaving_nothing(|| run(*workload, 64, set)).unwrap_err().to_string();
                assert!(error.contains("64"), "{error}");
            }
        });
    }

    #[test]
    fn the_warm_up_is_not_counted() {
        let set = [("runtime", "0.02"), ("max-prime", "500"), ("warmup", "0.05")];
        assert!(run(&cpu::SysCpu, 1, &set).is_ok());
        // The one event per thread of the measured run is all that is counted.
        let samples =
            run(&mutex::SysMutex, 2, &[("locks", "50"), ("loops", "0"), ("warmup", "0.02")]).unwrap();
        assert!((samples["rate"][0] * samples["time"][0] - 2.0).abs() < 1e-9);
    }
}
