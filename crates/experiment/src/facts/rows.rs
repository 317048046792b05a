//! Facts in words.

use super::{Facts, NumaNode};

impl Facts {
    /// Every fact that is known, as a name and its value in words, in a stable order: for headers and for
    /// differences between variants. The options of the kernel are not among them, but which of them cost time.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut text = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                rows.push((name.to_string(), value.clone()));
            }
        };
        let number = |value: Option<u32>| value.map(|number| number.to_string());
        let switch = |value: Option<bool>| value.map(|on| if on { "on".into() } else { "off".into() });
        let list = |value: &Option<String>| value.as_ref().map(|cpus| or_none(cpus));
        let memory = |bytes: Option<u64>| bytes.map(mib);
        text("hostname", &self.hostname);
        text("product", &self.product);
        text("firmware", &self.firmware);
        text("architecture", &self.architecture);
        text("kernel", &self.kernel_release);
        text("kernel version", &self.kernel_version);
        text("kernel build id", &self.kernel_build_id);
        text("kernel compiler", &self.kernel_compiler);
        text("kernel taint", &self.kernel_taint);
        text("preemption", &self.preemption);
        text("command line", &self.command_line);
        text("debug options", &self.debug_options.as_ref().map(|options| or_none(&options.join(" "))));
        text("CPU model", &self.cpu_model);
        text("CPU stepping", &self.cpu_stepping);
        text("microcode", &self.microcode);
        text("CPUs online", &self.cpus_online);
        text("CPUs offline", &list(&self.cpus_offline));
        text("CPUs allowed", &self.cpus_allowed);
        text("CPUs isolated", &list(&self.cpus_isolated));
        text("CPUs nohz_full", &list(&self.cpus_nohz_full));
        text("sockets", &number(self.sockets));
        text("cores", &number(self.cores));
        text("kinds of cores", &self.cpu_kinds);
        text("SMT", &switch(self.smt));
        text("last-level caches", &number(self.last_level_caches));
        text("last-level cache", &self.last_level_cache_bytes.map(|bytes| format!("{} KiB", bytes >> 10)));
        text("NUMA nodes", &number(self.numa_nodes));
        for node in &self.numa {
            text(&format!("NUMA node {}", node.node), &Some(node_in_words(node)));
            text(&format!("memory of NUMA node {}", node.node), &memory(node.memory_bytes));
        }
        text("governor", &self.governor);
        text("frequency driver", &self.frequency_driver);
        text("frequency limits", &self.frequency_limits_khz.as_ref().map(|limits| format!("{limits} kHz")));
        text("energy preference", &self.energy_preference);
        text("turbo", &switch(self.turbo));
        text("idle states", &self.idle);
        text("clocksource", &self.clocksource);
        text("PMU", &self.pmu.as_ref().map(|units| or_none(&units.join(" "))));
        text("memory", &memory(self.memory_bytes));
        text("swap", &memory(self.swap_bytes));
        text("page size", &self.page_bytes.map(|bytes| format!("{bytes} bytes")));
        text("transparent hugepages", &self.transparent_hugepages);
        text("hypervisor", &self.hypervisor);
        text("paravirtual", &self.paravirtual);
        text("cgroups", &self.cgroups);
        text("CPU quota", &self.cpu_quota.map(|cpus| format!("{cpus} CPUs")));
        text("CPU weight", &self.cpu_weight);
        text("memory limit", &memory(self.memory_limit_bytes));
        text("limit of tasks", &self.tasks_limit.map(|tasks| tasks.to_string()));
        text("libc", &self.libc);
        text("rseq of libc", &self.rseq_of_libc);
        text("rseq of kernel", &self.rseq_of_kernel);
        text("sched_ext", &self.sched_ext);
        text("security modules", &self.security_modules);
        text("tracing", &self.tracing);
        for (prefix, map) in [
            ("mitigation", &self.mitigations),
            ("sysctl", &self.sysctls),
            ("sched", &self.sched_debug),
            ("mm", &self.memory_settings),
        ] {
            rows.extend(map.iter().map(|(name, value)| (format!("{prefix} {name}"), value.clone())));
        }
        rows
    }
}

/// A list that is known to be empty is a fact, too.
fn or_none(list: &str) -> String {
    if list.is_empty() { "none".into() } else { list.into() }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn node_in_words(node: &NumaNode) -> String {
    let cpus = if node.cpus.is_empty() { "no CPUs".into() } else { format!("CPUs {}", node.cpus) };
    let distances = node.distances.as_ref().map(|distances| format!(", distances {distances}"));
    cpus + &distances.unwrap_or_default()
}
