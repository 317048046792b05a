//! The CPUs: which there are, whether they are alike, and whether they hold their frequency.

use super::{Finding, Subject};
use crate::{CpuSet, Root, cpus};
use std::collections::BTreeSet;

const CPU: &str = "sys/devices/system/cpu";
const HARDWARE: &str = "hardware";
const CPUS: &str = "CPUs";
const ALIKE: &str = "cores alike";
const SMT: &str = "SMT";
const GOVERNOR: &str = "frequency governor";
const TURBO: &str = "turbo";

pub(super) fn findings(subject: &Subject) -> Vec<Finding> {
    let online = cpus::online(subject.root).ok();
    let siblings = online.as_ref().map(|online| siblings(subject.root, online)).unwrap_or_default();
    vec![
        hardware(subject),
        usable(subject, online.as_ref()),
        alike(subject, online.as_ref()),
        smt(subject, &siblings),
        governor(subject),
        turbo(subject),
    ]
}

/// Whether kduel runs on the machine itself.
fn hardware(subject: &Subject) -> Finding {
    let model = subject.facts.cpu_model.as_deref().unwrap_or("a CPU of unknown model");
    match &subject.facts.hypervisor {
        Some(hypervisor) => {
            Finding::limited(HARDWARE, format!("{model}, in a virtual machine: {hypervisor}"))
                .advice("What the host does beside it cannot be seen from here: compare within one run only.")
        }
        None if subject.facts.cpu_model.is_none() => {
            Finding::unknown(HARDWARE, "the CPUs do not name themselves")
        }
        None => Finding::ok(HARDWARE, format!("{model}, and no hypervisor shows itself")),
    }
}

/// Which CPUs trials may use.
fn usable(subject: &Subject, online: Option<&CpuSet>) -> Finding {
    let Some(online) = online else {
        return Finding::unknown(CPUS, "neither /sys nor /proc says which CPUs there are");
    };
    let list = |list: &Option<String>| list.as_ref().and_then(|list| list.parse::<CpuSet>().ok());
    let facts = &subject.facts;
    let mut seen = format!("{} online: {online}", online.len());
    let offline = list(&facts.cpus_offline).filter(|cpus| !cpus.is_empty());
    if let Some(offline) = &offline {
        seen += &format!("; offline: {offline}");
    }
    if let Some(isolated) = list(&facts.cpus_isolated).filter(|cpus| !cpus.is_empty()) {
        seen += &format!("; isolated: {isolated}");
    }
    match list(&facts.cpus_allowed) {
        Some(allowed) if allowed != *online => {
            Finding::limited(CPUS, format!("{seen}; this process may use: {allowed}"))
                .command(format!("taskset -pc {online} $$"))
        }
        _ => match offline.and_then(|offline| offline.iter().next()) {
            Some(cpu) => Finding::limited(CPUS, seen).command(format!("echo 1 > /{CPU}/cpu{cpu}/online")),
            None => Finding::ok(CPUS, seen),
        },
    }
}

fn alike(subject: &Subject, online: Option<&CpuSet>) -> Finding {
    match (&subject.facts.cpu_kinds, online) {
        (Some(kinds), _) => Finding::limited(ALIKE, format!("several kinds: {kinds}"))
            .advice("Pin every variant to CPUs of one kind with the knob cpus=."),
        (None, Some(_)) => Finding::ok(ALIKE, "the kernel names one kind"),
        (None, None) => Finding::unknown(ALIKE, "the CPUs are not known"),
    }
}

/// The sets of CPUs that share a core.
fn siblings(root: &Root, online: &CpuSet) -> BTreeSet<Vec<u32>> {
    let of_core = |cpu: u32| {
        let topology = format!("{CPU}/cpu{cpu}/topology");
        // The first name is that of kernels before 5.3, and stays.
        let list = root
            .text(format!("{topology}/thread_siblings_list"))
            .or_else(|_| root.text(format!("{topology}/core_cpus_list")))
            .ok()?;
        Some(list.parse::<CpuSet>().ok()?.and(online).to_vec())
    };
    online.iter().filter_map(of_core).filter(|core| !core.is_empty()).collect()
}

fn smt(subject: &Subject, siblings: &BTreeSet<Vec<u32>>) -> Finding {
    match subject.facts.smt {
        Some(true) => {
            let first: CpuSet = siblings.iter().filter_map(|core| core.first().copied()).collect();
            let shared = siblings.iter().filter(|core| core.len() > 1).count();
            let mut seen = format!("on: CPUs share {shared} of {} cores", siblings.len());
            if !first.is_empty() {
                seen += &format!("; one of each core: cpus={first}");
            }
            Finding::limited(SMT, seen).command(format!("echo off > /{CPU}/smt/control"))
        }
        Some(false) => match subject.root.text(format!("{CPU}/smt/control")) {
            Ok(control) => Finding::ok(SMT, format!("off ({control})")),
            Err(_) => Finding::ok(SMT, "off"),
        },
        // Architectures without the switch still list siblings.
        None if siblings.is_empty() => {
            Finding::unknown(SMT, "the kernel does not say which CPUs share a core")
        }
        None => match siblings.iter().any(|core| core.len() > 1) {
            true => Finding::limited(SMT, "CPUs share cores, and the kernel has no switch for it")
                .advice("Pin each variant to one CPU of each core with the knob cpus=."),
            false => Finding::ok(SMT, "no two CPUs share a core"),
        },
    }
}

fn governor(subject: &Subject) -> Finding {
    match subject.facts.governor.as_deref() {
        None => Finding::unknown(GOVERNOR, "the kernel does not steer the frequency here").advice(
            "In a virtual machine look at the host; on the machine itself at the firmware's power profile.",
        ),
        Some("performance") => Finding::ok(GOVERNOR, "performance on every CPU"),
        Some(governors) => Finding::limited(GOVERNOR, governors).command(format!(
            "for f in /{CPU}/cpu*/cpufreq/scaling_governor; do echo performance > $f; done"
        )),
    }
}

fn turbo(subject: &Subject) -> Finding {
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    match subject.facts.turbo {
        Some(false) => Finding::ok(TURBO, "off"),
        Some(true) => {
            let command = match subject.root.path(&intel).exists() {
                true => format!("echo 1 > /{intel}"),
                false => format!("echo 0 > /{CPU}/cpufreq/boost"),
            };
            Finding::limited(TURBO, "on: the frequency follows the heat and what the other cores do")
                .command(command)
        }
        None => Finding::unknown(TURBO, "the kernel has no switch for it"),
    }
}
