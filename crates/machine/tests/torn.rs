//! Whatever stands in the files of /proc and /sys: nobody panics, and no figure is made up.
//!
//! A file may be torn, since the kernel writes some while they are read; it may come from a kernel that is older or
//! newer than any that was seen; and in a container it may be a fake.
#![cfg(test)]

mod common;

use machine::doctor::{State, examine};
use machine::{
    Cgroups, CpuSet, KernelConfig, Need, Root, Snapshot, SystemVNeed, cost_of, facts, last_level_cache_bytes,
    memory_for, room_for, room_for_system_v, usage_of_self,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// The files that readers look at, as a machine has them.
const FILES: &[(&str, &str)] = &[
    ("etc/os-release", "ID=debian\nID_LIKE=\"a b\"\n"),
    ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Large 9000\nflags\t\t: fpu hypervisor svm\n"),
    ("proc/meminfo", "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n"),
    ("proc/cmdline", "quiet preempt=full sched_proxy_exec=1 slub_debug=F\n"),
    ("proc/loadavg", "0.52 0.58 0.59 2/400 4711\n"),
    ("proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3\n"),
    ("proc/kallsyms", "ffffffff81000000 T _stext\nffffffff81000010 t find_proxy_task\n"),
    ("proc/self/status", "Name:\tx\nUid:\t1000\t1000\nThreads:\t3\nCapEff:\t00ff\nCpus_allowed_list:\t0-1\n"),
    ("proc/self/limits", "Max processes  100 unlimited p\nMax open files  1024 4096 f\n"),
    ("proc/self/uid_map", "0 0 4294967295\n"),
    ("proc/self/sched", "se.nr_migrations  :  12\n"),
    ("proc/7/status", "Uid:\t1000\t1000\nThreads:\t3\n"),
    (
        "proc/self/mountinfo",
        "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n\
         32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         36 23 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n",
    ),
    ("proc/self/cgroup", "4:cpu:/x\n0::/a\n"),
    ("proc/sys/kernel/osrelease", "7.3.4\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC today\n"),
    ("proc/sys/kernel/tainted", "4097\n"),
    ("proc/version", "Linux version 7.3.4 (me@host) (gcc (GCC) 15.3, GNU ld 2.46) #1 SMP\n"),
    ("proc/self/auxv", "\u{6}\0\0\0\0\0\0\0\0\u{10}\0\0\0\0\0\0\u{1b}\0\0\0\0\0\0\0\u{21}\0\0\0\0\0\0\0"),
    ("proc/device-tree/compatible", "riscv-virtio\0qemu\0"),
    (
        "sys/kernel/notes",
        "\u{4}\0\0\0\u{4}\0\0\0\u{3}\0\0\0GNU\0abcd\u{4}\0\0\0\u{4}\0\0\0\u{6}\0\0\0Xen\0abcd",
    ),
    ("sys/bus/event_source/devices/cpu/type", "4\n"),
    ("sys/class/dmi/id/bios_version", "1.16\n"),
    ("sys/devices/system/cpu/nohz_full", "(null)\n"),
    ("sys/devices/system/cpu/cpu0/topology/package_cpus_list", "0-1\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "800000\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "3900000\n"),
    ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16384 kB\n"),
    ("sys/devices/system/node/node0/distance", "10 21\n"),
    ("sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "always [never]\n"),
    ("sys/kernel/sched_ext/state", "enabled\n"),
    ("sys/kernel/debug/tracing/current_tracer", "nop\n"),
    ("sys/kernel/debug/tracing/set_event", "sched:sched_switch\n"),
    ("sys/fs/cgroup/a/cpu.weight", "100\n"),
    ("proc/sys/kernel/sem", "32000\t1024000000\t500\t32000\n"),
    ("proc/sys/kernel/shmmni", "4096\n"),
    ("proc/sys/kernel/shmall", "18446744073692774399\n"),
    ("proc/sys/kernel/pid_max", "32768\n"),
    ("proc/sys/kernel/threads-max", "30000\n"),
    ("proc/sys/kernel/watchdog", "1\n"),
    ("proc/sys/kernel/watchdog_thresh", "10\n"),
    ("proc/sys/kernel/numa_balancing", "1\n"),
    ("proc/sys/kernel/kptr_restrict", "1\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
    ("proc/sysvipc/sem", "key semid\n1 2\n"),
    ("proc/sysvipc/shm", "key shmid\n1 2\n"),
    (
        "boot/config-7.3.4",
        "CONFIG_PREEMPT_LAZY=y\nCONFIG_KASAN=y\nCONFIG_SLUB_DEBUG=y\n# CONFIG_X is not set\n",
    ),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/present", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/smt/active", "1\n"),
    ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
    ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n"),
    ("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "3\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "32768K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0\n"),
    ("sys/devices/system/cpu/cpu1/cache/index0/level", "3\n"),
    ("sys/devices/system/cpu/cpu1/cache/index0/size", "18014398509481983K\n"),
    ("sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list", "1\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/kernel/debug/sched/features", "PLACE_LAG NO_NEXT_BUDDY\n"),
    ("sys/kernel/debug/sched/preempt", "none (full)\n"),
    ("sys/fs/cgroup/a/cgroup.controllers", "cpu memory pids\n"),
    ("sys/fs/cgroup/a/memory.max", "1500000\n"),
    ("sys/fs/cgroup/a/memory.current", "1000000\n"),
    ("sys/fs/cgroup/a/memory.stat", "inactive_file 1\nactive_file 2\n"),
    ("sys/fs/cgroup/a/pids.max", "100\n"),
    ("sys/fs/cgroup/a/pids.current", "9\n"),
    ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n"),
    ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
    ("sys/fs/cgroup/cpu/x/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 700\n"),
];

/// What becomes of a file.
#[derive(Debug, Clone)]
enum Damage {
    /// It ends after as many bytes.
    Torn(prop::sample::Index),
    /// Its numbers, or words, are others.
    Word(prop::sample::Index, String),
    /// It holds something else.
    Other(Vec<u8>),
    /// Its lines come twice, or in another order.
    Doubled,
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = prop_oneof![
        Just("18446744073709551615"),
        Just("18446744073709551616"),
        Just("-1"),
        Just("0"),
        Just("max"),
        Just("unlimited"),
        Just("0-4294967295"),
        Just("65535"),
        Just("4-1"),
        Just("/.."),
        Just("["),
        Just(")"),
        Just("\u{fffd}"),
        Just(""),
    ];
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Damage::Torn),
        (any::<prop::sample::Index>(), words).prop_map(|(index, word)| Damage::Word(index, word.into())),
        prop::collection::vec(any::<u8>(), 0..80).prop_map(Damage::Other),
        Just(Damage::Doubled),
    ]
}

impl Damage {
    fn of(&self, text: &str) -> Vec<u8> {
        match self {
            Damage::Torn(end) => text.as_bytes()[..end.index(text.len() + 1)].to_vec(),
            Damage::Other(bytes) => bytes.clone(),
            Damage::Doubled => text
                .lines()
                .rev()
                .chain(text.lines())
                .flat_map(|line| [line, "\n"])
                .collect::<String>()
                .into(),
            Damage::Word(index, other) => {
                // Separators stay as they are.
                let words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
                let chosen = index.index(words.len().max(1));
                let replaced = words.iter().enumerate().map(|(index, word)| {
                    let end = word.chars().last().filter(|c| !c.is_alphanumeric()).map(String::from);
                    if index == chosen {
                        format!("{other}{}", end.unwrap_or_default())
                    } else {
                        word.to_string()
                    }
                });
                replaced.collect::<String>().into_bytes()
            }
        }
    }
}

fn write(top: &Path, inside: &str, bytes: &[u8]) {
    let path = top.join(inside);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Reads the machine in every way there is.
fn read_all(root: &Root) {
    let found = facts(root);
    assert!(found.cpu_quota.is_none_or(f64::is_finite), "{found:?}");
    let cpus = machine::cpus::online(root).map(|cpus| cpus.to_vec()).unwrap_or_default();
    let _ = last_level_cache_bytes(root, &cpus);
    if let Ok(groups) = Cgroups::of_self(root) {
        assert!(groups.cpu_quota().is_none_or(|quota| quota.cpus.is_finite()));
        let _ = (groups.layout(), groups.controllers(), groups.pids_limits(), groups.throttling());
    }
    let _ = room_for(root, &Need { threads: u64::MAX, processes: u64::MAX, files: u64::MAX });
    let _ = memory_for(root, u64::MAX);
    let all = SystemVNeed { sets: u64::MAX, segments: u64::MAX, segment_bytes: u64::MAX };
    let _ = room_for_system_v(root, &all);
    let _ = Snapshot::take(root).until(&Snapshot::take(root));
    let _ = usage_of_self(root);
    for section in examine(root, None, None) {
        for finding in section.findings {
            assert!(!finding.seen.is_empty() || finding.state == State::Unknown, "{finding:?}");
            assert!(!finding.seen.contains("NaN") && !finding.seen.contains("inf "), "{finding:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_make_nobody_panic(
        damages in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..12),
    ) {
        let tree = common::tree(&[]);
        for (inside, text) in FILES {
            write(tree.path(), inside, text.as_bytes());
        }
        for (index, damage) in &damages {
            let (inside, text) = FILES[index.index(FILES.len())];
            write(tree.path(), inside, &damage.of(text));
        }
        read_all(&Root::at(tree.path()));
    }

    #[test]
    fn lists_of_cpus_come_back_as_they_went(ids in prop::collection::btree_set(0_u32..65_536, 0..50)) {
        let set: CpuSet = ids.iter().copied().collect();
        prop_assert_eq!(set.to_vec(), ids.iter().copied().collect::<Vec<u32>>());
        prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
    }

    #[test]
    fn any_text_is_a_list_of_cpus_or_an_error(text in "[0-9,\\- \\n]{0,24}|\\PC{0,12}") {
        if let Ok(set) = text.parse::<CpuSet>() {
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }
    }

    #[test]
    fn any_text_is_a_configuration(
        text in "(CONFIG_[A-Z_]{1,8}=[ymn\"0-9]{0,3}\n|\\PC{0,20}\n){0,8}",
        line in "\\PC{0,40}",
    ) {
        let config = KernelConfig::parse(&text);
        for option in config.debug_options(&line) {
            prop_assert!(cost_of(&option).is_some(), "{}", option);
            prop_assert!(config.has(&option));
        }
    }
}

#[test]
fn whole_files_are_read_whole() {
    let tree = common::tree(FILES);
    let root = Root::at(tree.path());
    read_all(&root);
    let found = facts(&root);
    assert_eq!(found.cpu_quota, Some(0.5));
    assert_eq!(found.cpus_allowed.as_deref(), Some("0-1"));
    assert_eq!(found.preemption.as_deref(), Some("full"));
    // Larger than any memory: the sum of two sizes does not wrap.
    assert_eq!(last_level_cache_bytes(&root, &[0, 1]), Some(u64::MAX));
}

#[test]
fn an_id_that_no_cpu_has_costs_no_memory() {
    let tree = common::tree(&[("proc/stat", "cpu  1 2 3 4\ncpu1 1 2\ncpu4294967295 1 2\nintr 1\n")]);
    assert_eq!(machine::cpus::online(&Root::at(tree.path())).unwrap(), CpuSet::one(1));
}

#[test]
fn a_group_outside_the_namespace_of_this_process_has_no_directory() {
    let tree = common::tree(&[
        ("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("proc/self/cgroup", "0::/..\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu\n"),
        // What stands above the mount is no group.
        ("sys/fs/cpu.max", "1 100000\n"),
    ]);
    let groups = Cgroups::of_self(&Root::at(tree.path())).unwrap();
    assert_eq!(groups.unified(), None);
    assert_eq!(groups.cpu_quota(), None);
}
