//! Which kernel options bear most on scheduling, locks and the workloads, so that a list that is cut begins with them.

use serde::Serialize;

/// What a kernel option is about, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptionGroup {
    /// The tick, the preemption model, and RCU.
    Preemption,
    /// Schedulers, CPU frequencies and idle states, control groups, rseq.
    Scheduling,
    /// Locks and futexes.
    Locks,
    /// Mitigations of faults of CPUs.
    Mitigations,
    /// Checks, statistics and tracing.
    Debugging,
    /// The compiler, and hardening that runs all the time.
    Hardening,
    /// Memory and its allocators.
    Memory,
    /// System calls, interrupts and entry to the kernel.
    Entry,
    /// What a guest does for its hypervisor.
    Guest,
    /// Drivers, file systems and all else.
    Rest,
}

/// What only says what compiler, assembler or architecture could do.
const ABILITIES: &str = "ARCH_* AS_* CC_CAN_* CC_HAS_* CC_IS_* HAS_* HAVE_* LD_* RUSTC_* TOOLS_* \
                         X86_DISABLED_FEATURE_* X86_REQUIRED_FEATURE_*";

/// Names of options without `CONFIG_`; a star stands for any part. The first group that has a name takes it.
const GROUPS: &[(OptionGroup, &str)] = &[
    (
        OptionGroup::Preemption,
        "HZ HZ_* NO_HZ* PREEMPT PREEMPT_* TICK_* HIGH_RES_TIMERS HRTIMER_* TREE_RCU RCU_LAZY RCU_NOCB_* RCU_BOOST \
         RCU_EXPERT CONTEXT_TRACKING_USER* VIRT_CPU_ACCOUNTING* IRQ_TIME_ACCOUNTING IRQ_FORCED_THREADING",
    ),
    (
        OptionGroup::Scheduling,
        "SCHED_* *_GROUP_SCHED RT_GROUP_SCHED* EXT_SUB_SCHED GROUP_SCHED_* CFS_BANDWIDTH CGROUP_SCHED \
         CGROUP_CPUACCT CPUSETS* UCLAMP_TASK* NUMA_BALANCING* RSEQ* PSI* SMP NR_CPUS MAXSMP CPUMASK_OFFSTACK \
         CPU_ISOLATION ENERGY_MODEL CPU_FREQ CPU_FREQ_DEFAULT_* CPU_IDLE INTEL_IDLE X86_INTEL_PSTATE \
         X86_AMD_PSTATE* HALTPOLL_CPUIDLE MEMBARRIER WQ_POWER_EFFICIENT*",
    ),
    (
        OptionGroup::Locks,
        "FUTEX* QUEUED_* PARAVIRT_SPINLOCKS MUTEX_SPIN_ON_OWNER RWSEM_SPIN_ON_OWNER LOCK_SPIN_ON_OWNER \
         LOCK_EVENT_COUNTS LOCK_TORTURE_TEST NUMA_AWARE_SPINLOCKS RT_MUTEXES INLINE_SPIN_* INLINE_READ_* \
         INLINE_WRITE_* UNINLINE_SPIN_* PER_VMA_LOCK",
    ),
    (
        OptionGroup::Mitigations,
        "CPU_MITIGATIONS SPECULATION_MITIGATIONS MITIGATION_* RETPOLINE PAGE_TABLE_ISOLATION RETHUNK CPU_*_ENTRY \
         CPU_SRSO SLS GDS_* CALL_DEPTH_TRACKING CALL_THUNKS X86_INTEL_TSX_MODE_* UNMAP_KERNEL_AT_EL0 \
         HARDEN_BRANCH_PREDICTOR",
    ),
    (
        OptionGroup::Debugging,
        "DEBUG_KERNEL DEBUG_MISC SCHEDSTATS LATENCYTOP KFENCE KFENCE_SAMPLE_INTERVAL KASAN* KCSAN* KMSAN* UBSAN* \
         KCOV* *_TRACER DYNAMIC_FTRACE FTRACE_SYSCALLS KPROBES UPROBES PERF_EVENTS DETECT_HUNG_TASK* \
         SOFTLOCKUP_DETECTOR HARDLOCKUP_DETECTOR WQ_WATCHDOG TASK_DELAY_ACCT TASKSTATS SLUB_STATS PERCPU_STATS \
         FAULT_INJECTION* MEM_ALLOC_PROFILING*",
    ),
    (
        OptionGroup::Hardening,
        "CC_VERSION_TEXT CC_OPTIMIZE_* LTO* CFI* GCC_PLUGIN* INIT_ON_* INIT_STACK_* STACKPROTECTOR* \
         HARDENED_USERCOPY* FORTIFY_SOURCE SLAB_FREELIST_* RANDOM_KMALLOC_CACHES RANDOMIZE_BASE \
         RANDOMIZE_KSTACK_OFFSET* RANDSTRUCT* KSTACK_ERASE ZERO_CALL_USED_REGS SHADOW_CALL_STACK LIST_HARDENED \
         BUG_ON_DATA_CORRUPTION JUMP_LABEL GENERIC_CPU X86_NATIVE_CPU MCORE2 MK8 MATOM X86_KERNEL_IBT \
         X86_USER_SHADOW_STACK SECCOMP SECCOMP_FILTER SECURITY SECURITY_SELINUX SECURITY_APPARMOR LSM AUDIT \
         AUDITSYSCALL RUST_OVERFLOW_CHECKS",
    ),
    (
        OptionGroup::Memory,
        "SLUB* SLAB* TRANSPARENT_HUGEPAGE* LRU_GEN* MEMCG ZSWAP ZSWAP_DEFAULT_ON KSM PT_RECLAIM HUGETLB_PAGE NUMA \
         NUMA_* COMPACTION X86_5LEVEL BROADCAST_TLB_FLUSH ARM64_*K_PAGES PAGE_REPORTING SHUFFLE_PAGE_ALLOCATOR \
         DEFERRED_STRUCT_PAGE_INIT SWAP",
    ),
    (
        OptionGroup::Entry,
        "X86_FRED GENERIC_ENTRY GENERIC_SYSCALL GENERIC_IRQ_ENTRY SYSCALL_USER_DISPATCH IO_URING IA32_EMULATION \
         BPF_JIT BPF_JIT_DEFAULT_ON STATIC_CALL EPOLL AIO",
    ),
    (
        OptionGroup::Guest,
        "PARAVIRT PARAVIRT_* HYPERVISOR_GUEST KVM_GUEST XEN XEN_PV XEN_PVHVM HYPERV HYPERV_TIMER PVH INTEL_TDX_GUEST",
    ),
];

impl OptionGroup {
    /// What its options are about, in words.
    pub fn word(self) -> &'static str {
        match self {
            OptionGroup::Preemption => "tick and preemption",
            OptionGroup::Scheduling => "scheduling",
            OptionGroup::Locks => "locks",
            OptionGroup::Mitigations => "mitigations",
            OptionGroup::Debugging => "debugging",
            OptionGroup::Hardening => "compiler and hardening",
            OptionGroup::Memory => "memory",
            OptionGroup::Entry => "system calls and entry",
            OptionGroup::Guest => "guests",
            OptionGroup::Rest => "the rest",
        }
    }

    /// The group of an option such as `CONFIG_HZ`.
    pub fn of(option: &str) -> OptionGroup {
        let name = option.strip_prefix("CONFIG_").unwrap_or(option);
        let is_among = |patterns: &str| patterns.split_whitespace().any(|pattern| matches(pattern, name));
        if is_among(ABILITIES) {
            return OptionGroup::Rest;
        }
        let group = GROUPS.iter().find(|(_, patterns)| is_among(patterns)).map(|(group, _)| *group);
        // Most of those that follow no pattern have the beginning that the kernel gives to checks.
        group.unwrap_or(match name.starts_with("DEBUG_") && !name.starts_with("DEBUG_INFO") {
            true => OptionGroup::Debugging,
            false => OptionGroup::Rest,
        })
    }
}

/// Whether a name fits a pattern in which one star stands for any part of it.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bears_on_scheduling_and_locks_comes_before_drivers() {
        for (option, group) in [
            ("CONFIG_HZ", OptionGroup::Preemption),
            ("CONFIG_PREEMPT_LAZY", OptionGroup::Preemption),
            ("CONFIG_SCHED_CLASS_EXT", OptionGroup::Scheduling),
            ("CONFIG_SCHEDSTATS", OptionGroup::Debugging),
            ("CONFIG_FUTEX_PRIVATE_HASH", OptionGroup::Locks),
            ("CONFIG_MITIGATION_ITS", OptionGroup::Mitigations),
            ("CONFIG_RSEQ_STATS", OptionGroup::Scheduling),
            ("CONFIG_DEBUG_NET", OptionGroup::Debugging),
            ("CONFIG_IRQSOFF_TRACER", OptionGroup::Debugging),
            ("CONFIG_ARM64_64K_PAGES", OptionGroup::Memory),
            ("CONFIG_LOCK_DOWN_KERNEL_FORCE_NONE", OptionGroup::Rest),
            ("CONFIG_DEBUG_INFO_BTF", OptionGroup::Rest),
            ("CONFIG_HAVE_PREEMPT_DYNAMIC", OptionGroup::Rest),
            ("CONFIG_ARCH_HAS_PREEMPT_LAZY", OptionGroup::Rest),
            ("CONFIG_HID_APPLE", OptionGroup::Rest),
        ] {
            assert_eq!(OptionGroup::of(option), group, "{option}");
        }
        assert!(OptionGroup::Preemption < OptionGroup::Rest);
    }
}
