//! hackbench of rt-tests and `perf bench sched messaging`.

use super::{Original, decimal, perf, unread};
use crate::hackbench::{Plan, Transport};
use crate::shared::Mode;
use crate::{Failure, Trial};

/// Finds the original; what is returned runs it once, and gives the seconds that it printed.
pub fn prepare(
    original: Original,
    plan: &Plan,
    trial: &mut Trial,
) -> Result<Box<dyn FnMut() -> Result<f64, Failure>>, Failure> {
    let by_perf = original == Original::PERF;
    let (program, arguments) = match by_perf {
        true => (perf(trial)?, perf_arguments(plan)?),
        false => (original.find()?, rt_tests_arguments(plan)),
    };
    if !by_perf && let Ok(help) = program.run(&["--help"]) {
        trial.note(format!("measured by {}", help.lines().next().unwrap_or("hackbench").trim()));
    }
    trial.note("the original cuts its time off to whole milliseconds");
    Ok(Box::new(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        time_s(&program.run(&arguments)?)
    }))
}

fn rt_tests_arguments(plan: &Plan) -> Vec<String> {
    let Plan { groups, fds, loops, datasize, .. } = plan;
    // Short options, since rt-tests 2.4 misreads `--loops=100 --threads --pipe`.
    let mut arguments = vec![
        format!("-g{groups}"),
        format!("-f{fds}"),
        format!("-l{loops}"),
        format!("-s{datasize}"),
        if plan.mode == Mode::Thread { "-T" } else { "-P" }.into(),
    ];
    if plan.transport == Transport::Pipe {
        arguments.push("-p".into());
    }
    arguments
}

fn perf_arguments(plan: &Plan) -> Result<Vec<String>, Failure> {
    if plan.fds != 20 || plan.datasize != 100 {
        return Err(Failure::Refused(
            "`perf bench sched messaging` always has fds=20 and datasize=100; leave them so, or take \
             via=rt-tests"
                .into(),
        ));
    }
    let mut arguments = vec![
        "bench".into(),
        "sched".into(),
        "messaging".into(),
        format!("--group={}", plan.groups),
        format!("--nr_loops={}", plan.loops),
    ];
    if plan.mode == Mode::Thread {
        arguments.push("--thread".into());
    }
    if plan.transport == Transport::Pipe {
        arguments.push("--pipe".into());
    }
    Ok(arguments)
}

/// The time in the output of either: `Time: 0.048`, or `     Total time: 0.060 [sec]`.
fn time_s(output: &str) -> Result<f64, Failure> {
    let said = |line: &str| {
        let (head, rest) = line.split_once(':')?;
        let value = rest.trim().strip_suffix("[sec]").unwrap_or(rest);
        matches!(head.trim(), "Time" | "Total time").then(|| decimal(value))?
    };
    let time_s = output.lines().rev().find_map(said).filter(|time_s| *time_s >= 0.0);
    time_s.ok_or_else(|| unread("the original", "the time", output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_originals_are_read() {
        let rt_tests = "Running in process mode with 1 groups using 40 file descriptors each (== 40 tasks)\n\
                        Each sender will pass 100 messages of 100 bytes\nTime: 0.048\n";
        assert_eq!(time_s(rt_tests).unwrap(), 0.048);
        let perf = "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver processes per group\n\
                    # 1 groups == 40 processes run\n\n     Total time: 0.060 [sec]\n";
        assert_eq!(time_s(perf).unwrap(), 0.060);
    }

    #[test]
    fn a_decimal_comma_and_lines_around_it_do_no_harm() {
        assert_eq!(time_s("Time: 12,345\nwarning: the clock is slow\n").unwrap(), 12.345);
    }

    #[test]
    fn what_cannot_be_read_is_quoted() {
        for output in ["Time: soon\n", "Time: nan\n", "Time: -1\n", "longest: 3 Time\n"] {
            let error = time_s(output).unwrap_err().to_string();
            assert!(error.contains(output.trim()), "{error}");
        }
        assert!(time_s("").unwrap_err().to_string().contains("nothing"));
    }
}
