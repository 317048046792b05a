//! The workloads after UnixBench: what they share. Copies, each a process, loop for a time and count.

pub mod context;
pub mod exec_loop;
pub mod pipe_throughput;
pub mod spawn;
pub mod syscall_mix;

use crate::counting::{self, Looping, Task};
use crate::shared::{Mode, room_for, with_shared};
use crate::{Failure, Original, Trial};
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point};

/// What the description of one of them says that the others' do not.
struct Special<'a> {
    name: &'a str,
    summary: &'a str,
    about: &'a str,
    source: &'a str,
    parameters: Vec<Parameter>,
    runtime_s: f64,
    originals: &'a [Original],
    requirement: &'a str,
}

fn description(special: Special) -> Description {
    let mut parameters = special.parameters;
    parameters.extend(counting::parameters(special.runtime_s));
    let mut requirements = vec![special.requirement.to_string()];
    requirements.extend(special.originals.iter().map(|original| format!("{} for `via`", original.program)));
    Description {
        name: special.name.into(),
        summary: special.summary.into(),
        about: format!(
            "{}\n\nEach copy is a process. All start at once and loop until the time is over; the rates of all \
             copies are added up. Nothing differs between the semantics.",
            special.about
        ),
        source: format!(
            "UnixBench 5 and 6: {}. UnixBench takes the geometric mean over passes and drops the worst third of \
             them; kduel keeps every trial.",
            special.source
        ),
        axis: Axis {
            name: "copies".into(),
            heading: "Copies".into(),
            suffix: String::new(),
            points: [1, 2].map(Point::from).to_vec(),
            range: Some((1, 10_000)),
        },
        parameters: with_shared(parameters, special.originals),
        metrics: vec![Metric::new(
            "rate",
            "loops/s",
            Direction::Higher,
            "loops per second",
            "loops of all copies per second",
        )],
        requirements,
    }
}

/// What each copy needs at a time.
struct Needs {
    processes: u64,
    files: u64,
}

impl Needs {
    /// Whether it is there for the copies that the point of `trial` asks for.
    fn check(&self, trial: &Trial) -> Result<(), Failure> {
        room_for(0, trial.count()?.saturating_mul(self.processes), self.files)
    }
}

/// Lets the copies that the point of `trial` asks for do `body`, and leaves what they counted.
fn measure(
    params: &Params,
    trial: &mut Trial,
    needs: Needs,
    body: impl Fn(&Task) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    needs.check(trial)?;
    let copies = trial.count()?;
    let counted = Looping::new(Mode::Process, copies, params)?.run(body)?;
    trial.sample("rate", counted.rate_per_s())?;
    let per_s = |count: u64| count as f64 * 1e9 / counted.elapsed_ns.max(1) as f64;
    let (slowest, fastest) = counted.extremes();
    trial.counter("loops/s of the slowest copy", per_s(slowest));
    trial.counter("loops/s of the fastest copy", per_s(fastest));
    trial.counter("batch", params.count("batch")? as f64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::patiently;
    use experiment::Outcome;
    use std::time::Duration;

    const ALL: [&dyn Workload; 5] = [
        &spawn::Spawn,
        &exec_loop::ExecLoop,
        &context::Context,
        &pipe_throughput::PipeThroughput,
        &syscall_mix::SyscallMix,
    ];

    /// Two copies.
    pub(super) fn looping(runtime: Duration) -> Looping {
        Looping {
            mode: Mode::Process,
            tasks: 2,
            places: Vec::new(),
            warmup: Duration::ZERO,
            runtime,
            batch: 1,
        }
    }

    fn run(workload: &dyn Workload, copies: u64, set: &[(&str, &str)]) -> Result<Outcome, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = workload.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(copies), machine::cpus::allowed().unwrap().to_vec(), 1);
        workload.check(&params, &trial)?;
        workload.run(&params, &mut trial)?;
        Ok(trial.into_outcome())
    }

    #[test]
    fn every_workload_counts_its_loops_and_leaves_nothing() {
        alone("unixbench::tests::every_workload_counts_its_loops_and_leaves_nothing", || {
            for workload in ALL {
                for batch in ["1", "3"] {
                    let outcome = patiently(|runtime| {
                        let runtime_s = runtime.as_secs_f64().to_string();
                        let mut set =
                            vec![("runtime", runtime_s.as_str()), ("batch", batch), ("warmup", "0.01")];
                        if workload.describe().name == "exec-loop" {
                            set.push(("chain", "3"));
                        }
                        leaving_nothing(|| run(workload, 2, &set))
                    })
                    .unwrap();
                    let Outcome::Done { samples, counters, .. } = outcome else { panic!("{outcome:?}") };
                    let sum =
                        counters["loops/s of the slowest copy"] + counters["loops/s of the fastest copy"];
                    let rate = samples["rate"][0];
                    assert!(rate > 0.0 && (rate / sum - 1.0).abs() < 1e-9, "{rate} {sum}");
                }
            }
            for place in ["same", "apart"] {
                let placed = |runtime: Duration| {
                    let runtime_s = runtime.as_secs_f64().to_string();
                    run(&context::Context, 1, &[("runtime", &runtime_s), ("place", place)])
                };
                match patiently(placed) {
                    Ok(_) => {}
                    Err(error) => assert!(error.to_string().contains("needs two CPUs"), "{error}"),
                }
            }
        });
    }

    #[test]
    fn copies_and_parameters_that_cannot_be_are_refused() {
        for workload in ALL {
            let error = run(workload, 0, &[]).unwrap_err().to_string();
            assert!(error.contains("from 1 to 10000"), "{error}");
            // More than any limit on tasks; it is told before the first trial.
            let error = run(workload, 1_000_000_000, &[]).unwrap_err().to_string();
            assert!(error.contains("are needed"), "{error}");
            assert!(run(workload, 1, &[("batch", "0")]).is_err());
            assert!(run(workload, 1, &[("runtime", "0")]).is_err());
        }
    }
}
