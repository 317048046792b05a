//! System V objects: the preflight on synthetic trees, and the removal of what dead processes left on this machine.
#![cfg(test)]

mod common;

use common::{plant, tree};
use machine::{Root, Scratch, SystemVNeed, remove_leftovers, room_for_system_v, system_v_key};
use std::process::Command;
use tempfile::TempDir;

const HEADING: &str = "       key      semid perms\n";

fn machine() -> TempDir {
    tree(&[
        ("proc/sys/kernel/sem", "32000\t1024000000\t500\t32000\n"),
        ("proc/sys/kernel/shmmni", "4096\n"),
        ("proc/sys/kernel/shmmax", "18446744073692774399\n"),
        ("proc/sys/kernel/shmall", "18446744073692774399\n"),
        ("proc/sysvipc/sem", HEADING),
        ("proc/sysvipc/shm", HEADING),
    ])
}

fn need(objects: u64) -> SystemVNeed {
    SystemVNeed { sets: objects, segments: objects, segment_bytes: 65_536 }
}

fn shortages(tree: &TempDir, objects: u64) -> String {
    room_for_system_v(&Root::at(tree.path()), &need(objects))
        .map_or_else(|e| e.to_string(), |()| String::new())
}

#[test]
fn what_fits_is_let_through_and_what_does_not_is_told_with_its_knob() {
    let tree = machine();
    assert_eq!(shortages(&tree, 4096), "");
    let told = shortages(&tree, 7000);
    assert!(told.starts_with("kernel.shmmni is 4096 and 7000 are needed"), "{told}");
    assert!(told.contains("`sysctl.kernel.shmmni=7000` as a knob"), "{told}");
    assert!(!told.contains("kernel.sem"), "{told}");
}

#[test]
fn objects_that_are_there_count_and_all_four_numbers_of_sem_are_given_back() {
    let tree = machine();
    plant(tree.path(), "proc/sys/kernel/sem", "250\t100\t500\t128\n");
    plant(
        tree.path(),
        "proc/sysvipc/sem",
        &format!("{HEADING}1 0 600 1 0 0 0 0 0 0\n2 1 600 1 0 0 0 0 0 0\n"),
    );
    let told = shortages(&tree, 127);
    assert!(told.contains("4th in kernel.sem, is 128 and 129 are needed"), "{told}");
    assert!(told.contains("2nd in kernel.sem, is 100 and 129 are needed"), "{told}");
    assert!(told.contains("`sysctl.kernel.sem=250 129 500 129` as a knob"), "{told}");
}

#[test]
fn the_memory_of_all_segments_and_more_ids_than_a_kernel_has_are_told() {
    let tree = machine();
    plant(tree.path(), "proc/sys/kernel/shmmax", "4096\n");
    plant(tree.path(), "proc/sys/kernel/shmall", "100\n");
    let told = shortages(&tree, 40_000);
    for text in ["kernel.shmmax is 4096 and 65536", "kernel.shmall is 100 and", "ipcmni_extend"] {
        assert!(told.contains(text), "{text}: {told}");
    }
}

#[test]
fn a_kernel_without_them_has_room_for_none() {
    let told = shortages(&tree(&[("proc/loadavg", "")]), 1);
    assert!(told.contains("CONFIG_SYSVIPC"), "{told}");
}

fn make(key: i32) -> (i32, i32) {
    // SAFETY: Neither call touches memory of ours.
    unsafe {
        (libc::shmget(key, 4096, libc::IPC_CREAT | 0o600), libc::semget(key, 1, libc::IPC_CREAT | 0o600))
    }
}

fn there((segment, set): (i32, i32)) -> (bool, bool) {
    let lists = |table: &str, id: i32| {
        let text = std::fs::read_to_string(table).unwrap();
        text.lines().skip(1).any(|line| line.split_whitespace().nth(1) == Some(&id.to_string()))
    };
    (lists("/proc/sysvipc/shm", segment), lists("/proc/sysvipc/sem", set))
}

const CHILD: &str = "KDUEL_TEST_MAKER";

#[test]
fn what_a_dead_process_left_is_removed_and_what_is_somebody_elses_stays() {
    if std::env::var_os(CHILD).is_some() {
        let (segment, set) = make(system_v_key(std::process::id()));
        println!("made {segment} {set}");
        return;
    }
    let ours = make(system_v_key(std::process::id()));
    if ours.0 < 0 || ours.1 < 0 {
        println!("skipped: there are no System V objects here");
        return;
    }
    // Of no process, but not made by a workload either.
    let foreign = make(0x1234_5678);
    let name = "what_a_dead_process_left_is_removed_and_what_is_somebody_elses_stays";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([name, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let ids = said.split("made ").nth(1).unwrap_or_else(|| panic!("{said}"));
    let mut ids = ids.split_whitespace().map(|word| word.parse::<i32>().unwrap());
    let left = (ids.next().unwrap(), ids.next().unwrap());
    // Another test or kduel may have removed them by now; that is as good.
    remove_leftovers();
    assert_eq!(there(left), (false, false));
    assert_eq!((there(ours), there(foreign)), ((true, true), (true, true)));
    for (segment, set) in [ours, foreign] {
        // SAFETY: Neither call touches memory of ours.
        unsafe {
            libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
            libc::semctl(set, 0, libc::IPC_RMID);
        }
    }
}

#[test]
fn the_directory_of_a_dead_process_is_removed_by_the_next_there_and_a_living_ones_stays() {
    const IN: &str = "KDUEL_TEST_SCRATCH";
    if let Some(parent) = std::env::var_os(IN) {
        let scratch = Scratch::new(parent.as_ref()).unwrap();
        std::fs::write(scratch.path().join("file"), "text").unwrap();
        std::mem::forget(scratch);
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let names = || std::fs::read_dir(parent.path()).unwrap().count();
    let name = "the_directory_of_a_dead_process_is_removed_by_the_next_there_and_a_living_ones_stays";
    let mut child = Command::new(std::env::current_exe().unwrap());
    assert!(child.args([name, "--exact"]).env(IN, parent.path()).status().unwrap().success());
    assert_eq!(names(), 1);
    // One of another machine, which has the place as well, stays: nobody here knows whether its maker lives.
    let left = std::fs::read_dir(parent.path()).unwrap().next().unwrap().unwrap().path();
    let mut parts: Vec<&str> = left.file_name().unwrap().to_str().unwrap().split('.').collect();
    parts[1] = "elsewhere";
    let elsewhere = parent.path().join(parts.join("."));
    std::fs::rename(&left, &elsewhere).unwrap();
    drop(Scratch::new(parent.path()).unwrap());
    assert_eq!(names(), 1);
    std::fs::rename(&elsewhere, &left).unwrap();
    let first = Scratch::new(parent.path()).unwrap();
    assert_eq!(names(), 1);
    let second = Scratch::new(parent.path()).unwrap();
    assert!(first.path().is_dir() && second.path().is_dir() && first.path() != second.path());
    drop((first, second));
    assert_eq!(names(), 0);
}
