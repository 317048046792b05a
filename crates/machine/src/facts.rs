//! Everything about a machine and its kernel that could explain a difference.

use crate::kernel_config::KernelConfig;
use crate::memory::meminfo_bytes;
use crate::{Cgroups, CpuSet, Root, cpus, knobs, settled_clocksource, value};
use experiment::Facts;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const CPU: &str = "sys/devices/system/cpu";

/// Sysctls that the scheduler and locks look at and that do not begin with `sched_`.
const SYSCTLS: &[&str] = &[
    "kernel.lock_stat",
    "kernel.max_lock_depth",
    "kernel.nmi_watchdog",
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.prove_locking",
    "kernel.randomize_va_space",
    "kernel.split_lock_mitigate",
    "kernel.task_delayacct",
    "kernel.timer_migration",
    "kernel.watchdog",
    "vm.overcommit_memory",
    "vm.stat_interval",
    "vm.swappiness",
];

/// Tunables in debugfs outside its directory `sched`.
const DEBUGFS_TUNABLES: &[&str] = &[crate::SLICE_LENGTH];

/// Files in debugfs' directory `sched` that are reports and no settings.
const DEBUGFS_REPORTS: &[&str] = &["debug", "domains", "verbose"];

/// Reads all facts. A fact that this kernel does not have, or that this user may not see, is absent.
pub fn facts(root: &Root) -> Facts {
    let line = |inside: &str| root.text(inside).ok().filter(|text| !text.is_empty());
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let config = KernelConfig::of_running(root);
    let command_line = line("proc/cmdline");
    let online = cpus::online(root).ok();
    let version = line("proc/sys/kernel/version");
    let sched_debug = sched_debug(root);
    Facts {
        hostname: line("proc/sys/kernel/hostname"),
        kernel_release: line("proc/sys/kernel/osrelease"),
        preemption: preemption(
            sched_debug.get("preempt").map(String::as_str),
            version.as_deref().unwrap_or_default(),
            command_line.as_deref().unwrap_or_default(),
            config.as_ref(),
        ),
        kernel_version: version,
        debug_options: config.map(|config| config.debug_options(command_line.as_deref().unwrap_or_default())),
        command_line,
        cpu_model: cpu_model(&cpuinfo),
        cpus_allowed: cpus_allowed(root, online.as_ref()).map(|cpus| cpus.to_string()),
        numa_nodes: line("sys/devices/system/node/online")
            .and_then(|list| Some(list.parse::<CpuSet>().ok()?.len() as u32)),
        sockets: online.as_ref().and_then(|online| sockets(root, online)),
        cpu_kinds: online.as_ref().and_then(|online| cpu_kinds(root, online)),
        smt: switch(root, &format!("{CPU}/smt/active")),
        microcode: line(&format!("{CPU}/cpu0/microcode/version"))
            .or_else(|| cpuinfo_field(&cpuinfo, "microcode").map(str::to_string)),
        governor: online
            .as_ref()
            .and_then(|online| line(&format!("{CPU}/cpu{}/cpufreq/scaling_governor", online.iter().next()?))),
        turbo: switch(root, &format!("{CPU}/intel_pstate/no_turbo"))
            .map(|off| !off)
            .or_else(|| switch(root, &format!("{CPU}/cpufreq/boost"))),
        cpus_online: online.map(|cpus| cpus.to_string()),
        clocksource: settled_clocksource(root),
        transparent_hugepages: line("sys/kernel/mm/transparent_hugepage/enabled")
            .map(|text| value::in_force(&text)),
        memory_bytes: meminfo_bytes(root, "MemTotal:"),
        hypervisor: hypervisor(root, &cpuinfo),
        cpu_quota: Cgroups::of_self(root).ok().and_then(|groups| groups.cpu_quota()).map(|quota| quota.cpus),
        libc: libc_version(),
        mitigations: files(&root.path(format!("{CPU}/vulnerabilities")), &[]),
        sysctls: sysctls(root),
        sched_debug,
    }
}

/// The preemption model in force: what debugfs marks as selected; otherwise what kernel and command line say it
/// started with, where no more can be known.
fn preemption(
    selected: Option<&str>,
    version: &str,
    command_line: &str,
    config: Option<&KernelConfig>,
) -> Option<String> {
    if let Some(selected) = selected {
        return Some(selected.to_string());
    }
    let words: Vec<&str> = version.split_whitespace().collect();
    let built = config.and_then(KernelConfig::preemption).map(str::to_string);
    if words.contains(&"PREEMPT_RT") {
        Some("rt".into())
    } else if words.contains(&"PREEMPT_DYNAMIC") {
        // The last one counts, as with all words of the command line.
        let given = command_line.split_whitespace().rev().find_map(|word| word.strip_prefix("preempt="));
        given.map(str::to_string).or(built)
    } else {
        // `PREEMPT` alone may be full or lazy, and its absence none or voluntary.
        built
    }
}

fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// x86 says `model name`, POWER says `cpu`, and Arm gives numbers.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name| cpuinfo_field(cpuinfo, name);
    field("model name")
        .or_else(|| field("cpu"))
        .map(str::to_string)
        .or_else(|| Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?)))
}

/// The affinity of this process in /proc may name CPUs that are not there.
fn cpus_allowed(root: &Root, online: Option<&CpuSet>) -> Option<CpuSet> {
    let status = root.text("proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.parse::<CpuSet>().ok()?.and(online?))
}

fn sockets(root: &Root, online: &CpuSet) -> Option<u32> {
    let ids: Result<BTreeSet<String>, _> =
        online.iter().map(|cpu| root.text(format!("{CPU}/cpu{cpu}/topology/physical_package_id"))).collect();
    ids.ok().map(|ids| ids.len() as u32)
}

/// The kinds of cores where there are several: by the names that the kernel gives them, or by their capacity, the
/// strongest first.
fn cpu_kinds(root: &Root, online: &CpuSet) -> Option<String> {
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

fn switch(root: &Root, inside: &str) -> Option<bool> {
    match root.number(inside) {
        Ok(0) => Some(false),
        Ok(1) => Some(true),
        _ => None,
    }
}

/// The hypervisor, where there is one: by the name that it gives itself, or `unnamed`.
fn hypervisor(root: &Root, cpuinfo: &str) -> Option<String> {
    let tree = root.text("proc/device-tree/hypervisor/compatible").ok();
    let kind = tree.or_else(|| root.text("sys/hypervisor/type").ok());
    let is_guest = cpuinfo_field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if kind.is_some() || !is_guest {
        return kind.map(|kind| kind.trim_matches('\0').to_string()).filter(|kind| kind != "none");
    }
    let board =
        |file: &str| root.text(format!("sys/class/dmi/id/{file}")).ok().filter(|text| !text.is_empty());
    let names: Vec<String> = [hypervisor_of_cpuid(root), board("sys_vendor"), board("product_name")]
        .into_iter()
        .flatten()
        .collect();
    Some(if names.is_empty() { "unnamed".into() } else { names.join(", ") })
}

/// The signature in the CPU's leaf for hypervisors, such as `KVMKVMKVM`.
#[cfg(target_arch = "x86_64")]
fn hypervisor_of_cpuid(root: &Root) -> Option<String> {
    if !root.is_real() {
        return None;
    }
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|part| part.to_le_bytes()).collect();
    let name: String =
        bytes.iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_of_cpuid(_root: &Root) -> Option<String> {
    None
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: returns a pointer to a constant string that ends with a zero byte.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    cfg!(target_env = "musl").then(|| "musl".to_string())
}

fn sysctls(root: &Root) -> BTreeMap<String, String> {
    let kernel = files(&root.path("proc/sys/kernel"), &[]);
    let sched = kernel.into_iter().filter(|(name, _)| name.starts_with("sched_"));
    let mut found: BTreeMap<String, String> =
        sched.map(|(name, text)| (format!("kernel.{name}"), value::in_force(&text))).collect();
    for name in SYSCTLS {
        if let Ok(text) = root.text(format!("proc/sys/{}", name.replace('.', "/"))) {
            found.insert(name.to_string(), value::in_force(&text));
        }
    }
    found
}

fn sched_debug(root: &Root) -> BTreeMap<String, String> {
    let Ok(debugfs) = knobs::debugfs(root) else { return BTreeMap::new() };
    let mut found = files(&debugfs.join("sched"), DEBUGFS_REPORTS);
    for (name, text) in files(&debugfs.join("sched/numa_balancing"), &[]) {
        found.insert(format!("numa_balancing/{name}"), text);
    }
    for tunable in DEBUGFS_TUNABLES {
        if let Ok(text) = fs::read_to_string(debugfs.join(tunable)) {
            found.insert(tunable.to_string(), text);
        }
    }
    found.into_iter().map(|(name, text)| (name, value::in_force(&text))).collect()
}

/// The text of all files of a directory that can be read, by name, except some.
fn files(directory: &Path, except: &[&str]) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let text = |entry: fs::DirEntry| {
        let name = entry.file_name().to_str()?.to_string();
        if except.contains(&name.as_str()) || !entry.file_type().ok()?.is_file() {
            return None;
        }
        Some((name, fs::read_to_string(entry.path()).ok()?.trim().to_string()))
    };
    entries.flatten().filter_map(text).collect()
}
