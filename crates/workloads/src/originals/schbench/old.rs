//! The versions until 2023-04.

use super::page::{Page, named};
use crate::schbench::old;
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;

/// Runs a schbench until 2023-04, and leaves what it printed.
///
/// # Errors
/// When it is not there or a newer one, and when what it prints is no result.
pub fn run(params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let text = super::run(&arguments(params, trial)?, trial)?;
    let page = Page::read(&text)?;
    if page.table("Wakeup Latencies").is_some() {
        return Err(Failure::Refused(
            "the schbench on PATH is one of 2023-04 or later; build an older one, such as e4aa540, and put it first on \
             PATH, or take the workload schbench"
                .into(),
        ));
    }
    let table = page.wanted("Latency")?;
    page.leave("Latency", named(&old::FIGURES, ""), trial)?;
    match table.samples {
        Some(samples) => trial.sample("rps", samples as f64 / params.decimal("runtime")?),
        None => Ok(()),
    }
}

/// The arguments for a schbench until 2023-04.
///
/// # Errors
/// When a parameter has no counterpart there.
pub fn arguments(params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
    let mut arguments = super::common_arguments(params, trial.count()?)?;
    let [rps, auto_rps, pipe] = ["rps", "auto-rps", "pipe"].map(|name| params.count(name));
    if (rps? > 0 || auto_rps? > 0 || pipe? > 0) && !warmup(params)?.is_zero() {
        return Err(Failure::Refused(
            "this schbench does not warm up with `rps`, `auto-rps` or `pipe`; add warmup=0, or take via=kduel".into(),
        ));
    }
    arguments.push(format!("-w{}", warmup(params)?.as_secs()));
    if params.count("pipe")? == 0 {
        arguments.push(format!("-s{}", params.count("sleeptime-us")?));
        arguments.push(format!("-c{}", params.count("cputime-us")?));
    }
    if params.flag("jitter")? {
        arguments.push("-j".into());
    }
    Ok(arguments)
}
