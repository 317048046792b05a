//! STREAM as its users build it: its sizes are fixed when it is compiled, and its threads are set by the environment.

use super::{Original, Program, decimal, last_line, on_path, unread};
use crate::shared::warm_up;
use crate::stream::{Kernel, Plan};
use crate::{Failure, Trial};
use experiment::Params;

/// What the program prints above its result, and so holds as text.
const HEAD_OF_RESULT: &str = "Best Rate MB/s";

/// STREAM, ready to run a plan.
pub struct Prepared<'a> {
    program: Program,
    plan: &'a Plan,
}

impl<'a> Prepared<'a> {
    /// Finds it and makes sure that it can do what is planned, as far as that can be known without running it.
    ///
    /// # Errors
    /// When it is not there, when another program has its name, and when the plan asks for what it does not have.
    pub fn new(original: Original, plan: &'a Plan) -> Result<Prepared<'a>, Failure> {
        if plan.non_temporal {
            return Err(Failure::Refused(
                "STREAM stores as its compiler wants; leave out non-temporal=on, or take via=kduel".into(),
            ));
        }
        let program = original.find()?;
        // ImageMagick has a program of this name.
        let path = on_path(original.program).unwrap_or_default();
        let bytes = std::fs::read(&path)
            .map_err(|error| Failure::Refused(format!("cannot read {}: {error}", path.display())))?;
        if !bytes.windows(HEAD_OF_RESULT.len()).any(|window| window == HEAD_OF_RESULT.as_bytes()) {
            return Err(Failure::Refused(format!(
                "{} is another program than STREAM; put the directory of STREAM before it in PATH",
                path.display()
            )));
        }
        let spin = plan.spin.to_string();
        let mut program =
            program.with("OMP_NUM_THREADS", &plan.threads.to_string()).with("GOMP_SPINCOUNT", &spin);
        if let Some(cpus) = &plan.pinned_to {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            program = program.with("GOMP_CPU_AFFINITY", &cpus.join(" "));
        }
        Ok(Prepared { program, plan })
    }

    /// Runs it and leaves what it printed.
    ///
    /// # Errors
    /// When it does not end well, was built for something else than is planned, or found its arrays wrong.
    pub fn measure(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        warm_up(params, || self.program.run(&[]).map(drop))?;
        let output = self.program.run(&[])?;
        fits(&output, self.plan)?;
        for kernel in Kernel::ALL {
            let (rate, [average_s, worst_s]) =
                rate_and_times(&output, kernel).ok_or_else(|| unread("STREAM", kernel.row(), &output))?;
            self.plan.leave(
                kernel,
                [rate, self.plan.rate(kernel, average_s), self.plan.rate(kernel, worst_s)],
                trial,
            )?;
        }
        let version = output.lines().find(|line| line.starts_with("STREAM version"));
        trial.note(format!("measured by {}", version.unwrap_or("STREAM of an unknown version")));
        Ok(())
    }
}

/// Makes sure that what was run is what was planned, and that its arrays came out right.
fn fits(output: &str, plan: &Plan) -> Result<(), Failure> {
    let fixed = [
        ("Array size =", "elements", plan.elements, "-DSTREAM_ARRAY_SIZE"),
        ("Each kernel will be executed", "iterations", plan.iterations, "-DNTIMES"),
    ];
    for (head, parameter, planned, macro_name) in fixed {
        let built = number_after(output, head).ok_or_else(|| unread("STREAM", head, output))?;
        if built != planned {
            return Err(Failure::Refused(format!(
                "this STREAM was built for {parameter}={built}, and {planned} are asked for; set {parameter}={built}, \
                 or build it with {macro_name}={planned}"
            )));
        }
    }
    let threads = number_after(output, "Number of Threads counted =").unwrap_or(1);
    if threads != plan.threads {
        return Err(Failure::Refused(format!(
            "STREAM ran with {threads} threads instead of {}; build it with -fopenmp for more than one",
            plan.threads
        )));
    }
    if !output.contains("Solution Validates") {
        let complaint =
            output.lines().find(|line| line.contains("Failed Validation")).or_else(|| last_line(output));
        return Err(Failure::Invariant(format!("STREAM said: {}", complaint.unwrap_or("nothing").trim())));
    }
    Ok(())
}

/// The whole number behind `head`, with which a line begins.
fn number_after(output: &str, head: &str) -> Option<usize> {
    let rest = output.lines().find_map(|line| line.strip_prefix(head))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The best rate in MB/s, and the mean and the longest time in seconds, of a line such as
/// `Copy:           12345.6     0.013107     0.012960     0.013312`.
fn rate_and_times(output: &str, kernel: Kernel) -> Option<(f64, [f64; 2])> {
    let rest = output.lines().find_map(|line| line.strip_prefix(kernel.row())?.strip_prefix(':'))?;
    let numbers: Vec<f64> = rest.split_whitespace().map_while(decimal).collect();
    match numbers[..] {
        [rate, average_s, _, worst_s] if numbers.iter().all(|number| *number > 0.0) => {
            Some((rate, [average_s, worst_s]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::alone;
    use experiment::{Outcome, Point};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    type Samples = BTreeMap<String, Vec<f64>>;

    /// What STREAM prints for 1000 elements, 3 rounds and 2 threads.
    const OUTPUT: &str = "\
STREAM version $Revision: 5.10 $
This system uses 8 bytes per array element.
Array size = 1000 (elements), Offset = 0 (elements)
Each kernel will be executed 3 times.
 The *best* time for each kernel (excluding the first iteration)
Number of Threads requested = 2
Number of Threads counted = 2
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           16000.0     0.000002     0.000001     0.000004
Scale:           8000.0     0.000002     0.000002     0.000002
Add:            12000.0     0.000003     0.000002     0.000004
Triad:          24000.0     0.000001     0.000001     0.000003
Solution Validates: avg error less than 1.000000e-13 on all three arrays
";

    /// Runs the workload through a program `stream` that prints `output`, and what it sees of its environment.
    fn by_program(output: &str, set: &[(&str, &str)]) -> Result<(Samples, Vec<String>), Failure> {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join("stream");
        let script = format!(
            "#!/bin/sh\ncat <<'END'\n{output}END\necho \"$OMP_NUM_THREADS $GOMP_SPINCOUNT $GOMP_CPU_AFFINITY\" \
             >{}/seen\n",
            place.path().display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([place.path(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
        // SAFETY: The test has a process to itself, with a single thread.
        unsafe { std::env::set_var("PATH", path) };
        let mut all = vec![("via", "stream"), ("elements", "1000"), ("iterations", "3")];
        all.extend(set);
        let set = all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let workload = crate::find("stream").unwrap();
        let params = workload.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(2), vec![0, 1], 1);
        workload.check(&params, &trial)?;
        workload.run(&params, &mut trial)?;
        let seen = fs::read_to_string(place.path().join("seen")).unwrap().trim().to_string();
        match trial.into_outcome() {
            Outcome::Done { samples, notes, .. } => Ok((samples, [notes, vec![seen]].concat())),
            missing => panic!("{missing:?}"),
        }
    }

    #[test]
    fn stream_is_run_and_read() {
        alone("originals::stream::tests::stream_is_run_and_read", || {
            let (samples, notes) = by_program(OUTPUT, &[("spin", "7")]).unwrap();
            assert_eq!((samples["copy"][0], samples["triad"][0]), (16000.0, 24000.0));
            assert!((samples["copy-average"][0] - 8000.0).abs() < 1e-9);
            assert!((samples["add-worst"][0] - 6000.0).abs() < 1e-9);
            assert!(notes.contains(&"measured by STREAM version $Revision: 5.10 $".to_string()), "{notes:?}");
            assert_eq!(notes.last().unwrap(), "2 7");
            let (_, notes) = by_program(OUTPUT, &[("pin", "on")]).unwrap();
            assert_eq!(notes.last().unwrap(), "2 300000 0 1");
        });
    }

    #[test]
    fn what_was_built_otherwise_or_went_wrong_is_no_result() {
        alone("originals::stream::tests::what_was_built_otherwise_or_went_wrong_is_no_result", || {
            let said = |from: &str, to: &str, set: &[(&str, &str)]| {
                by_program(&OUTPUT.replace(from, to), set).unwrap_err().to_string()
            };
            let error = said("size = 1000", "size = 2000", &[]);
            assert!(
                error.contains("set elements=2000") && error.contains("-DSTREAM_ARRAY_SIZE=1000"),
                "{error}"
            );
            assert!(said("executed 3", "executed 10", &[]).contains("set iterations=10"));
            assert!(said("counted = 2", "counted = 1", &[]).contains("-fopenmp"));
            assert!(said("Number of Threads counted = 2\n", "", &[]).contains("-fopenmp"));
            let wrong = "Failed Validation on array a[], AvgRelAbsErr > epsilon (1.000000e-13)";
            assert!(
                said("Solution Validates", wrong, &[])
                    .contains("STREAM said: Failed Validation on array a[]")
            );
            assert!(said("Triad: ", "Quad: ", &[]).contains("could not be read (Triad)"));
            assert!(said("24000.0", "inf", &[]).contains("could not be read (Triad)"));
            assert!(said("Best Rate", "Good Rate", &[]).contains("another program than STREAM"));
            assert!(said("", "", &[("non-temporal", "on")]).contains("take via=kduel"));
            assert!(said("", "", &[("semantics", "strict")]).contains("original semantics"));
        });
    }
}
