//! Sets of CPUs, and pinning on the machine that runs the tests.
#![cfg(test)]

use experiment::Knob;
use machine::{CpuSet, Root, Unusable, apply_to_self, cpus};
use std::fs;

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn lists_are_read_and_written_as_the_kernel_does() {
    for list in ["", "0", "0-3,8", "0-1", "16-31,80-95", "4095"] {
        assert_eq!(set(list).to_string(), list);
    }
    assert_eq!(set("3,1,2\n").to_string(), "1-3");
    for wrong in ["3-1", "x", "1,,2", "-1", "1-", "0-4294967295", "99999999999"] {
        assert!(wrong.parse::<CpuSet>().is_err(), "{wrong}");
    }
    let mut grown = set("4000");
    assert_ne!(grown, set("1"));
    grown = grown.without(&set("4000"));
    grown.insert(1);
    assert_eq!(grown, set("1"), "equal whatever their history");
}

#[test]
fn m1_masks_have_no_largest_machine() {
    let all = set("0-4095");
    assert_eq!(all.len(), 4096);
    assert!(all.contains(4095) && !all.contains(4096));
    assert_eq!(all.without(&set("1024-4094")).to_string(), "0-1023,4095");
}

#[test]
fn m3_a_missing_cpu_is_named_with_its_reason() {
    let tree = tempfile::tempdir().unwrap();
    let directory = tree.path().join("sys/devices/system/cpu");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("present"), "0-4095\n").unwrap();
    fs::write(directory.join("online"), "0-2047,2049-4095\n").unwrap();
    let root = Root::at(tree.path());
    let unusable = Unusable::explain(&root, &set("0,7,2048,5000-5001"), &set("0")).unwrap();
    assert_eq!(unusable, Unusable { absent: set("5000-5001"), offline: set("2048"), outside: set("7") });
    let text = unusable.to_string();
    for part in ["CPUs 5000-5001 do not exist", "CPU 2048 is offline", "CPU 7 is not in the cpuset"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn m3_without_sysfs_the_cpus_are_known_all_the_same() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("proc")).unwrap();
    fs::write(tree.path().join("proc/stat"), "cpu  1 2 3\ncpu0 1 2\ncpu2 1 2\nintr 5\n").unwrap();
    let root = Root::at(tree.path());
    assert_eq!(cpus::online(&root).unwrap(), set("0,2"));
    let text = Unusable::explain(&root, &set("0-2"), &set("0")).unwrap().to_string();
    assert_eq!(text, "CPU 1 does not exist on this machine; CPU 2 is not in the cpuset of this process");
}

#[test]
fn m3_pinning_to_a_cpu_that_is_not_there_says_so_and_changes_nothing() {
    std::thread::spawn(|| {
        let before = cpus::allowed().unwrap();
        let beyond = before.iter().last().unwrap() + 4000;
        let error = cpus::pin_thread(&CpuSet::one(beyond)).unwrap_err().to_string();
        assert!(error.contains(&format!("CPU {beyond} does not exist")), "{error}");
        let mut partly = before.clone();
        partly.insert(beyond);
        let error = cpus::pin_thread(&partly).unwrap_err().to_string();
        assert!(error.contains(&format!("CPU {beyond} does not exist")), "{error}");
        assert_eq!(cpus::allowed().unwrap(), before);
        assert!(cpus::pin_thread(&CpuSet::new()).is_err());
    })
    .join()
    .unwrap();
}

#[test]
fn m5_a_thread_runs_where_it_is_pinned_and_nowhere_else() {
    std::thread::spawn(|| {
        let allowed = cpus::allowed().unwrap();
        let online = cpus::online(&Root::real()).unwrap();
        assert!(!allowed.is_empty() && allowed.without(&online).is_empty());
        for cpu in allowed.iter() {
            cpus::pin_thread(&CpuSet::one(cpu)).unwrap();
            assert_eq!(cpus::allowed().unwrap(), CpuSet::one(cpu));
            assert_eq!(rustix::thread::sched_getcpu(), cpu as usize);
        }
        apply_to_self(&[Knob::parse("cpus", &allowed.to_string()).unwrap()]).unwrap();
        assert_eq!(cpus::allowed().unwrap(), allowed);
    })
    .join()
    .unwrap();
}

#[test]
fn policy_and_nice_are_applied_to_this_thread_and_verified() {
    std::thread::spawn(|| {
        let knobs = ["policy=batch", "nice=7", "lock=mcs"]
            .map(|text| text.split_once('=').unwrap())
            .map(|(key, value)| Knob::parse(key, value).unwrap());
        apply_to_self(&knobs).unwrap();
        assert_eq!(rustix::process::getpriority_process(None).unwrap(), 7);
        // SAFETY: takes no pointer.
        assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_BATCH);
    })
    .join()
    .unwrap();
}
