//! What a machine and its kernel are: everything that could explain a difference.

mod rows;

use crate::KernelConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a machine and its kernel are. Each field is absent where it could not be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The node name.
    pub hostname: Option<String>,
    /// Maker and product, as the firmware names them.
    pub product: Option<String>,
    /// The firmware: maker, version and date.
    pub firmware: Option<String>,
    /// The instruction set: `x86_64`, `aarch64`, `riscv64`.
    pub architecture: Option<String>,
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// `uname -v`: build number, PREEMPT model and date.
    pub kernel_version: Option<String>,
    /// The build id of the kernel, in hexadecimal: two kernels of one id are the same kernel.
    pub kernel_build_id: Option<String>,
    /// The compiler and linker that built the kernel.
    pub kernel_compiler: Option<String>,
    /// What has tainted the kernel, by the letters of its log, such as `OE`; `none` for an untainted one.
    pub kernel_taint: Option<String>,
    /// The kernel's configuration.
    pub config: Option<FoundConfig>,
    /// The preemption model in force: `none`, `voluntary`, `full`, `lazy`, `rt`.
    pub preemption: Option<String>,
    /// The kernel command line.
    pub command_line: Option<String>,
    /// The model name of the CPUs; joined with ` + ` where there are several.
    pub cpu_model: Option<String>,
    /// Family, model and stepping, or what the architecture has for them.
    pub cpu_stepping: Option<String>,
    /// The microcode revision.
    pub microcode: Option<String>,
    /// The CPUs that are online, as a list.
    pub cpus_online: Option<String>,
    /// The CPUs that are there and switched off, as a list; empty for none.
    pub cpus_offline: Option<String>,
    /// The CPUs that trials may use, as a list.
    pub cpus_allowed: Option<String>,
    /// The CPUs that the scheduler leaves alone (`isolcpus=`), as a list; empty for none.
    pub cpus_isolated: Option<String>,
    /// The CPUs whose tick stops while one task runs (`nohz_full=`), as a list; empty for none.
    pub cpus_nohz_full: Option<String>,
    /// The number of sockets.
    pub sockets: Option<u32>,
    /// The number of cores that are online.
    pub cores: Option<u32>,
    /// The number of last-level caches of the CPUs that are online.
    pub last_level_caches: Option<u32>,
    /// The size of all of them together, in bytes.
    pub last_level_cache_bytes: Option<u64>,
    /// The number of NUMA nodes.
    pub numa_nodes: Option<u32>,
    /// The NUMA nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numa: Vec<NumaNode>,
    /// The kinds of cores with their CPUs, where there are several.
    pub cpu_kinds: Option<String>,
    /// Whether SMT is on.
    pub smt: Option<bool>,
    /// The frequency governor; joined with commas where CPUs have several.
    pub governor: Option<String>,
    /// The driver that sets frequencies.
    pub frequency_driver: Option<String>,
    /// The lowest and the highest frequency that governors may choose, in kHz: `800000-3900000`.
    pub frequency_limits_khz: Option<String>,
    /// What the hardware is told to prefer: `performance`, `balance_power`.
    pub energy_preference: Option<String>,
    /// Whether turbo or boost is on.
    pub turbo: Option<bool>,
    /// The driver and the governor of idle states.
    pub idle: Option<String>,
    /// The clock source in force.
    pub clocksource: Option<String>,
    /// The CPUs' performance monitoring units by the names of their drivers; empty where there is none.
    pub pmu: Option<Vec<String>>,
    /// The size of a page of memory, in bytes.
    pub page_bytes: Option<u64>,
    /// The mode of transparent huge pages.
    pub transparent_hugepages: Option<String>,
    /// Further settings of the memory management, by their path below /sys/kernel/mm.
    pub memory_settings: BTreeMap<String, String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space in bytes.
    pub swap_bytes: Option<u64>,
    /// The hypervisor, where the CPU says it is a guest.
    pub hypervisor: Option<String>,
    /// What the hypervisor offers to its guests: `kvmclock steal-time pv-unhalt`, and `dedicated` where it promises that
    /// CPUs are never taken away.
    pub paravirtual: Option<String>,
    /// Which versions of control groups are mounted: `none`, `v1`, `v2`, `hybrid`.
    pub cgroups: Option<String>,
    /// The CPU time limit of the cgroup, in CPUs.
    pub cpu_quota: Option<f64>,
    /// The weight of the cgroup for CPU time: `cpu.weight 100`, or `cpu.shares 1024`.
    pub cpu_weight: Option<String>,
    /// The tightest limit on memory of the cgroup and those above it, in bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The tightest limit on the number of tasks of the cgroup and those above it.
    pub tasks_limit: Option<u64>,
    /// The libc with its version.
    pub libc: Option<String>,
    /// Whether libc registers rseq for each thread: `on, 20 bytes used`, `off`.
    pub rseq_of_libc: Option<String>,
    /// What the kernel says of rseq: the bytes that it uses and their alignment.
    pub rseq_of_kernel: Option<String>,
    /// The scheduler that BPF has loaded (sched_ext); `none` without one.
    pub sched_ext: Option<String>,
    /// The security modules in force, in their order.
    pub security_modules: Option<String>,
    /// What traces the kernel: `nop` when nothing does, otherwise a tracer or a number of events.
    pub tracing: Option<String>,
    /// Mitigations by vulnerability.
    pub mitigations: BTreeMap<String, String>,
    /// Kernel options that are on and cost time, such as `CONFIG_PROVE_LOCKING`.
    pub debug_options: Option<Vec<String>>,
    /// Sysctls of the scheduler and of locks, by name.
    pub sysctls: BTreeMap<String, String>,
    /// Scheduler features and tunables from debugfs, by file.
    pub sched_debug: BTreeMap<String, String>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs, as a list; empty for a node that only has memory.
    pub cpus: String,
    /// Its memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Its distances to all nodes, as the firmware gives them: `10 21`.
    pub distances: Option<String>,
}

/// The configuration of a kernel, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundConfig {
    /// A checksum of its options: configurations of one id are the same.
    pub id: String,
    /// Where it was found: a file of the machine, or the package of the kernel.
    pub from: String,
    /// The options. Absent where an earlier record of the run has those of this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<KernelConfig>,
}

impl Facts {
    /// Takes over the configuration of the kernel, found at `from`, and what follows from it: the debug options, and
    /// the preemption model where it is not known otherwise. Expects release, version and command line to be read.
    pub fn take_config(&mut self, config: KernelConfig, from: &str) {
        let command_line = self.command_line.as_deref().unwrap_or_default();
        self.debug_options = Some(config.debug_options(command_line));
        if self.preemption.is_none() {
            self.preemption =
                preemption(self.kernel_version.as_deref().unwrap_or_default(), command_line, Some(&config));
        }
        self.config = Some(FoundConfig { id: config.id(), from: from.into(), options: Some(config) });
    }

    /// Leaves out the options of a configuration that `earlier` facts of the same run have. A journal then holds each
    /// configuration once.
    pub fn leave_out_config_of(&mut self, earlier: &Facts) {
        if let (Some(own), Some(theirs)) = (&mut self.config, &earlier.config)
            && own.id == theirs.id
        {
            own.options = None;
        }
    }

    /// The options of the kernel, where they are known.
    pub fn kernel_config(&self) -> Option<&KernelConfig> {
        self.config.as_ref()?.options.as_ref()
    }
}

/// The preemption model that a kernel started with, as far as its version (`uname -v`), its command line and its
/// configuration tell.
pub fn preemption(version: &str, command_line: &str, config: Option<&KernelConfig>) -> Option<String> {
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
