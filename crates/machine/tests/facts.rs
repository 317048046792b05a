//! The facts of machines, real and synthetic.
#![cfg(test)]

mod common;

use common::{plant, tree};
use machine::{CpuSet, KernelConfig, Root, cost_of, facts};

const CPU: &str = "sys/devices/system/cpu";

#[test]
fn a_machine_that_says_nothing_has_no_facts_but_our_libc() {
    let tree = tree(&[]);
    let found = facts(&Root::at(tree.path()));
    let expected = experiment::Facts { libc: found.libc.clone(), ..experiment::Facts::default() };
    assert_eq!(found, expected);
}

#[test]
fn a_server_is_read_whole() {
    let tree = tree(&[
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Large 9000\nmicrocode\t: 0x1f\nflags\t\t: fpu hypervisor sse\n",
        ),
        ("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n"),
        ("proc/sys/kernel/hostname", "big\n"),
        ("proc/sys/kernel/osrelease", "7.3.4\n"),
        ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC today\n"),
        ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ("proc/sys/kernel/max_lock_depth", "1024\n"),
        ("proc/cmdline", "quiet page_poison=1\n"),
        ("boot/config-7.3.4", "# c\nCONFIG_PREEMPT_LAZY=y\nCONFIG_PAGE_POISONING=y\nCONFIG_KASAN=y\n"),
        (&format!("{CPU}/online"), "0-2\n"),
        (&format!("{CPU}/cpu0/topology/physical_package_id"), "0\n"),
        (&format!("{CPU}/cpu1/topology/physical_package_id"), "0\n"),
        (&format!("{CPU}/cpu2/topology/physical_package_id"), "1\n"),
        (&format!("{CPU}/cpu0/cpufreq/scaling_governor"), "performance\n"),
        (&format!("{CPU}/intel_pstate/no_turbo"), "1\n"),
        (&format!("{CPU}/smt/active"), "1\n"),
        (&format!("{CPU}/vulnerabilities/meltdown"), "Mitigation: PTI (always)\n"),
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("proc/self/mountinfo", "36 23 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n"),
        ("sys/kernel/debug/sched/preempt", "none voluntary full (lazy) \n"),
        ("sys/kernel/debug/sched/features", "PLACE_LAG NO_NEXT_BUDDY \n"),
        ("sys/kernel/debug/sched/debug", "a long report\n"),
        ("sys/kernel/debug/rseq/slice_ext_nsec", "5000\n"),
    ]);
    let found = facts(&Root::at(tree.path()));
    let rows: Vec<String> = found.rows().iter().map(|(name, value)| format!("{name}={value}")).collect();
    for row in [
        "CPU model=Large 9000",
        "CPUs online=0-2",
        "NUMA nodes=2",
        "sockets=2",
        "SMT=on",
        "microcode=0x1f",
        "governor=performance",
        "turbo=off",
        "clocksource=tsc",
        "transparent hugepages=madvise",
        "hypervisor=QEMU",
        "preemption=lazy",
        "debug options=CONFIG_KASAN CONFIG_PAGE_POISONING",
        "mitigation meltdown=Mitigation: PTI (always)",
        "sysctl kernel.sched_autogroup_enabled=1",
        "sysctl kernel.max_lock_depth=1024",
        "sched features=PLACE_LAG NO_NEXT_BUDDY",
        "sched rseq/slice_ext_nsec=5000",
    ] {
        assert!(rows.iter().any(|found| found == row), "{row} is not in {rows:#?}");
    }
    assert_eq!(found.memory_bytes, Some(2 << 20));
    assert!(!found.sched_debug.contains_key("debug"));
    assert!(found.debug_options.unwrap().iter().all(|option| cost_of(option).is_some()));
}

#[test]
fn m1_a_machine_of_4096_cpus_with_holes() {
    let tree = tree(&[
        (&format!("{CPU}/online"), "0-1023,1025-4095\n"),
        ("proc/self/status", "Cpus_allowed:\tffff\nCpus_allowed_list:\t16-31,1024,4000-8191\n"),
    ]);
    for cpu in 0..4096 {
        plant(
            tree.path(),
            &format!("{CPU}/cpu{cpu}/topology/physical_package_id"),
            &format!("{}\n", cpu / 512),
        );
    }
    let found = facts(&Root::at(tree.path()));
    assert_eq!(found.sockets, Some(8));
    assert_eq!(found.cpus_allowed.as_deref(), Some("16-31,4000-4095"));
}

#[test]
fn cores_of_several_kinds_are_told_apart() {
    let intel = tree(&[
        (&format!("{CPU}/online"), "0-11\n"),
        ("sys/devices/cpu_core/cpus", "0-3\n"),
        ("sys/devices/cpu_atom/cpus", "4-11\n"),
    ]);
    assert_eq!(facts(&Root::at(intel.path())).cpu_kinds.as_deref(), Some("cpu_core 0-3, cpu_atom 4-11"));

    let arm = tree(&[(&format!("{CPU}/online"), "0-3\n")]);
    for (cpu, capacity) in [(0, 446), (1, 446), (2, 1024), (3, 1024)] {
        plant(arm.path(), &format!("{CPU}/cpu{cpu}/cpu_capacity"), &format!("{capacity}\n"));
    }
    assert_eq!(
        facts(&Root::at(arm.path())).cpu_kinds.as_deref(),
        Some("capacity 1024 2-3, capacity 446 0-1")
    );
    for cpu in 0..4 {
        plant(arm.path(), &format!("{CPU}/cpu{cpu}/cpu_capacity"), "1024\n");
    }
    assert_eq!(facts(&Root::at(arm.path())).cpu_kinds, None, "they are all alike");
}

#[test]
fn the_preemption_model_is_what_is_in_force() {
    let preemption = |version: &str, command_line: &str, config: &str| {
        let tree = tree(&[
            ("proc/sys/kernel/osrelease", "7.3.4\n"),
            ("proc/sys/kernel/version", version),
            ("proc/cmdline", command_line),
            ("lib/modules/7.3.4/config", config),
        ]);
        facts(&Root::at(tree.path())).preemption
    };
    let voluntary = "CONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT is not set\n";
    assert_eq!(preemption("#1 SMP PREEMPT_DYNAMIC", "quiet", voluntary).as_deref(), Some("voluntary"));
    let given = "preempt=none preempt=full quiet";
    assert_eq!(preemption("#1 SMP PREEMPT_DYNAMIC", given, voluntary).as_deref(), Some("full"));
    assert_eq!(preemption("#1 SMP PREEMPT_RT", "", "").as_deref(), Some("rt"));
    assert_eq!(preemption("#1 SMP PREEMPT", "", "CONFIG_PREEMPT=y\n").as_deref(), Some("full"));
    assert_eq!(preemption("#1 SMP", "preempt=full", ""), None, "the word means nothing to such a kernel");
}

#[test]
fn debug_code_that_sleeps_is_not_called_costly() {
    let config =
        KernelConfig::parse("CONFIG_SLUB_DEBUG=y\nCONFIG_PAGE_POISONING=y\nCONFIG_PROVE_LOCKING=m\n");
    assert_eq!(config.debug_options("quiet"), [""; 0]);
    assert_eq!(config.debug_options("slub_debug=FZ"), ["CONFIG_SLUB_DEBUG"]);
    assert_eq!(config.debug_options("slub_debugger page_poison=on"), ["CONFIG_PAGE_POISONING"]);
    assert_eq!(cost_of("CONFIG_HZ"), None);
}

#[test]
fn the_machine_that_runs_the_tests_has_facts() {
    let found = facts(&Root::real());
    assert_eq!(found.kernel_release, Some(rustix::system::uname().release().to_str().unwrap().to_string()));
    let allowed: CpuSet = found.cpus_allowed.unwrap().parse().unwrap();
    assert_eq!(allowed, machine::cpus::allowed().unwrap());
    assert_eq!(found.clocksource, machine::clocksource(&Root::real()));
    assert!(found.memory_bytes.unwrap() > 0);
}
