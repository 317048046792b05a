//! The parameters that every workload has.

use crate::{Failure, Original};
use experiment::{Parameter, Params};
use machine::{CpuSet, Need, Root};
use rustix::mm::{MlockAllFlags, mlockall};
use std::time::{Duration, Instant};

/// The value of `via` that means kduel's own implementation.
pub const OURS: &str = "kduel";

/// Appends `semantics`, `via`, `warmup` and `settle` to a workload's own parameters. `originals` are what `via`
/// takes besides `kduel`.
pub fn with_shared(own: Vec<Parameter>, originals: &[Original]) -> Vec<Parameter> {
    let semantics = "`original` keeps the quirks of the original benchmark so that figures line up with posted ones; \
                     `strict` fixes them";
    shared(own, originals, semantics)
}

/// As [`with_shared`], for a workload that stands beside no original; `semantics` is what that parameter means here.
pub fn with_shared_alone(own: Vec<Parameter>, semantics: &str) -> Vec<Parameter> {
    shared(own, &[], semantics)
}

/// What `semantics` means where there is nothing to be faithful to.
pub const ALL_THE_SAME: &str = "both are the same here";

fn shared(mut own: Vec<Parameter>, originals: &[Original], semantics: &str) -> Vec<Parameter> {
    let mut via = vec![OURS];
    via.extend(originals.iter().map(|original| original.via));
    own.push(Parameter::choice("semantics", &["original", "strict"], semantics));
    own.push(Parameter::choice(
        "via",
        &via,
        match originals {
            [] => "kduel's own implementation is the only one",
            _ => "which implementation does the work: kduel's own, or the installed original",
        },
    ));
    own.push(Parameter::decimal(
        "warmup",
        0.0,
        0.0,
        3600.0,
        "seconds for which the work is done before anything is measured",
    ));
    own.push(Parameter::decimal(
        "settle",
        0.02,
        0.0,
        3600.0,
        "seconds of rest in the fresh process before it begins",
    ));
    own
}

/// Which traits of the original benchmark are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Semantics {
    /// All of them, so that figures line up with posted ones.
    Original,
    /// None that distort the measurement.
    Strict,
}

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A forked process.
    Process,
    /// A thread.
    Thread,
}

/// The parameter `mode`.
pub fn mode_parameter() -> Parameter {
    Parameter::choice("mode", &["process", "thread"], "what a task is")
}

/// What a task is to be.
///
/// # Errors
/// When the workload's description lacks the parameter.
pub fn mode(params: &Params) -> Result<Mode, Failure> {
    Ok(if params.text("mode")? == "thread" { Mode::Thread } else { Mode::Process })
}

/// The semantics that were asked for.
///
/// # Errors
/// When the workload's description lacks the parameter.
pub fn semantics(params: &Params) -> Result<Semantics, Failure> {
    Ok(if params.text("semantics")? == "strict" { Semantics::Strict } else { Semantics::Original })
}

/// The original that was asked for by `via`, or `None` for kduel's own implementation.
///
/// # Errors
/// When the workload's description lacks the parameter.
pub fn via(params: &Params) -> Result<Option<&str>, Failure> {
    Ok(Some(params.text("via")?).filter(|via| *via != OURS))
}

/// The time for which the work is done before anything is measured.
///
/// # Errors
/// When the workload's description lacks the parameter.
pub fn warmup(params: &Params) -> Result<Duration, Failure> {
    Ok(Duration::from_secs_f64(params.decimal("warmup")?))
}

/// Makes sure before the first of them that a trial's tasks and files fit into every limit, and raises the
/// limit of open files where that needs no permission.
///
/// # Errors
/// With every limit that is too low and what raises it.
pub fn room_for(threads: u64, processes: u64, files: u64) -> Result<(), Failure> {
    machine::room_for(&Root::real(), &Need { threads, processes, files })
        .map_err(|error| Failure::Refused(error.to_string()))
}

/// Makes sure before anything starts that a trial's memory is there: what is not would end in a kill.
///
/// # Errors
/// When it is not; `what` says for what it is, in the plural, and `less` what needs less.
pub fn memory_for(bytes: u64, what: &str, less: &str) -> Result<(), Failure> {
    machine::memory_for(&Root::real(), bytes).map_err(|shortage| {
        Failure::Refused(format!("{what} do not fit: {shortage}; take {less}, or free memory"))
    })
}

/// Does `work` again and again until the warm-up time of `params` is over; not at all where it is 0.
///
/// # Errors
/// What `work` failed with.
pub fn warm_up(params: &Params, mut work: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let (time, start) = (warmup(params)?, Instant::now());
    while start.elapsed() < time {
        work()?;
    }
    Ok(())
}

/// Locks all memory of this process, now and later.
///
/// # Errors
/// When the limit is too low.
pub fn lock_memory() -> Result<(), Failure> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|error| {
        Failure::Refused(format!(
            "memory cannot be locked: {error}; raise the limit (`ulimit -l unlimited` as root) or leave out mlockall"
        ))
    })
}

/// Lets the calling thread, which is the `index`-th, run on the (index mod n)-th of n `cpus` only.
///
/// # Errors
/// When there is none, or the kernel does not let it.
pub fn own_cpu(cpus: &[u32], index: usize) -> Result<(), Failure> {
    pin(&nth_cpu(cpus, index)?)
}

/// The (index mod n)-th of n `cpus`.
///
/// # Errors
/// When there is none.
pub fn nth_cpu(cpus: &[u32], index: usize) -> Result<CpuSet, Failure> {
    let cpu = cpus.get(index % cpus.len().max(1)).copied();
    cpu.map(CpuSet::one).ok_or_else(|| Failure::Refused("the trial may use no CPU".into()))
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// When there is none, or the kernel does not let it.
pub fn pin(cpus: &CpuSet) -> Result<(), Failure> {
    machine::cpus::pin_thread(cpus).map_err(|error| Failure::Refused(error.to_string()))
}
