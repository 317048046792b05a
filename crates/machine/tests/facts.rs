//! The facts of machines, real and synthetic.
#![cfg(test)]

mod common;

use common::tree;
use machine::{CpuSet, Root, cost_of, facts};

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
        ("proc/sys/kernel/tainted", "12288\n"),
        ("proc/sys/kernel/arch", "x86_64\n"),
        ("proc/version", "Linux version 7.3.4 (me@host) (gcc (GCC) 15.3, GNU ld 2.46) #1 SMP\n"),
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
        ("sys/devices/system/node/node0/cpulist", "0-2\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:   1024 kB\nNode 0 MemFree: 1 kB\n"),
        ("sys/devices/system/node/node0/distance", "10 21\n"),
        ("sys/devices/system/node/node1/cpulist", "\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n"),
        ("sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", "always [inherit] madvise never\n"),
        ("sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always inherit madvise [never]\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("sys/class/dmi/id/bios_version", "1.16\n"),
        ("sys/bus/event_source/devices/cpu/type", "4\n"),
        ("sys/bus/event_source/devices/software/type", "1\n"),
        ("sys/kernel/sched_ext/state", "enabled\n"),
        ("sys/kernel/sched_ext/root/ops", "lavd\n"),
        ("sys/kernel/security/lsm", "capability,landlock\n"),
        ("proc/self/mountinfo", "36 23 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n"),
        ("sys/kernel/debug/sched/preempt", "none voluntary full (lazy) \n"),
        ("sys/kernel/debug/sched/features", "PLACE_LAG NO_NEXT_BUDDY \n"),
        ("sys/kernel/debug/sched/debug", "a long report\n"),
        ("sys/kernel/debug/rseq/slice_ext_nsec", "5000\n"),
        ("sys/kernel/debug/tracing/current_tracer", "function\n"),
        ("sys/kernel/debug/tracing/set_event", "sched:sched_switch\nsched:sched_wakeup\n"),
    ]);
    let found = facts(&Root::at(tree.path()));
    let rows: Vec<String> = found.rows().iter().map(|(name, value)| format!("{name}={value}")).collect();
    for row in [
        "architecture=x86_64",
        "kernel compiler=gcc (GCC) 15.3, GNU ld 2.46",
        "kernel taint=OE",
        "CPU model=Large 9000",
        "CPUs online=0-2",
        "NUMA nodes=2",
        "NUMA node 0=CPUs 0-2, distances 10 21",
        "memory of NUMA node 0=1 MiB",
        "NUMA node 1=no CPUs",
        "PMU=cpu",
        "firmware=1.16",
        "mm transparent_hugepage/defrag=madvise",
        "mm transparent_hugepage/hugepages=64kB never, 2048kB inherit",
        "sched_ext=lavd",
        "security modules=capability,landlock",
        "tracing=function, events: 2",
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
fn a_real_time_kernel_is_one_whatever_it_selects() {
    for (selected, model) in [("(full) lazy", "rt"), ("full (lazy)", "rt lazy")] {
        let tree = tree(&[
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT today"),
            ("proc/self/mountinfo", "36 23 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n"),
            ("sys/kernel/debug/sched/preempt", selected),
        ]);
        assert_eq!(facts(&Root::at(tree.path())).preemption.as_deref(), Some(model));
    }
}

#[test]
fn the_configuration_is_that_of_the_running_kernel() {
    let release = ("proc/sys/kernel/osrelease", "7.3.4\n");
    let build = "lib/modules/7.3.4/build";
    let from = |files: &[(&str, &str)]| {
        let tree = tree(files);
        let facts = facts(&Root::at(tree.path()));
        facts.config.map(|config| (config.from, config.options.unwrap().len()))
    };
    let options = "CONFIG_SMP=y\nCONFIG_HZ=250\n";
    assert_eq!(from(&[release, ("boot/config-7.3.4", options)]), Some(("/boot/config-7.3.4".into(), 2)));
    assert_eq!(
        from(&[release, ("boot/config-7.3.4", "no configuration"), ("lib/modules/7.3.4/config", options)]),
        Some(("/lib/modules/7.3.4/config".into(), 2))
    );
    let config = format!("{build}/.config");
    let built = format!("{build}/include/config/kernel.release");
    assert_eq!(from(&[release, (&config, options), (&built, "7.3.4\n")]), Some((format!("/{config}"), 2)));
    assert_eq!(from(&[release, (&config, options), (&built, "7.4.0-rc1\n")]), None, "the tree has moved on");
    assert_eq!(from(&[release, (&config, options)]), None, "nobody says which kernel it is of");
    assert_eq!(from(&[("boot/config-7.3.4", options)]), None, "the release is not known");
}

#[test]
fn the_machine_that_runs_the_tests_has_facts() {
    let found = facts(&Root::real());
    assert_eq!(found.kernel_release, Some(rustix::system::uname().release().to_str().unwrap().to_string()));
    let allowed: CpuSet = found.cpus_allowed.clone().unwrap().parse().unwrap();
    assert_eq!(allowed, machine::cpus::allowed().unwrap());
    assert_eq!(found.clocksource, machine::clocksource(&Root::real()));
    assert!(found.memory_bytes.unwrap() > 0);
    assert_eq!(found.page_bytes, Some(rustix::param::page_size() as u64));
    assert_eq!(found.architecture.as_deref(), Some(std::env::consts::ARCH));
    assert!(found.cgroups.is_some() && found.kernel_compiler.is_some(), "{found:#?}");
}
