//! schbench of its author: versions until 2023-04, which print one table of latencies, and those since, which print three.

pub mod new;
pub mod old;
mod page;
#[cfg(test)]
mod tests;

use super::{Original, Program};
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;

/// Runs it with these arguments and returns all that it printed.
fn run(arguments: &[String], trial: &mut Trial) -> Result<String, Failure> {
    let program: Program = Original::SCHBENCH.find()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let printed = program.run_aloud(&arguments)?;
    // No version of it says which it is.
    trial.note(format!("measured by `{} {}`", program.path().display(), arguments.join(" ")));
    Ok(format!("{}\n{}", printed.stdout, printed.stderr))
}

/// The arguments that both take. Its run time has the warm-up in it.
fn common_arguments(params: &Params, workers: u64) -> Result<Vec<String>, Failure> {
    let (runtime_s, warmup_s) = (params.decimal("runtime")?, warmup(params)?.as_secs_f64());
    if runtime_s.fract() != 0.0 || warmup_s.fract() != 0.0 || runtime_s < 1.0 {
        return Err(Failure::Refused(format!(
            "schbench takes whole seconds, and runtime={runtime_s} warmup={warmup_s} are not; change them, or take \
             via=kduel"
        )));
    }
    let mut arguments = vec![
        format!("-m{}", params.count("message-threads")?),
        format!("-t{workers}"),
        format!("-r{}", runtime_s + warmup_s),
    ];
    for (option, name) in [("-R", "rps"), ("-A", "auto-rps"), ("-p", "pipe")] {
        match params.count(name)? {
            0 => {}
            value => arguments.push(format!("{option}{value}")),
        }
    }
    Ok(arguments)
}
