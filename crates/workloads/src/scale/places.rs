//! Where the tasks run.

use crate::Failure;
use machine::{CpuSet, Root};

/// The sets of CPUs that tasks take in turn: those of each core, each CPU by itself, or none for the choice of the
/// scheduler. Cores are in the order of their packages, and then of their CPUs.
///
/// # Errors
/// When what the kernel says about its cores is no list of CPUs.
pub fn places(affinity: &str, cpus: &[u32], root: &Root) -> Result<Vec<CpuSet>, Failure> {
    match affinity {
        "core" => cores(cpus, root),
        "cpu" => Ok(cpus.iter().map(|cpu| CpuSet::one(*cpu)).collect()),
        _ => Ok(Vec::new()),
    }
}

fn cores(cpus: &[u32], root: &Root) -> Result<Vec<CpuSet>, Failure> {
    let allowed: CpuSet = cpus.iter().copied().collect();
    let mut cores: Vec<(u64, CpuSet)> = Vec::new();
    for cpu in cpus {
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        // A kernel that says nothing about a CPU has it as a core of its own.
        let siblings = match root.text(format!("{topology}/thread_siblings_list")) {
            Ok(text) => {
                text.trim().parse().map_err(|error| Failure::Refused(format!("{topology}: {error}")))?
            }
            Err(_) => CpuSet::one(*cpu),
        };
        let core = siblings.and(&allowed);
        let package = root.number(format!("{topology}/physical_package_id")).unwrap_or(0);
        if core.iter().next() == Some(*cpu) {
            cores.push((package, core));
        }
    }
    // The sort is stable, and the CPUs of the trial ascend.
    cores.sort_by_key(|(package, _)| *package);
    Ok(cores.into_iter().map(|(_, core)| core).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tasks_go_round_cores_package_by_package() {
        let top = tempfile::tempdir().unwrap();
        // Two packages, which the numbers of the CPUs alternate between, with two cores each and two threads a core.
        for cpu in 0..8 {
            let topology = top.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("thread_siblings_list"), format!("{},{}\n", cpu % 4, cpu % 4 + 4))
                .unwrap();
            fs::write(topology.join("physical_package_id"), format!("{}\n", cpu % 2)).unwrap();
        }
        let root = Root::at(top.path());
        let places = |affinity, cpus: &[u32]| -> Vec<Vec<u32>> {
            let places = super::places(affinity, cpus, &root).unwrap();
            places.iter().map(CpuSet::to_vec).collect()
        };
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(places("core", &all), [[0, 4], [2, 6], [1, 5], [3, 7]]);
        // A trial may not use all CPUs of a core; CPU 9 is one of which the kernel says nothing.
        assert_eq!(places("core", &[1, 4, 5, 9]), [vec![4], vec![9], vec![1, 5]]);
        assert_eq!(places("cpu", &[2, 6]), [[2], [6]]);
        assert!(places("none", &all).is_empty());
    }

    #[test]
    fn m5_a_cpuset_with_holes_is_never_left() {
        let top = tempfile::tempdir().unwrap();
        // As many CPUs as a mask of whole words has, each with its sibling 64 further on.
        for cpu in 0..128 {
            let topology = top.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            let siblings = format!("{},{}\n", cpu % 64, cpu % 64 + 64);
            fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        let allowed: CpuSet = "16-31,80-95".parse().unwrap();
        let root = Root::at(top.path());
        for (affinity, sets, cpus_each) in [("core", 16, 2), ("cpu", 32, 1)] {
            let places = places(affinity, &allowed.to_vec(), &root).unwrap();
            assert_eq!(places.len(), sets, "{affinity}");
            for place in &places {
                assert_eq!(place.to_vec().len(), cpus_each, "{affinity}: {place}");
                assert!(place.without(&allowed).is_empty(), "{affinity}: {place}");
            }
            let used: CpuSet = places.iter().flat_map(CpuSet::to_vec).collect();
            assert_eq!(used, allowed, "{affinity}");
        }
    }
}
