use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a machine and its kernel are: everything that could explain a difference. Each field is absent where it
/// could not be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The node name.
    pub hostname: Option<String>,
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// `uname -v`: build number, PREEMPT model and date.
    pub kernel_version: Option<String>,
    /// The preemption model in force: `none`, `voluntary`, `full`, `lazy`, `rt`.
    pub preemption: Option<String>,
    /// The kernel command line.
    pub command_line: Option<String>,
    /// The model name of the first CPU.
    pub cpu_model: Option<String>,
    /// The CPUs that are online, as a list.
    pub cpus_online: Option<String>,
    /// The CPUs that trials may use, as a list.
    pub cpus_allowed: Option<String>,
    /// The number of NUMA nodes.
    pub numa_nodes: Option<u32>,
    /// The number of sockets.
    pub sockets: Option<u32>,
    /// The kinds of cores with their CPUs, where there are several.
    pub cpu_kinds: Option<String>,
    /// Whether SMT is on.
    pub smt: Option<bool>,
    /// The microcode revision.
    pub microcode: Option<String>,
    /// The frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Whether turbo or boost is on.
    pub turbo: Option<bool>,
    /// The clock source in force.
    pub clocksource: Option<String>,
    /// The mode of transparent huge pages.
    pub transparent_hugepages: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The hypervisor, where the CPU says it is a guest.
    pub hypervisor: Option<String>,
    /// The CPU time limit of the cgroup, in CPUs.
    pub cpu_quota: Option<f64>,
    /// The libc with its version.
    pub libc: Option<String>,
    /// Mitigations by vulnerability.
    pub mitigations: BTreeMap<String, String>,
    /// Kernel options that are on and cost time, such as `CONFIG_PROVE_LOCKING`.
    pub debug_options: Option<Vec<String>>,
    /// Sysctls of the scheduler and of locks, by name.
    pub sysctls: BTreeMap<String, String>,
    /// Scheduler features and tunables from debugfs, by file.
    pub sched_debug: BTreeMap<String, String>,
}

impl Facts {
    /// Every fact that is known, as a name and its value in words, in a stable order: for headers and for
    /// differences between variants.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut text = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                rows.push((name.to_string(), value.clone()));
            }
        };
        let number = |value: Option<u32>| value.map(|number| number.to_string());
        let switch = |value: Option<bool>| value.map(|on| if on { "on".into() } else { "off".into() });
        text("hostname", &self.hostname);
        text("kernel", &self.kernel_release);
        text("kernel version", &self.kernel_version);
        text("preemption", &self.preemption);
        text("command line", &self.command_line);
        text("CPU model", &self.cpu_model);
        text("CPUs online", &self.cpus_online);
        text("CPUs allowed", &self.cpus_allowed);
        text("NUMA nodes", &number(self.numa_nodes));
        text("sockets", &number(self.sockets));
        text("kinds of cores", &self.cpu_kinds);
        text("SMT", &switch(self.smt));
        text("microcode", &self.microcode);
        text("governor", &self.governor);
        text("turbo", &switch(self.turbo));
        text("clocksource", &self.clocksource);
        text("transparent hugepages", &self.transparent_hugepages);
        text("memory", &self.memory_bytes.map(|bytes| format!("{} MiB", bytes >> 20)));
        text("hypervisor", &self.hypervisor);
        text("CPU quota", &self.cpu_quota.map(|cpus| format!("{cpus} CPUs")));
        text("libc", &self.libc);
        text("debug options", &self.debug_options.as_ref().map(|options| options.join(" ")));
        for (prefix, map) in
            [("mitigation", &self.mitigations), ("sysctl", &self.sysctls), ("sched", &self.sched_debug)]
        {
            rows.extend(map.iter().map(|(name, value)| (format!("{prefix} {name}"), value.clone())));
        }
        rows
    }
}
