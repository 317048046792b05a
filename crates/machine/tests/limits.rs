//! The preflight against every limit, on synthetic trees.
#![cfg(test)]

mod common;

use common::{plant, tree};
use machine::{Need, Root, room_for};
use tempfile::TempDir;

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max processes             1000                 2000                 processes
Max open files            1024                 4096                 files
";

/// A machine of an ordinary user, with 500 tasks of which 120 are the user's.
fn machine() -> TempDir {
    tree(&[
        ("proc/self/limits", LIMITS),
        ("proc/self/uid_map", "         0          0 4294967295\n"),
        (
            "proc/self/status",
            "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nThreads:\t1\nCapEff:\t0000000000000000\n",
        ),
        ("proc/self/fd/0", ""),
        ("proc/self/fd/1", ""),
        ("proc/10/status", "Uid:\t1000\t1000\t1000\t1000\nThreads:\t20\n"),
        ("proc/11/status", "Uid:\t0\t0\t0\t0\nThreads:\t380\n"),
        ("proc/12/status", "Uid:\t1000\t1000\t1000\t1000\nThreads:\t100\n"),
        ("proc/loadavg", "0.00 0.00 0.00 1/500 999\n"),
        ("proc/sys/kernel/pid_max", "32768\n"),
        ("proc/sys/kernel/threads-max", "30000\n"),
        ("proc/sys/vm/max_map_count", "65530\n"),
    ])
}

fn shortages(tree: &TempDir, need: Need) -> Vec<(String, u64, u64)> {
    match room_for(&Root::at(tree.path()), &need) {
        Ok(()) => Vec::new(),
        Err(error) => error.shortages.into_iter().map(|s| (s.limit, s.value, s.wanted)).collect(),
    }
}

fn threads(threads: u64) -> Need {
    Need { threads, ..Need::default() }
}

#[test]
fn m15_what_fits_is_let_through() {
    let tree = machine();
    assert_eq!(shortages(&tree, Need { threads: 400, processes: 400, files: 900 }), []);
    assert_eq!(shortages(&tree, Need { files: 4000, ..Need::default() }), [], "the soft limit can be raised");
    assert_eq!(room_for(&Root::at("/nowhere-at-all"), &threads(1_000_000)), Ok(()), "nothing is known there");
}

#[test]
fn m15_the_limit_on_the_tasks_of_a_user() {
    let tree = machine();
    assert_eq!(shortages(&tree, threads(880)), []);
    assert_eq!(shortages(&tree, threads(881)), [("RLIMIT_NPROC".to_string(), 1000, 1001)]);
    plant(tree.path(), "proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n");
    assert_eq!(shortages(&tree, threads(881)), [], "root is exempt");
    plant(tree.path(), "proc/self/uid_map", "0 100000 65536\n");
    assert_ne!(shortages(&tree, threads(881)), [], "root of a container is not");
    plant(tree.path(), "proc/self/uid_map", "0 0 4294967295\n");
    plant(tree.path(), "proc/self/status", "Uid:\t1000\t0\t0\t0\nCapEff:\t0000000001000000\n");
    assert_eq!(shortages(&tree, threads(881)), [], "nor is who has CAP_SYS_RESOURCE bound");
}

#[test]
fn m15_every_limit_of_the_kernel_is_named_with_its_remedy() {
    let tree = machine();
    plant(tree.path(), "proc/self/limits", &LIMITS.replace(" 1000 ", " unlimited "));
    let error = room_for(&Root::at(tree.path()), &threads(40_000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel.pid_max is 32768 and 40800 are needed (raise it: sysctl -w kernel.pid_max=40800); \
         kernel.threads-max is 30000 and 40500 are needed (raise it: sysctl -w kernel.threads-max=40500); \
         vm.max_map_count is 65530 and 160200 are needed (raise it: sysctl -w vm.max_map_count=160200)"
    );
    let processes = Need { processes: 20_000, ..Need::default() };
    assert_eq!(shortages(&tree, processes), [], "areas of memory are counted by process");
}

#[test]
fn m15_open_files_beyond_the_hard_limit() {
    let tree = machine();
    let error = room_for(&Root::at(tree.path()), &Need { files: 5000, ..Need::default() }).unwrap_err();
    assert_eq!((error.shortages[0].value, error.shortages[0].wanted), (1024, 5018));
    assert!(error.to_string().contains("ulimit -n 5018"), "{error}");
}

#[test]
fn m15_the_pids_controller_of_any_group_above() {
    let tree = machine();
    plant(tree.path(), "proc/self/cgroup", "0::/a/b\n");
    plant(tree.path(), "proc/self/mountinfo", "25 24 0:22 / /cg rw - cgroup2 cgroup2 rw\n");
    plant(tree.path(), "cg/a/b/pids.max", "max\n");
    plant(tree.path(), "cg/a/pids.max", "100\n");
    plant(tree.path(), "cg/a/pids.current", "60\n");
    assert_eq!(shortages(&tree, threads(40)), []);
    let error = room_for(&Root::at(tree.path()), &threads(41)).unwrap_err().to_string();
    assert!(error.contains("/cg/a/pids.max is 100 and 101 are needed (raise it: echo 101 > "), "{error}");
}

#[test]
fn m15_the_soft_limit_on_files_is_raised_on_this_machine() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let lower = limit.current.unwrap_or(4096).min(64);
    setrlimit(Resource::Nofile, Rlimit { current: Some(lower), maximum: limit.maximum }).unwrap();
    let result = room_for(&Root::real(), &Need { files: lower, ..Need::default() });
    let raised = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|hard| hard < lower + 64) {
        return println!("skipped: the hard limit of this machine leaves no room");
    }
    assert_eq!(result, Ok(()));
    assert!(raised.current.unwrap() > lower, "{raised:?}");
    assert_eq!(raised.maximum, limit.maximum);
}
