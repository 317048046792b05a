//! `perf bench sched pipe` and `perf bench sched seccomp-notify`.

use super::{Original, Program, decimal, perf, unread};
use crate::sched::Plan;
use crate::shared::warm_up;
use crate::{Failure, Trial};
use experiment::Params;

/// Makes sure that perf has `benchmark` and can do what is planned.
///
/// # Errors
/// When it cannot.
pub fn check(benchmark: &str, plan: &Plan) -> Result<(), Failure> {
    fit(&Original::PERF.find()?, benchmark, plan)
}

/// Runs `benchmark` with `option` besides its loops, and leaves what it printed.
///
/// # Errors
/// When perf is not there or cannot do what is planned, and when what it prints is no result.
pub fn measure(
    benchmark: &str,
    option: Option<&str>,
    plan: &Plan,
    params: &Params,
    trial: &mut Trial,
) -> Result<(), Failure> {
    let perf = perf(trial)?;
    fit(&perf, benchmark, plan)?;
    let loops = format!("--loop={}", plan.loops);
    let mut arguments = vec!["bench", "sched", benchmark, loops.as_str()];
    arguments.extend(option);
    warm_up(params, || perf.run(&arguments).map(drop))?;
    plan.leave(time_per_op_us(&perf.run(&arguments)?)?, trial)
}

fn fit(perf: &Program, benchmark: &str, plan: &Plan) -> Result<(), Failure> {
    if plan.pairs != 1 {
        return Err(Failure::Refused(format!(
            "`perf bench sched {benchmark}` has one pair; take the point 1, or via=kduel"
        )));
    }
    // Without the name of a benchmark it lists those that it has.
    if !has(&perf.run(&["bench", "sched"])?, benchmark) {
        return Err(Failure::Refused(format!(
            "this perf has no `bench sched {benchmark}`: pipe is as old as `perf bench`, and seccomp-notify came with \
             Linux 6.6; take a newer perf, or via=kduel"
        )));
    }
    Ok(())
}

fn has(list: &str, benchmark: &str) -> bool {
    list.lines().any(|line| line.split(':').next().is_some_and(|name| name.trim() == benchmark))
}

/// The time of an operation, from a line such as `      44.096600 usecs/op`.
fn time_per_op_us(output: &str) -> Result<f64, Failure> {
    let figure = output.lines().find_map(|line| decimal(line.trim().strip_suffix("usecs/op")?));
    figure.filter(|us| *us > 0.0).ok_or_else(|| unread("perf", "usecs/op", output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_operation_is_read() {
        let output = "# Running 'sched/pipe' benchmark:\n# Executed 10000 pipe operations between two processes\n\n\
                      \x20    Total time: 0.440 [sec]\n\n      44.096600 usecs/op\n          22677 ops/sec\n";
        assert_eq!(time_per_op_us(output).unwrap(), 44.0966);
        for bad in ["", "soon usecs/op\n", "0.000000 usecs/op\n", "nan usecs/op\n"] {
            assert!(time_per_op_us(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_list_of_benchmarks_is_read() {
        let list = "\n        # List of available benchmarks for collection 'sched':\n\n     messaging: Benchmark for \
                    scheduling and IPC\n          pipe: Benchmark for pipe() between two processes\n";
        assert!(has(list, "pipe") && !has(list, "seccomp-notify") && !has(list, "Benchmark"));
    }
}
