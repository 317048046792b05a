//! The CPUs: which they are, how they are laid out, and what drives their frequencies.

use super::{distinct, line, names, switch};
use crate::caches::last_level_caches;
use crate::{CpuSet, Root};
use experiment::Facts;
use std::collections::{BTreeMap, BTreeSet};

const CPU: &str = "sys/devices/system/cpu";

pub(super) fn read(root: &Root, online: Option<&CpuSet>, facts: &mut Facts) {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    facts.cpu_model = model(&cpuinfo);
    facts.cpu_stepping = stepping(&cpuinfo);
    facts.microcode = line(root, &format!("{CPU}/cpu0/microcode/version"))
        .or_else(|| field(&cpuinfo, "microcode").map(str::to_string));
    facts.smt = switch(root, &format!("{CPU}/smt/active"));
    facts.turbo = switch(root, &format!("{CPU}/intel_pstate/no_turbo"))
        .map(|off| !off)
        .or_else(|| switch(root, &format!("{CPU}/cpufreq/boost")));
    facts.cpus_isolated = list(root, "isolated");
    facts.cpus_nohz_full = list(root, "nohz_full");
    facts.idle = idle(root);
    facts.pmu = pmu(root);
    let Some(online) = online else { return };
    facts.cpus_online = Some(online.to_string());
    facts.cpus_offline = root
        .text(format!("{CPU}/present"))
        .ok()
        .and_then(|present| Some(present.parse::<CpuSet>().ok()?.without(online).to_string()));
    facts.cpus_allowed = allowed(root, online).map(|cpus| cpus.to_string());
    facts.sockets = groups(root, online, &["package_cpus_list", "core_siblings_list"])
        .or_else(|| different_ids(root, online, "physical_package_id"));
    facts.cores = groups(root, online, &["core_cpus_list", "thread_siblings_list"]);
    let caches = last_level_caches(root, online.iter());
    if !caches.is_empty() {
        facts.last_level_caches = Some(caches.len() as u32);
        facts.last_level_cache_bytes = Some(caches.into_iter().fold(0, u64::saturating_add));
    }
    facts.cpu_kinds = kinds(root, online);
    frequency(root, online, facts);
}

/// The value of the first line of this name in /proc/cpuinfo.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    fields(cpuinfo, name).next()
}

/// The values of all lines of this name in /proc/cpuinfo.
fn fields<'a>(cpuinfo: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    cpuinfo.lines().filter_map(move |line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// x86 says `model name`, LoongArch `Model Name`, POWER `cpu`, RISC-V `uarch` or three numbers, s390 has the machine
/// in the line of each processor, and Arm gives two numbers.
fn model(cpuinfo: &str) -> Option<String> {
    // Arm of 32 bits has a `model name` that only tells the architecture.
    let parts = fields(cpuinfo, "CPU implementer").zip(fields(cpuinfo, "CPU part"));
    let parts = distinct(parts.map(|(maker, part)| format!("implementer {maker} part {part}")));
    if !parts.is_empty() {
        return Some(parts.join(" + "));
    }
    let mut named =
        ["model name", "Model Name", "cpu", "uarch"].map(|name| distinct(fields(cpuinfo, name))).into_iter();
    if let Some(names) = named.find(|names| !names.is_empty()) {
        return Some(names.join(" + "));
    }
    let ids = fields(cpuinfo, "mvendorid").zip(fields(cpuinfo, "marchid"));
    let ids = distinct(ids.map(|(maker, design)| format!("vendor {maker} architecture {design}")));
    if !ids.is_empty() {
        return Some(ids.join(" + "));
    }
    let machines = cpuinfo.lines().filter(|line| line.starts_with("processor ")).filter_map(|line| {
        Some(format!("machine {}", line.split_once("machine =")?.1.split(',').next()?.trim()))
    });
    Some(distinct(machines).join(" + ")).filter(|machines| !machines.is_empty())
}

fn stepping(cpuinfo: &str) -> Option<String> {
    let named = |name: &str, word: &str| Some(format!("{word} {}", field(cpuinfo, name)?));
    let parts = [
        [named("cpu family", "family"), named("model", "model"), named("stepping", "stepping")],
        [named("CPU variant", "variant"), named("CPU revision", "revision"), None],
        [named("mimpid", "implementation"), named("isa", "isa"), None],
    ];
    let mut said = parts.into_iter().map(|parts| parts.into_iter().flatten().collect::<Vec<String>>());
    said.find(|parts| !parts.is_empty()).map(|parts| parts.join(" "))
}

/// A list of CPUs in the kernel's directory of them. What is no list stands for none.
fn list(root: &Root, name: &str) -> Option<String> {
    let text = root.text(format!("{CPU}/{name}")).ok()?;
    Some(text.parse::<CpuSet>().map_or(String::new(), |cpus| cpus.to_string()))
}

/// The affinity of this process in /proc may name CPUs that are not there.
fn allowed(root: &Root, online: &CpuSet) -> Option<CpuSet> {
    let status = root.text("proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.parse::<CpuSet>().ok()?.and(online))
}

/// The number of groups into which files of the topology divide the CPUs: each file lists the CPUs of the group, under
/// one of several names. `None` where a CPU has no such file.
fn groups(root: &Root, online: &CpuSet, names: &[&str]) -> Option<u32> {
    let mut seen = CpuSet::new();
    let mut count = 0;
    for cpu in online.iter() {
        if seen.contains(cpu) {
            continue;
        }
        let text = names.iter().find_map(|name| root.text(format!("{CPU}/cpu{cpu}/topology/{name}")).ok())?;
        let group = text.parse::<CpuSet>().ok().filter(|group| group.contains(cpu))?;
        group.iter().for_each(|member| seen.insert(member));
        count += 1;
    }
    (count > 0).then_some(count)
}

/// The number of different ids in a file of the topology; the kernel writes -1 where it does not know.
fn different_ids(root: &Root, online: &CpuSet, name: &str) -> Option<u32> {
    let ids: Option<BTreeSet<u64>> =
        online.iter().map(|cpu| root.number(format!("{CPU}/cpu{cpu}/topology/{name}")).ok()).collect();
    ids.map(|ids| ids.len() as u32).filter(|count| *count > 0)
}

/// The kinds of cores where there are several: by the names that the kernel gives them, or by their capacity, the
/// strongest first.
fn kinds(root: &Root, online: &CpuSet) -> Option<String> {
    let named: Vec<String> = ["cpu_core", "cpu_atom", "cpu_lowpower"]
        .iter()
        .filter_map(|kind| Some(format!("{kind} {}", root.text(format!("sys/devices/{kind}/cpus")).ok()?)))
        .collect();
    if named.len() > 1 {
        return Some(named.join(", "));
    }
    let mut by_capacity = BTreeMap::<u64, CpuSet>::new();
    for cpu in online.iter() {
        let capacity = root.number(format!("{CPU}/cpu{cpu}/cpu_capacity")).ok()?;
        by_capacity.entry(capacity).or_default().insert(cpu);
    }
    let kinds = by_capacity.iter().rev().map(|(capacity, cpus)| format!("capacity {capacity} {cpus}"));
    (by_capacity.len() > 1).then(|| kinds.collect::<Vec<_>>().join(", "))
}

/// Governor, driver and limits of all frequency domains. Older kernels have no directory of them, only one per CPU.
fn frequency(root: &Root, online: &CpuSet, facts: &mut Facts) {
    let policies = names(&root.path(format!("{CPU}/cpufreq"))).into_iter();
    let policies =
        policies.filter(|name| name.starts_with("policy")).map(|name| format!("{CPU}/cpufreq/{name}"));
    let mut domains: Vec<String> = policies.collect();
    if domains.is_empty() {
        domains.extend(online.iter().next().map(|cpu| format!("{CPU}/cpu{cpu}/cpufreq")));
    }
    let all = |name: &str| {
        let values = domains.iter().filter_map(|domain| line(root, &format!("{domain}/{name}")));
        Some(distinct(values).join(", ")).filter(|values| !values.is_empty())
    };
    facts.governor = all("scaling_governor");
    facts.frequency_driver = all("scaling_driver");
    facts.energy_preference = all("energy_performance_preference");
    let limits = domains.iter().filter_map(|domain| {
        let limit = |name: &str| root.number(format!("{domain}/scaling_{name}_freq")).ok();
        Some(format!("{}-{}", limit("min")?, limit("max")?))
    });
    facts.frequency_limits_khz = Some(distinct(limits).join(", ")).filter(|limits| !limits.is_empty());
}

fn idle(root: &Root) -> Option<String> {
    let file = |name: &str| line(root, &format!("{CPU}/cpuidle/{name}"));
    let driver = file("current_driver")?;
    Some(match file("current_governor").or_else(|| file("current_governor_ro")) {
        Some(governor) if driver != "none" => format!("{driver}, governor {governor}"),
        _ => driver,
    })
}

/// The CPUs' own units among the sources of performance events.
fn pmu(root: &Root) -> Option<Vec<String>> {
    let directory = root.path("sys/bus/event_source/devices");
    let is_of_cpus = |name: &String| {
        name == "cpu"
            || name == "cpum_cf"
            || ["cpu_", "armv", "apple_"].iter().any(|beginning| name.starts_with(beginning))
    };
    directory.is_dir().then(|| names(&directory).into_iter().filter(is_of_cpus).collect())
}
