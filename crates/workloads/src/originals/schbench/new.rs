//! The versions since 2023-04.

use super::page::{Page, named};
use crate::originals::unread;
use crate::schbench::{GIB, new};
use crate::shared::warmup;
use crate::{Failure, Trial};
use experiment::Params;
use machine::{Root, cpus};

/// Runs a schbench of 2023-04 or later, and leaves what it printed.
///
/// # Errors
/// When it is not there or an older one, and when what it prints is no result.
pub fn run(params: &Params, trial: &mut Trial) -> Result<(), Failure> {
    let text = super::run(&arguments(params, trial)?, trial)?;
    let page = Page::read(&text)?;
    if page.table("Latency").is_some() {
        return Err(Failure::Refused(
            "the schbench on PATH is one of before 2023-04; build a newer one and put it first on PATH, or take the \
             workload schbench-old"
                .into(),
        ));
    }
    page.leave("Wakeup Latencies", named(&new::FIGURES, new::WAKEUP), trial)?;
    if params.count("pipe")? > 0 {
        let per_s = page
            .number(r"^avg worker transfer: ([0-9.]+) ops/sec")?
            .ok_or_else(|| unread("schbench", "transfers", &text))?;
        trial.sample("transfers", per_s)?;
        return trial.sample("bandwidth", per_s * params.decimal("pipe")? / GIB);
    }
    if page.table("Request Latencies").is_some() {
        page.leave("Request Latencies", named(&new::FIGURES, new::REQUEST), trial)?;
    }
    page.leave("RPS", new::RPS_FIGURES.map(|(name, what)| (name.into(), what)), trial)?;
    for (name, pattern) in [
        ("rps-average", r"^average rps: ([0-9.]+)"),
        ("rps-goal", r"^final rps goal was ([0-9.]+)"),
        ("message-delay", r"^sched delay: message ([0-9]+) "),
        ("worker-delay", r"^sched delay: .* worker ([0-9]+) "),
    ] {
        if let Some(value) = page.number(pattern)? {
            trial.sample(name, value)?;
        }
    }
    Ok(())
}

/// The arguments for a schbench of 2023-04 or later.
///
/// # Errors
/// When a parameter has no counterpart there.
pub fn arguments(params: &Params, trial: &Trial) -> Result<Vec<String>, Failure> {
    let mut arguments = super::common_arguments(params, trial.count()?)?;
    let warmup_s = warmup(params)?.as_secs();
    if warmup_s > 0 {
        if params.decimal("runtime")? + (warmup_s as f64) < 30.0 {
            return Err(Failure::Refused(
                "schbench does not warm up if warmup and runtime are less than 30 s together; take more, warmup=0, or \
                 via=kduel"
                    .into(),
            ));
        }
        arguments.push(format!("-w{warmup_s}"));
    }
    if params.flag("touch")? {
        return Err(Failure::Refused(
            "schbench does not write its matrices; leave out `touch`, or take via=kduel".into(),
        ));
    }
    if params.text("slice")? != "off" {
        return Err(Failure::Refused(
            "schbench knows nothing of the time slice extension; leave out `slice`, or take via=kduel".into(),
        ));
    }
    for (option, name) in [("-F", "cache-footprint-kb"), ("-n", "operations"), ("-s", "sleep-us")] {
        arguments.push(format!("{option}{}", params.count(name)?));
    }
    if !params.flag("locking")? {
        arguments.push("-L".into());
    }
    if params.flag("calibrate")? {
        arguments.push("-C".into());
    }
    if params.count("split")? != 100 {
        arguments.push(format!("--split={}", params.count("split")?));
    }
    for (option, name) in [("-M", "message-cpus"), ("-W", "worker-cpus")] {
        match params.text(name)? {
            "" => {}
            "auto" if !uses_all_cpus(trial)? => {
                return Err(Failure::Refused(format!(
                    "schbench's {name}=auto takes all CPUs, and this trial may not use all; leave out `cpus`, or name \
                     the CPUs"
                )));
            }
            list => arguments.push(format!("{option}{list}")),
        }
    }
    Ok(arguments)
}

fn uses_all_cpus(trial: &Trial) -> Result<bool, Failure> {
    let online = cpus::online(&Root::real()).map_err(|error| Failure::Refused(error.to_string()))?;
    Ok(online.to_vec() == trial.cpus())
}
