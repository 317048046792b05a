//! What is set: sysctls, mitigations, and the tunables of scheduler, memory management and tracing.

use super::{files, line, names};
use crate::{Root, knobs, mounts, value};
use experiment::Facts;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Sysctls that bear on scheduling, locks and the workloads, and that do not begin with `sched_`.
const SYSCTLS: &[&str] = &[
    "kernel.io_uring_disabled",
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
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "vm.compaction_proactiveness",
    "vm.mem_profiling",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Tunables in debugfs outside its directory `sched`.
const DEBUGFS_TUNABLES: &[&str] = &[crate::SLICE_LENGTH];

/// Files in debugfs' directory `sched` that are reports and no settings.
const DEBUGFS_REPORTS: &[&str] = &["debug", "domains", "verbose"];

/// Settings of the memory management below /sys/kernel/mm.
const MEMORY: &[&str] = &[
    "ksm/run",
    "lru_gen/enabled",
    "numa/demotion_enabled",
    "transparent_hugepage/defrag",
    "transparent_hugepage/khugepaged/defrag",
    "transparent_hugepage/shmem_enabled",
    "transparent_hugepage/use_zero_page",
];

pub(super) fn read(root: &Root, facts: &mut Facts) {
    facts.mitigations = files(&root.path("sys/devices/system/cpu/vulnerabilities"), |_| true);
    facts.sysctls = sysctls(root);
    facts.sched_debug = sched_debug(root);
    facts.memory_settings = memory_settings(root);
    facts.transparent_hugepages =
        line(root, "sys/kernel/mm/transparent_hugepage/enabled").map(|text| value::in_force(&text));
    facts.sched_ext = sched_ext(root);
    facts.security_modules = line(root, "sys/kernel/security/lsm");
    facts.tracing = tracing(root);
}

fn sysctls(root: &Root) -> BTreeMap<String, String> {
    let sched = files(&root.path("proc/sys/kernel"), |name| name.starts_with("sched_"));
    let mut found: BTreeMap<String, String> =
        sched.into_iter().map(|(name, text)| (format!("kernel.{name}"), value::in_force(&text))).collect();
    for name in SYSCTLS {
        if let Ok(text) = root.text(format!("proc/sys/{}", name.replace('.', "/"))) {
            found.insert(name.to_string(), value::in_force(&text));
        }
    }
    found
}

fn sched_debug(root: &Root) -> BTreeMap<String, String> {
    let Ok(debugfs) = knobs::debugfs(root) else { return BTreeMap::new() };
    let mut found = files(&debugfs.join("sched"), |name| !DEBUGFS_REPORTS.contains(&name));
    for directory in ["numa_balancing", "llc_balancing"] {
        for (name, text) in files(&debugfs.join("sched").join(directory), |_| true) {
            found.insert(format!("{directory}/{name}"), text);
        }
    }
    for tunable in DEBUGFS_TUNABLES {
        if let Ok(text) = fs::read_to_string(debugfs.join(tunable)) {
            found.insert(tunable.to_string(), text);
        }
    }
    found.into_iter().map(|(name, text)| (name, value::in_force(&text))).collect()
}

fn memory_settings(root: &Root) -> BTreeMap<String, String> {
    let mm = "sys/kernel/mm";
    let set = MEMORY
        .iter()
        .filter_map(|path| Some((path.to_string(), value::in_force(&line(root, &format!("{mm}/{path}"))?))));
    let mut found: BTreeMap<String, String> = set.collect();
    // Newer kernels have a switch for each size of huge pages, most of them alike.
    let sizes = names(&root.path(format!("{mm}/transparent_hugepage"))).into_iter().filter_map(|name| {
        let size = name.strip_prefix("hugepages-")?;
        let mode = line(root, &format!("{mm}/transparent_hugepage/{name}/enabled"))?;
        Some((size.trim_end_matches("kB").parse::<u64>().ok()?, value::in_force(&mode)))
    });
    let mut sizes: Vec<(u64, String)> = sizes.collect();
    sizes.sort();
    if !sizes.is_empty() {
        let modes: Vec<String> = sizes.iter().map(|(kib, mode)| format!("{kib}kB {mode}")).collect();
        found.insert("transparent_hugepage/hugepages".into(), modes.join(", "));
    }
    found
}

/// The scheduler that BPF has loaded. A kernel that cannot load one has none.
fn sched_ext(root: &Root) -> Option<String> {
    match line(root, "sys/kernel/sched_ext/state") {
        Some(state) if state != "disabled" => {
            let name = line(root, "sys/kernel/sched_ext/root/ops").unwrap_or_else(|| "unnamed".into());
            Some(if state == "enabled" { name } else { format!("{name}, {state}") })
        }
        Some(_) => Some("none".into()),
        None => root.path("sys/kernel").is_dir().then(|| "none".into()),
    }
}

/// What traces the kernel now; only root may see it.
fn tracing(root: &Root) -> Option<String> {
    let tracefs = tracefs(root)?;
    let text = |name: &str| fs::read_to_string(tracefs.join(name)).ok();
    let tracer = text("current_tracer")?.trim().to_string();
    match text("set_event").map_or(0, |events| events.lines().filter(|line| !line.trim().is_empty()).count())
    {
        0 => Some(tracer),
        events => Some(format!("{tracer}, events: {events}")),
    }
}

fn tracefs(root: &Root) -> Option<PathBuf> {
    let table = root.text("proc/self/mountinfo").ok()?;
    let mounted = mounts::parse(&table).into_iter().find(|mount| mount.kind == "tracefs");
    mounted.map(|mount| root.path(mount.point)).or_else(|| Some(knobs::debugfs(root).ok()?.join("tracing")))
}
