//! The trial's own process.

use crate::wire::{TrialRequest, Work};
use experiment::{Failure, Knob, Outcome, Scope, Usage};
use machine::modules::ModuleNeed;
use machine::{Root, Whose};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What the agent hands to a trial's process as its only line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The agent, without which the trial must not run.
    pub(crate) agent: i32,
    /// The cgroup that the process is to join, where one could be made.
    pub(crate) cgroup: Option<PathBuf>,
    pub(crate) request: TrialRequest,
}

/// What a trial's process writes as its only line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    /// What only the process itself can see of its use: the largest resident set, the migrations, the time in the workload.
    pub(crate) usage: Usage,
}

/// Runs the trial that stands as one line on standard input and writes its report, one line, on standard output.
/// The process is fresh and has one thread.
///
/// # Errors
/// When there is no request to read or nobody to report to; the agent records that the trial left without a result.
pub fn run_trial() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    die_with(order.agent)?;
    let mut usage = Usage::default();
    let outcome = run(&order, &mut usage).unwrap_or_else(|(failure, why)| Outcome::Missing { failure, why });
    let Usage { work_ns, work_cpu_ns, .. } = usage;
    let usage = Usage { work_ns, work_cpu_ns, ..machine::usage_of_self(&Root::real()) };
    let mut line = serde_json::to_vec(&Report { outcome, usage })?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

fn run(Order { cgroup, request, .. }: &Order, usage: &mut Usage) -> Result<Outcome, (Failure, String)> {
    if let Some(cgroup) = cgroup {
        machine::join_cgroup(cgroup).map_err(|error| (Failure::Refused, error.to_string()))?;
    }
    let own: Vec<Knob> = request.knobs.iter().filter(|knob| !knob.changes_machine()).cloned().collect();
    machine::apply_to_self(&own).map_err(|error| (Failure::Knob, error.to_string()))?;
    let cpus = machine::cpus::allowed().map_err(|error| (Failure::Refused, error.to_string()))?;
    let Work { params, point, .. } = &request.work;
    let workload = find(&request.work).map_err(|why| (Failure::Refused, why))?;
    let settle = params.decimal("settle").map_err(|error| (Failure::Refused, error.to_string()))?;
    let mut trial = workloads::Trial::new(point.clone(), cpus.to_vec(), request.seed);
    for Knob { scope, value } in &own {
        match scope {
            Scope::Rseq => workloads::check_rseq(value, &mut trial),
            Scope::Proxy => workloads::check_proxy(value, &mut trial),
            _ => {}
        }
    }
    std::thread::sleep(Duration::from_secs_f64(settle));
    let (cpu_before, began) = (cpu_ns(), Instant::now());
    workload.run(params, &mut trial).map_err(|failure| (failure.kind(), failure.to_string()))?;
    let (work, cpu_after) = (began.elapsed(), cpu_ns());
    usage.work_ns = u64::try_from(work.as_nanos()).ok();
    usage.work_cpu_ns = cpu_before.and_then(|before| cpu_after?.checked_sub(before));
    Ok(trial.into_outcome())
}

/// The CPU time of this process and of all that it has waited for.
fn cpu_ns() -> Option<u64> {
    let all = [machine::rusage(Whose::Process)?, machine::rusage(Whose::Children)?];
    Some(all.iter().map(|one| one.user_ns.saturating_add(one.system_ns)).sum())
}

/// The settings of the machine that this work needs.
pub(crate) fn knobs(work: &Work) -> Result<Vec<Knob>, String> {
    find(work)?.knobs(&work.params).map_err(|failure| format!("{}: {failure}", work.workload))
}

/// The modules of the kernel that work loads, each once.
pub fn modules_of(work: &[Work]) -> Vec<ModuleNeed> {
    let needed: BTreeSet<ModuleNeed> = work.iter().flat_map(modules).collect();
    needed.into_iter().collect()
}

/// The modules of the kernel that this work loads; a workload that this build does not have loads none.
pub(crate) fn modules(work: &Work) -> Vec<ModuleNeed> {
    find(work).map(|workload| workload.modules(&work.params)).unwrap_or_default()
}

/// What stands against doing this work here, in one sentence.
pub(crate) fn check(work: &Work) -> Result<(), String> {
    let cpus = machine::cpus::allowed().map_err(|error| error.to_string())?;
    let trial = workloads::Trial::new(work.point.clone(), cpus.to_vec(), 0);
    let checked = find(work)?.check(&work.params, &trial);
    checked.map_err(|failure| format!("{}: {failure}", work.workload))
}

fn find(work: &Work) -> Result<&'static dyn workloads::Workload, String> {
    workloads::find(&work.workload).ok_or_else(|| format!("this build has no workload `{}`", work.workload))
}

/// A trial must not outlive its agent. The kernel sees to it from here on; an agent that has gone before is no
/// longer the parent.
fn die_with(agent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    match rustix::process::getppid() {
        Some(parent) if parent.as_raw_nonzero().get() == agent => Ok(()),
        _ => Err(io::Error::other("the agent has gone")),
    }
}
