//! What the doctor says of machines, real and synthetic.
#![cfg(test)]

mod common;

use common::{plant, tree};
use experiment::Missing;
use machine::Root;
use machine::doctor::{Finding, Remedy, Section, State, examine};
use std::path::Path;
use tempfile::TempDir;

const CPU: &str = "sys/devices/system/cpu";

/// What is said of the machine whose files are below `top`.
fn said_of(top: &Path) -> Vec<Section> {
    examine(&Root::at(top), None, None)
}

fn finding<'a>(sections: &'a [Section], ability: &str) -> &'a Finding {
    let mut findings = sections.iter().flat_map(|section| &section.findings);
    findings.find(|finding| finding.ability == ability).unwrap_or_else(|| panic!("no finding on {ability}"))
}

/// The state, what was seen, and the command or advice, of one ability.
fn of(tree: &TempDir, ability: &str) -> (State, String, String) {
    let sections = said_of(tree.path());
    let Finding { state, seen, remedy, .. } = finding(&sections, ability);
    let remedy = match remedy {
        Some(Remedy::Command(text) | Remedy::Advice(text)) => text.clone(),
        None => String::new(),
    };
    // Where the tree is does not matter.
    let inside = |text: &str| text.replace(&tree.path().display().to_string(), "");
    (*state, inside(seen), inside(&remedy))
}

#[test]
fn nothing_is_well_on_a_machine_that_says_nothing() {
    let tree = tree(&[("etc/hostname", "nobody\n")]);
    let sections = said_of(tree.path());
    for finding in sections.iter().flat_map(|section| &section.findings) {
        assert!(!matches!(finding.state, State::Ok), "{finding:?}");
        assert!(!finding.seen.is_empty(), "{finding:?}");
    }
}

#[test]
fn every_ability_is_named_once() {
    let tree = tree(&[]);
    let sections = said_of(tree.path());
    let mut names: Vec<&str> =
        sections.iter().flat_map(|section| &section.findings).map(|finding| finding.ability).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.iter().all(|name| name.is_ascii() && name.len() < 20), "{names:?}");
}

#[test]
fn k5_a_kernel_that_lists_no_pmu_of_its_cpus_has_none() {
    let none = tree(&[
        ("sys/bus/event_source/devices/software/type", "1\n"),
        ("sys/bus/event_source/devices/msr/type", "12\n"),
    ]);
    let (state, _, remedy) = of(&none, "PMU");
    assert_eq!(state, State::No);
    assert!(remedy.contains("software clock"), "{remedy}");
    for name in ["cpu", "cpu_core", "armv8_pmuv3_0"] {
        let one = tree(&[(&format!("sys/bus/event_source/devices/{name}/type"), "4\n")]);
        let (state, seen, _) = of(&one, "PMU");
        assert_eq!(state, State::Unknown, "a list is no count");
        assert!(seen.contains(name), "{seen}");
    }
}

#[test]
fn k3_symbols_without_addresses_name_the_sysctl_that_hides_them() {
    let symbols = |table: &str, restrict: &str| {
        let tree = tree(&[("proc/kallsyms", table), ("proc/sys/kernel/kptr_restrict", restrict)]);
        of(&tree, "kernel symbols")
    };
    let hidden = "0000000000000000 T _stext\n0000000000000000 T do_one\n";
    let (state, seen, remedy) = symbols(hidden, "2\n");
    assert_eq!((state, remedy.as_str()), (State::Limited, "sysctl -w kernel.kptr_restrict=0"));
    assert!(seen.contains("kernel.kptr_restrict is 2"), "{seen}");
    assert!(symbols(hidden, "0\n").2.contains("perf_event_paranoid"));
    assert_eq!(symbols("0000000000000000 A fixed\nffffffff81000000 T _stext\n", "0\n").0, State::Ok);
    assert_eq!(symbols("", "0\n").0, State::No);
    assert_eq!(symbols("rubbish\n", "0\n").0, State::Limited);
}

#[test]
fn proxy_execution_is_known_by_configuration_symbols_and_command_line() {
    let proxy = |config: Option<&str>, kallsyms: Option<&str>, command_line: &str| {
        let tree = tree(&[("proc/sys/kernel/osrelease", "7.3.4\n"), ("proc/cmdline", command_line)]);
        if let Some(config) = config {
            plant(tree.path(), "boot/config-7.3.4", config);
        }
        if let Some(kallsyms) = kallsyms {
            plant(tree.path(), "proc/kallsyms", kallsyms);
        }
        of(&tree, "proxy execution")
    };
    let built = Some("CONFIG_SCHED_PROXY_EXEC=y\n");
    assert_eq!(proxy(built, None, "quiet\n").0, State::Ok);
    assert_eq!(proxy(built, None, "sched_proxy_exec=0\n").0, State::Limited);
    let (state, seen, remedy) =
        proxy(Some("# CONFIG_SCHED_PROXY_EXEC is not set\n"), None, "sched_proxy_exec=1\n");
    assert_eq!(state, State::No);
    assert!(seen.contains("not set") && remedy.contains("CONFIG_SCHED_PROXY_EXEC"), "{seen} {remedy}");
    assert_eq!(proxy(None, Some("ffffffff81000000 t find_proxy_task\n"), "").0, State::Ok);
    assert_eq!(proxy(None, Some("ffffffff81000000 t find_other\n"), "").0, State::No);
    assert_eq!(proxy(None, None, "sched_proxy_exec=1\n").0, State::Unknown, "the word alone proves nothing");
}

#[test]
fn kvm_is_what_a_guest_showed_and_never_the_device_alone() {
    let with_device = tree(&[("dev/kvm", "")]);
    let kvm = |guest: Result<&str, &str>| {
        let guest = guest.map(str::to_string).map_err(Missing::because);
        let sections = examine(&Root::at(with_device.path()), None, Some(&guest));
        finding(&sections, "KVM").clone()
    };
    assert_eq!(kvm(Ok("a guest came up in 0.4 s")).state, State::Ok);
    let no = kvm(Err("KVM internal error"));
    assert_eq!(no.state, State::No);
    assert!(no.seen.contains("KVM internal error"), "{no:?}");
    assert_eq!(of(&with_device, "KVM").0, State::Unknown, "not tried");

    let amd = tree(&[("proc/cpuinfo", "flags\t\t: fpu svm sse\n")]);
    assert_eq!(
        of(&amd, "KVM"),
        (State::No, "there is no /dev/kvm; the CPU has SVM".into(), "modprobe kvm_amd".into())
    );
    let guest = tree(&[("proc/cpuinfo", "flags\t\t: fpu hypervisor\n")]);
    assert!(of(&guest, "KVM").2.contains("nested"));
}

#[test]
fn m10_control_groups_of_every_layout() {
    let v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu\n\
              33 31 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
    let v1_files = [
        ("proc/self/cgroup", "4:cpu:/x\n3:pids:/\n1:name=systemd:/gone\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/x/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 700\n"),
        ("sys/fs/cgroup/pids/pids.current", "1\n"),
    ];
    let version_1 = tree(&[&v1_files[..], &[("proc/self/mountinfo", v1)][..]].concat());
    let (state, seen, remedy) = of(&version_1, "cgroups");
    assert_eq!((state, seen.as_str()), (State::Limited, "version 1 alone; controllers: cpu pids"));
    assert!(remedy.contains("mount -t cgroup2"), "{remedy}");
    assert_eq!(of(&version_1, "groups of trials").0, State::No);
    let (state, seen, remedy) = of(&version_1, "CPU quota");
    assert_eq!(state, State::Limited);
    assert_eq!(
        seen,
        "1.5 CPUs by /sys/fs/cgroup/cpu/x/cpu.cfs_quota_us; it has stopped this group in 2 periods; trials that it \
         stops are invalid"
    );
    assert_eq!(remedy, "echo -1 > /sys/fs/cgroup/cpu/x/cpu.cfs_quota_us");

    let both = format!("{v1}38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    let hybrid = tree(&[&v1_files[..], &[("proc/self/mountinfo", both.as_str())][..]].concat());
    plant(hybrid.path(), "proc/self/cgroup", "4:cpu:/x\n3:pids:/\n0::/\n");
    plant(hybrid.path(), "sys/fs/cgroup/unified/cgroup.controllers", "\n");
    let seen = "hybrid; controllers of version 2 here: none; of version 1: cpu pids".to_string();
    assert_eq!(of(&hybrid, "cgroups"), (State::Ok, seen, String::new()));

    let version_2 = tree(&[
        ("proc/self/mountinfo", "25 24 0:22 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"),
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/cgroup.controllers", "cpu memory pids\n"),
        ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
    ]);
    assert_eq!(of(&version_2, "cgroups").1, "version 2; controllers here: cpu memory pids");
    assert_eq!(of(&version_2, "groups of trials").0, State::Unknown, "a tree of files makes no groups");
    assert_eq!(of(&version_2, "CPU quota").2, "echo max > /sys/fs/cgroup/a/cpu.max");
    plant(version_2.path(), "sys/fs/cgroup/a/cpu.max", "max 100000\n");
    assert_eq!(of(&version_2, "CPU quota"), (State::Ok, "none".into(), String::new()));
}

#[test]
fn holes_offline_cpus_and_a_narrow_mask_are_told() {
    let holes = tree(&[
        (&format!("{CPU}/present"), "0-7\n"),
        (&format!("{CPU}/online"), "0-2,5-7\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0-7\n"),
    ]);
    let (state, seen, remedy) = of(&holes, "CPUs");
    assert_eq!((state, seen.as_str()), (State::Limited, "6 online: 0-2,5-7; offline: 3-4"));
    assert_eq!(remedy, format!("echo 1 > /{CPU}/cpu3/online"));
    plant(holes.path(), "proc/self/status", "Cpus_allowed_list:\t5-6\n");
    let (_, seen, remedy) = of(&holes, "CPUs");
    assert!(seen.ends_with("; this process may use: 5-6"), "{seen}");
    assert_eq!(remedy, "taskset -pc 0-2,5-7 $$");
}

#[test]
fn m1_4096_cpus_with_smt_and_two_governors() {
    let large = tree(&[
        (&format!("{CPU}/present"), "0-4095\n"),
        (&format!("{CPU}/online"), "0-4095\n"),
        (&format!("{CPU}/smt/active"), "1\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0-4095\n"),
    ]);
    for cpu in 0..4096 {
        let first = cpu % 2048;
        let siblings = format!("{first},{}\n", first + 2048);
        plant(large.path(), &format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"), &siblings);
    }
    for (policy, governor) in [(0, "performance\n"), (4000, "powersave\n")] {
        plant(large.path(), &format!("{CPU}/cpufreq/policy{policy}/scaling_governor"), governor);
    }
    let sections = said_of(large.path());
    assert_eq!(finding(&sections, "CPUs").state, State::Ok);
    let smt = finding(&sections, "SMT");
    assert_eq!(smt.seen, "on: CPUs share 2048 of 2048 cores; one of each core: cpus=0-2047");
    assert_eq!(smt.remedy, Some(Remedy::Command(format!("echo off > /{CPU}/smt/control"))));
    let governor = finding(&sections, "frequency governor");
    assert_eq!(governor.seen, "performance, powersave");
    assert_eq!(governor.state, State::Limited);
}

#[test]
fn hybrid_cores_are_not_alike() {
    let intel = tree(&[
        (&format!("{CPU}/online"), "0-11\n"),
        ("sys/devices/cpu_core/cpus", "0-3\n"),
        ("sys/devices/cpu_atom/cpus", "4-11\n"),
    ]);
    let (state, seen, remedy) = of(&intel, "cores alike");
    assert_eq!((state, seen.as_str()), (State::Limited, "several kinds: cpu_core 0-3, cpu_atom 4-11"));
    assert!(remedy.contains("cpus="), "{remedy}");
    let alike = tree(&[(&format!("{CPU}/online"), "0-3\n")]);
    assert_eq!(of(&alike, "cores alike").0, State::Ok);
}

#[test]
fn turbo_names_the_switch_of_its_driver() {
    let intel = tree(&[(&format!("{CPU}/intel_pstate/no_turbo"), "0\n")]);
    assert_eq!(of(&intel, "turbo").2, format!("echo 1 > /{CPU}/intel_pstate/no_turbo"));
    let amd = tree(&[(&format!("{CPU}/cpufreq/boost"), "1\n")]);
    assert_eq!(of(&amd, "turbo").2, format!("echo 0 > /{CPU}/cpufreq/boost"));
    let off = tree(&[(&format!("{CPU}/cpufreq/boost"), "0\n")]);
    assert_eq!(of(&off, "turbo"), (State::Ok, "off".into(), String::new()));
}

#[test]
fn settings_that_disturb_are_named_with_what_turns_them_off() {
    let noisy = tree(&[
        ("proc/sys/kernel/osrelease", "7.3.4\n"),
        ("boot/config-7.3.4", "CONFIG_PROVE_LOCKING=y\nCONFIG_KASAN=y\n"),
        ("proc/sys/kernel/numa_balancing", "1\n"),
        ("sys/devices/system/node/online", "0-1\n"),
        ("proc/sys/kernel/watchdog", "1\n"),
        ("proc/sys/kernel/watchdog_thresh", "10\n"),
        ("proc/sys/kernel/nmi_watchdog", "1\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ("sys/kernel/sched_ext/state", "enabled\n"),
        ("sys/kernel/sched_ext/root/ops", "scx_made_up\n"),
        ("proc/self/mountinfo", "36 23 0:7 / /sys/kernel/tracing rw - tracefs tracefs rw\n"),
        ("sys/kernel/tracing/current_tracer", "nop\n"),
        ("sys/kernel/tracing/set_event", "sched:sched_switch\nsched:sched_wakeup\n"),
        (&format!("{CPU}/vulnerabilities/meltdown"), "Mitigation: PTI\n"),
        (&format!("{CPU}/vulnerabilities/mds"), "Vulnerable\n"),
        (&format!("{CPU}/vulnerabilities/l1tf"), "Not affected\n"),
    ]);
    let (state, seen, remedy) = of(&noisy, "debug options");
    assert_eq!(state, State::Limited);
    assert!(seen.contains("CONFIG_PROVE_LOCKING checks the order of every lock"), "{seen}");
    assert!(remedy.starts_with("scripts/config -d PROVE_LOCKING -d KASAN && make"), "{remedy}");
    assert_eq!(of(&noisy, "NUMA balancing").2, "sysctl -w kernel.numa_balancing=0");
    let (_, seen, remedy) = of(&noisy, "watchdogs");
    assert_eq!(seen, "NMI: on, holds a counter of the PMU; soft: on, wakes each CPU every 4.0 s");
    assert_eq!(remedy, "sysctl -w kernel.nmi_watchdog=0");
    assert_eq!(of(&noisy, "huge pages").2, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(of(&noisy, "mitigations").1, "on: meltdown; vulnerable: mds");
    assert_eq!(of(&noisy, "scheduler").1, "one that BPF has loaded: scx_made_up");
    assert_eq!(of(&noisy, "tracing").1, "on, and costs time: nop, events: 2");

    let quiet = tree(&[
        ("proc/sys/kernel/osrelease", "7.3.4\n"),
        ("boot/config-7.3.4", "CONFIG_HZ=250\n"),
        ("proc/sys/kernel/numa_balancing", "1\n"),
        ("sys/devices/system/node/online", "0\n"),
        ("proc/sys/kernel/nmi_watchdog", "0\n"),
        ("proc/sys/kernel/watchdog", "0\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/kernel/sched_ext/state", "disabled\n"),
        ("proc/self/mountinfo", "36 23 0:7 / /sys/kernel/tracing rw - tracefs tracefs rw\n"),
        ("sys/kernel/tracing/current_tracer", "nop\n"),
    ]);
    for ability in ["debug options", "NUMA balancing", "watchdogs", "huge pages", "scheduler", "tracing"] {
        assert_eq!(of(&quiet, ability).0, State::Ok, "{ability}");
    }
}

#[test]
fn m15_limits_that_are_too_low_name_what_raises_them() {
    let limits = |pid_max: &str, nofile: &str| {
        tree(&[
            (
                "proc/self/limits",
                &format!("Max processes  unlimited unlimited p\nMax open files {nofile} {nofile} f\n"),
            ),
            ("proc/sys/kernel/pid_max", pid_max),
            ("proc/sys/kernel/threads-max", "100000\n"),
            ("proc/loadavg", "0.1 0.1 0.1 1/200 4711\n"),
        ])
    };
    let narrow = limits("4096\n", "1000");
    let (state, seen, remedy) = of(&narrow, "tasks");
    assert_eq!(state, State::Limited);
    assert!(
        seen.contains("kernel.pid_max") && remedy.contains("sysctl -w kernel.pid_max="),
        "{seen} {remedy}"
    );
    assert!(of(&narrow, "open files").2.contains("ulimit -n"));
    let wide = limits("4194304\n", "20000");
    let seen = "7000 more processes fit: nproc unlimited, threads-max 100000, pid_max 4194304".to_string();
    assert_eq!(of(&wide, "tasks"), (State::Ok, seen, String::new()));
    assert_eq!(of(&wide, "open files").0, State::Ok);
}

#[test]
fn memory_that_a_group_holds_back_is_not_called_available() {
    let meminfo = ("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
    let free = tree(&[meminfo]);
    assert_eq!(of(&free, "memory"), (State::Ok, "8192 MiB of 16384 MiB available".into(), String::new()));
    let held = tree(&[
        meminfo,
        ("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/a/memory.current", "0\n"),
    ]);
    let (state, seen, _) = of(&held, "memory");
    assert_eq!(state, State::Limited);
    assert!(seen.ends_with("; 1024 MiB by /sys/fs/cgroup/a/memory.max"), "{seen}");
}

#[test]
fn the_machine_that_runs_the_tests_is_looked_at_for_real() {
    let home = tempfile::tempdir().unwrap();
    let sections = examine(&Root::real(), Some(home.path()), None);
    let findings = || sections.iter().flat_map(|section| &section.findings);
    // Whatever a machine is, there is a gap closer or a reason for whatever is not well.
    for finding in findings().filter(|finding| finding.state != State::Ok) {
        assert!(!finding.seen.is_empty(), "{finding:?}");
        assert!(finding.remedy.is_some() || finding.state == State::Unknown, "{finding:?}");
    }
    for finding in findings() {
        assert!(!finding.seen.contains("these are its files"), "{finding:?}");
    }
    assert!(finding(&sections, "CPUs").seen.contains("online"));
    assert_ne!(finding(&sections, "KVM").state, State::Ok, "no guest was booted");
}
