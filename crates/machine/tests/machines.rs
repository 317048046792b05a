//! Machines of all sizes and architectures, as trees of their files.
#![cfg(test)]

mod common;

use common::{plant, tree};
use machine::{CpuSet, Root, facts};

const CPU: &str = "sys/devices/system/cpu";
const V2_MOUNT: &str = "25 24 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

/// Two sockets of 2048 CPUs, two threads to a core, one cache for 64 CPUs. CPU 1024 is switched off, with its sibling.
#[test]
fn m1_a_machine_of_4096_cpus_with_holes() {
    let tree = tree(&[
        (&format!("{CPU}/present"), "0-4095\n"),
        (&format!("{CPU}/online"), "0-1023,1026-4095\n"),
        (&format!("{CPU}/isolated"), "4000-4095\n"),
        (&format!("{CPU}/nohz_full"), "  (null)\n"),
        ("proc/self/status", "Cpus_allowed:\tffff\nCpus_allowed_list:\t16-31,1024,4000-8191\n"),
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1023,1026-2047\n"),
        ("sys/devices/system/node/node1/cpulist", "2048-4095\n"),
    ]);
    let online: CpuSet = "0-1023,1026-4095".parse().unwrap();
    let within = |first: u32, count: u32| (first..first + count).collect::<CpuSet>().and(&online).to_string();
    let packages = [within(0, 2048), within(2048, 2048)];
    for cpu in online.iter() {
        let directory = format!("{CPU}/cpu{cpu}");
        let put = |name: &str, text: &str| plant(tree.path(), &format!("{directory}/{name}"), text);
        put("topology/package_cpus_list", &packages[cpu as usize / 2048]);
        put("topology/core_cpus_list", &within(cpu / 2 * 2, 2));
        // Only the first of those that share a cache is asked.
        if cpu % 64 == 0 || cpu == 1026 {
            put("cache/index0/level", "1\n");
            put("cache/index1/level", "2\n");
            put("cache/index2/level", "3\n");
            put("cache/index2/size", "32768K\n");
            put("cache/index2/shared_cpu_list", &within(cpu / 64 * 64, 64));
        }
    }
    let found = facts(&Root::at(tree.path()));
    assert_eq!((found.sockets, found.cores), (Some(2), Some(2047)));
    assert_eq!((found.last_level_caches, found.last_level_cache_bytes), (Some(64), Some(64 * (32 << 20))));
    assert_eq!(found.cpus_allowed.as_deref(), Some("16-31,4000-4095"));
    assert_eq!(found.cpus_offline.as_deref(), Some("1024-1025"));
    assert_eq!(found.cpus_isolated.as_deref(), Some("4000-4095"));
    assert_eq!(found.cpus_nohz_full.as_deref(), Some(""));
    assert_eq!(found.numa[0].cpus, "0-1023,1026-2047");
    let rows = found.rows();
    assert!(rows.contains(&("CPUs nohz_full".into(), "none".into())), "{rows:?}");
}

/// Kernels before 5.3 have other names for the files of the topology, and some machines have only ids.
#[test]
fn m1_older_kernels_and_machines_without_lists_are_counted_too() {
    let old = tree(&[
        (&format!("{CPU}/online"), "0-3\n"),
        (&format!("{CPU}/cpu0/topology/core_siblings_list"), "0-1\n"),
        (&format!("{CPU}/cpu0/topology/thread_siblings_list"), "0-1\n"),
        (&format!("{CPU}/cpu2/topology/core_siblings_list"), "2-3\n"),
        (&format!("{CPU}/cpu2/topology/thread_siblings_list"), "2-3\n"),
    ]);
    let found = facts(&Root::at(old.path()));
    assert_eq!((found.sockets, found.cores), (Some(2), Some(2)));

    let ids = tree(&[(&format!("{CPU}/online"), "0-4095\n")]);
    for cpu in 0..4096 {
        let file = format!("{CPU}/cpu{cpu}/topology/physical_package_id");
        plant(ids.path(), &file, &format!("{}\n", cpu / 512));
    }
    let found = facts(&Root::at(ids.path()));
    assert_eq!((found.sockets, found.cores), (Some(8), None));
    // Firmware that does not tell the sockets makes the kernel say -1.
    plant(ids.path(), &format!("{CPU}/cpu0/topology/physical_package_id"), "-1\n");
    assert_eq!(facts(&Root::at(ids.path())).sockets, None);
}

#[test]
fn an_arm64_server_in_a_container() {
    let processor = |cpu: u32, part: &str| {
        format!(
            "processor\t: {cpu}\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n\
             CPU part\t: {part}\nCPU revision\t: 1\n\n"
        )
    };
    let cpuinfo = processor(0, "0xd0c") + &processor(1, "0xd0c");
    let tree = tree(&[
        ("proc/cpuinfo", &cpuinfo),
        ("proc/sys/kernel/arch", "aarch64\n"),
        (&format!("{CPU}/online"), "0-1\n"),
        ("sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n"),
        ("sys/bus/event_source/devices/arm_cmn_0/type", "9\n"),
        ("sys/class/dmi/id/sys_vendor", "Ampere\n"),
        ("sys/class/dmi/id/product_name", "Mt. Jade\n"),
        ("proc/self/mountinfo", V2_MOUNT),
        ("proc/self/cgroup", "0::/pod/a\n"),
        ("sys/fs/cgroup/pod/a/cpu.weight", "79\n"),
        ("sys/fs/cgroup/pod/a/memory.max", "max\n"),
        ("sys/fs/cgroup/pod/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/pod/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/pod/pids.max", "4096\n"),
        ("sys/fs/cgroup/pod/pids.current", "3\n"),
    ]);
    let mut vector = Vec::new();
    for word in [6_usize, 65536, 27, 33, 28, 64, 0, 0] {
        vector.extend(word.to_ne_bytes());
    }
    std::fs::write(tree.path().join("proc/self/auxv"), vector).unwrap();
    let found = facts(&Root::at(tree.path()));
    assert_eq!(found.cpu_model.as_deref(), Some("implementer 0x41 part 0xd0c"));
    assert_eq!(found.cpu_stepping.as_deref(), Some("variant 0x3 revision 1"));
    assert_eq!(found.architecture.as_deref(), Some("aarch64"));
    assert_eq!(found.product.as_deref(), Some("Ampere Mt. Jade"));
    assert_eq!(found.pmu, Some(vec!["armv8_pmuv3_0".to_string()]), "the mesh is no CPU");
    assert_eq!((found.hypervisor, found.paravirtual), (None, None));
    assert_eq!((found.cgroups.as_deref(), found.cpu_weight.as_deref()), (Some("v2"), Some("cpu.weight 79")));
    assert_eq!((found.cpu_quota, found.memory_limit_bytes), (Some(1.5), Some(1 << 30)));
    assert_eq!(found.tasks_limit, Some(4096));
    assert_eq!(found.page_bytes, Some(65536));
    assert_eq!(found.rseq_of_kernel.as_deref(), Some("33 bytes, aligned to 64"));
}

#[test]
fn an_arm64_guest_without_a_pmu() {
    let processor = "processor\t: 0\nCPU implementer\t: 0x00\nCPU part\t: 0x051\n";
    let tree = tree(&[
        ("proc/cpuinfo", processor),
        (&format!("{CPU}/online"), "0-1\n"),
        ("sys/bus/event_source/devices/software/type", "1\n"),
        ("proc/device-tree/model", "linux,dummy-virt\0"),
        ("proc/device-tree/compatible", "linux,dummy-virt\0"),
    ]);
    let found = facts(&Root::at(tree.path()));
    assert_eq!(found.pmu, Some(Vec::new()), "known to be absent");
    assert!(found.rows().contains(&("PMU".into(), "none".into())));
    assert_eq!(found.hypervisor.as_deref(), Some("linux,dummy-virt"));
    assert_eq!(found.product.as_deref(), Some("linux,dummy-virt"));
    assert_eq!(facts(&Root::at(tree.path().join("nowhere"))).pmu, None, "not known at all");
}

#[test]
fn a_riscv_board_with_cgroups_of_version_1() {
    let hart = |cpu: u32, uarch: &str| {
        format!(
            "processor\t: {cpu}\nhart\t\t: {cpu}\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\nuarch\t\t: {uarch}\n\
             mvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427\n\n"
        )
    };
    let cpuinfo = hart(0, "sifive,u74-mc") + &hart(1, "sifive,u74-mc");
    let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                  33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let tree = tree(&[
        ("proc/cpuinfo", &cpuinfo),
        (&format!("{CPU}/online"), "0-3\n"),
        (&format!("{CPU}/cpu0/topology/physical_package_id"), "-1\n"),
        ("proc/device-tree/model", "StarFive VisionFive 2 v1.3B\0"),
        ("proc/device-tree/compatible", "starfive,visionfive-2-v1.3b\0starfive,jh7110\0"),
        ("sys/bus/event_source/devices/cpu/type", "4\n"),
        ("proc/self/mountinfo", mounts),
        ("proc/self/cgroup", "4:cpu:/a\n5:memory:/a\n"),
        ("sys/fs/cgroup/cpu/a/cpu.shares", "1024\n"),
        ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
    ]);
    let found = facts(&Root::at(tree.path()));
    assert_eq!(found.cpu_model.as_deref(), Some("sifive,u74-mc"));
    assert_eq!(found.cpu_stepping.as_deref(), Some("implementation 0x4210427 isa rv64imafdc"));
    assert_eq!(found.product.as_deref(), Some("StarFive VisionFive 2 v1.3B"));
    assert_eq!((found.hypervisor, found.sockets), (None, None));
    assert_eq!(found.pmu, Some(vec!["cpu".to_string()]));
    assert_eq!(
        (found.cgroups.as_deref(), found.cpu_weight.as_deref()),
        (Some("v1"), Some("cpu.shares 1024"))
    );
    assert_eq!(found.memory_limit_bytes, None, "the largest number stands for no limit");
    let bare = common::tree(&[("proc/cpuinfo", "processor\t: 0\nmvendorid\t: 0x489\nmarchid\t\t: 0x7\n")]);
    let model = facts(&Root::at(bare.path())).cpu_model;
    assert_eq!(model.as_deref(), Some("vendor 0x489 architecture 0x7"));
}

#[test]
fn cores_of_several_kinds_are_told_apart() {
    let intel = tree(&[
        (&format!("{CPU}/online"), "0-11\n"),
        ("sys/devices/cpu_core/cpus", "0-3\n"),
        ("sys/devices/cpu_atom/cpus", "4-11\n"),
        ("sys/bus/event_source/devices/cpu_core/type", "4\n"),
        ("sys/bus/event_source/devices/cpu_atom/type", "10\n"),
        (&format!("{CPU}/cpufreq/policy0/scaling_governor"), "performance\n"),
        (&format!("{CPU}/cpufreq/policy0/scaling_driver"), "intel_pstate\n"),
        (&format!("{CPU}/cpufreq/policy0/scaling_min_freq"), "800000\n"),
        (&format!("{CPU}/cpufreq/policy0/scaling_max_freq"), "4900000\n"),
        (&format!("{CPU}/cpufreq/policy4/scaling_governor"), "powersave\n"),
        (&format!("{CPU}/cpufreq/policy4/scaling_driver"), "intel_pstate\n"),
        (&format!("{CPU}/cpufreq/policy4/scaling_min_freq"), "800000\n"),
        (&format!("{CPU}/cpufreq/policy4/scaling_max_freq"), "3600000\n"),
        (&format!("{CPU}/cpuidle/current_driver"), "intel_idle\n"),
        (&format!("{CPU}/cpuidle/current_governor"), "menu\n"),
    ]);
    let found = facts(&Root::at(intel.path()));
    assert_eq!(found.cpu_kinds.as_deref(), Some("cpu_core 0-3, cpu_atom 4-11"));
    assert_eq!(found.pmu, Some(vec!["cpu_atom".to_string(), "cpu_core".to_string()]));
    assert_eq!(found.governor.as_deref(), Some("performance, powersave"));
    assert_eq!(found.frequency_driver.as_deref(), Some("intel_pstate"));
    assert_eq!(found.frequency_limits_khz.as_deref(), Some("800000-4900000, 800000-3600000"));
    assert_eq!(found.idle.as_deref(), Some("intel_idle, governor menu"));

    let arm = tree(&[(&format!("{CPU}/online"), "0-3\n")]);
    let mut cpuinfo = String::new();
    for (cpu, capacity, part) in
        [(0, 446, "0xd05"), (1, 446, "0xd05"), (2, 1024, "0xd0b"), (3, 1024, "0xd0b")]
    {
        plant(arm.path(), &format!("{CPU}/cpu{cpu}/cpu_capacity"), &format!("{capacity}\n"));
        cpuinfo += &format!("processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n");
    }
    plant(arm.path(), "proc/cpuinfo", &cpuinfo);
    let found = facts(&Root::at(arm.path()));
    assert_eq!(found.cpu_kinds.as_deref(), Some("capacity 1024 2-3, capacity 446 0-1"));
    assert_eq!(found.cpu_model.as_deref(), Some("implementer 0x41 part 0xd05 + implementer 0x41 part 0xd0b"));
    for cpu in 0..4 {
        plant(arm.path(), &format!("{CPU}/cpu{cpu}/cpu_capacity"), "1024\n");
    }
    assert_eq!(facts(&Root::at(arm.path())).cpu_kinds, None, "they are all alike");
}

#[test]
fn m10_the_layout_of_control_groups_is_a_fact() {
    let layout = |mounts: &str, groups: &str| {
        let tree = tree(&[
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", groups),
            ("sys/fs/cgroup/cpu/cpu.shares", "1024\n"),
            ("sys/fs/cgroup/unified/cgroup.procs", ""),
        ]);
        facts(&Root::at(tree.path())).cgroups
    };
    let v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
    let unified = "38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    assert_eq!(layout(v1, "4:cpu:/\n").as_deref(), Some("v1"));
    assert_eq!(layout(V2_MOUNT, "0::/\n").as_deref(), Some("v2"));
    assert_eq!(layout(&format!("{v1}{unified}"), "4:cpu:/\n0::/\n").as_deref(), Some("hybrid"));
    assert_eq!(layout("", "").as_deref(), Some("none"));
}

#[test]
fn other_architectures_name_their_cpus_in_other_ways() {
    for (cpuinfo, model) in [
        ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t: 1MHz\n", "POWER9, altivec supported"),
        ("Model Name\t\t: Loongson-3A5000\n", "Loongson-3A5000"),
        (
            "vendor_id       : IBM/S390\nprocessor 0: version = FF,  identification = 0133E8,  machine = 3931\n\
             processor 1: version = FF,  identification = 0133E8,  machine = 3931\n",
            "machine 3931",
        ),
        (
            "model name\t: ARMv7 Processor rev 3 (v7l)\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n",
            "implementer 0x41 part 0xd08",
        ),
    ] {
        let tree = tree(&[("proc/cpuinfo", cpuinfo)]);
        assert_eq!(facts(&Root::at(tree.path())).cpu_model.as_deref(), Some(model), "{cpuinfo}");
    }
}
