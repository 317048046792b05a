//! Control groups in every layout, on synthetic trees, and on the machine that runs the tests.
#![cfg(test)]

mod common;

use common::{plant, tree};
use experiment::Usage;
use machine::{Cgroups, Layout, Root, Snapshot, TrialCgroup};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const V1_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/pids rw shared:6 - cgroup cgroup rw,pids
";
const V2_MOUNT: &str = "25 24 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn m10_version_1() {
    let tree = tree(&[
        ("proc/self/mountinfo", V1_MOUNTS),
        ("proc/self/cgroup", "4:cpu,cpuacct:/user.slice/x\n3:pids:/user.slice\n1:name=systemd:/gone\n"),
        ("sys/fs/cgroup/cpu,cpuacct/user.slice/x/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu,cpuacct/user.slice/x/cpu.cfs_period_us", "100000\n"),
        (
            "sys/fs/cgroup/cpu,cpuacct/user.slice/x/cpu.stat",
            "nr_periods 9\nnr_throttled 2\nthrottled_time 700\n",
        ),
        ("sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.cfs_quota_us", "250000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.cfs_period_us", "100000\n"),
        (
            "sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.stat",
            "nr_periods 9\nnr_throttled 1\nthrottled_time 50\n",
        ),
        ("sys/fs/cgroup/pids/user.slice/pids.max", "100\n"),
        ("sys/fs/cgroup/pids/user.slice/pids.current", "40\n"),
    ]);
    let groups = Cgroups::of_self(&Root::at(tree.path())).unwrap();
    assert_eq!(groups.layout(), Layout::V1);
    assert_eq!(groups.unified(), None);
    let quota = groups.cpu_quota().unwrap();
    assert_eq!(quota.cpus, 2.5, "the parent's limit binds");
    assert!(quota.path.ends_with("user.slice/cpu.cfs_quota_us"));
    assert_eq!(groups.throttling().map(|t| (t.periods, t.stopped_ns)), Some((3, 750)));
    assert_eq!(groups.pids_limits().iter().map(|l| (l.max, l.current)).collect::<Vec<_>>(), [(100, 40)]);
}

#[test]
fn m10_version_2() {
    let tree = tree(&[
        ("proc/self/mountinfo", V2_MOUNT),
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n"),
        ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_throttled 7\nthrottled_usec 3\n"),
        ("sys/fs/cgroup/cpu.stat", "usage_usec 5\n"),
        ("sys/fs/cgroup/a/b/pids.max", "max\n"),
        ("sys/fs/cgroup/a/pids.max", "20\n"),
        ("sys/fs/cgroup/a/pids.current", "19\n"),
    ]);
    let groups = Cgroups::of_self(&Root::at(tree.path())).unwrap();
    assert_eq!(groups.layout(), Layout::V2);
    assert_eq!(groups.unified(), Some(tree.path().join("sys/fs/cgroup/a/b").as_path()));
    assert_eq!(groups.cpu_quota().map(|quota| quota.cpus), Some(0.5));
    assert_eq!(groups.throttling().map(|t| (t.periods, t.stopped_ns)), Some((7, 3000)));
    assert_eq!(groups.pids_limits().len(), 1);
}

#[test]
fn m10_hybrid() {
    let unified = "38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    let tree = tree(&[
        ("proc/self/mountinfo", &format!("{V1_MOUNTS}{unified}")),
        ("proc/self/cgroup", "4:cpu,cpuacct:/x\n3:pids:/\n0::/y\n"),
        ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/pids/pids.current", "1\n"),
        // A file of version 2 must not be believed where version 1 has the controller.
        ("sys/fs/cgroup/unified/y/cpu.max", "10000 100000\n"),
    ]);
    let groups = Cgroups::of_self(&Root::at(tree.path())).unwrap();
    assert_eq!(groups.layout(), Layout::Hybrid);
    assert!(groups.unified().unwrap().ends_with("unified/y"));
    assert_eq!(groups.cpu_quota().map(|quota| quota.cpus), Some(1.5));
}

#[test]
fn m10_a_container_sees_its_part_of_a_hierarchy() {
    let mounts = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n\
                  33 31 0:30 /docker/other /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
    let tree = tree(&[
        ("proc/self/mountinfo", mounts),
        ("proc/self/cgroup", "4:cpu:/docker/abc\n3:pids:/docker/abc\n2:cpuset:/not/mounted\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/pids/pids.max", "1\n"),
        ("sys/fs/cgroup/pids/pids.current", "1\n"),
    ]);
    let groups = Cgroups::of_self(&Root::at(tree.path())).unwrap();
    assert_eq!(groups.cpu_quota().map(|quota| quota.cpus), Some(4.0));
    assert_eq!(groups.pids_limits(), [], "the group of somebody else says nothing about ours");
}

#[test]
fn m10_a_kernel_without_control_groups_has_none() {
    let tree =
        tree(&[("proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n"), ("proc/self/cgroup", "")]);
    let groups = Cgroups::of_self(&Root::at(tree.path())).unwrap();
    assert_eq!(groups.layout(), Layout::Absent);
    assert_eq!((groups.cpu_quota(), groups.throttling()), (None, None));
    assert!(TrialCgroup::create(&Root::at(tree.path())).unwrap_err().why.contains("version 2"));
}

#[test]
fn m7_a_stop_by_a_quota_above_us_is_seen() {
    let stat = |periods: u32, us: u32| format!("usage_usec 5\nnr_throttled {periods}\nthrottled_usec {us}\n");
    let tree = tree(&[
        ("proc/self/mountinfo", V2_MOUNT),
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/cpu.stat", &stat(4, 100)),
    ]);
    let root = Root::at(tree.path());
    let before = Snapshot::take(&root);
    assert_eq!(before.usage_since(&root).0.throttled_ns, Some(0));
    plant(tree.path(), "sys/fs/cgroup/a/cpu.stat", &stat(6, 350));
    let (usage, backwards) = before.usage_since(&root);
    assert_eq!(usage.throttled_ns, Some(250_000));
    assert_eq!(backwards, [""; 0]);
}

#[test]
fn m8_a_quota_takes_no_cpu_away() {
    let tree = tree(&[
        ("proc/self/mountinfo", V2_MOUNT),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cpu.max", "100000 100000\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0-63\n"),
        ("sys/devices/system/cpu/online", "0-7\n"),
    ]);
    let facts = machine::facts(&Root::at(tree.path()));
    assert_eq!(facts.cpu_quota, Some(1.0));
    assert_eq!(facts.cpus_allowed.as_deref(), Some("0-7"));
}

#[test]
fn m14_a_counter_that_runs_backwards_is_told_and_yields_no_figure() {
    let stat =
        |steal: u32| format!("cpu  10 0 20 300 5 0 1 {steal} 0 0\ncpu0 10 0 20 300 5 0 1 {steal} 0 0\n");
    let tree = tree(&[("proc/stat", &stat(50))]);
    let root = Root::at(tree.path());
    let before = Snapshot::take(&root);
    plant(tree.path(), "proc/stat", &stat(53));
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(before.usage_since(&root).0.steal_ns, Some(3 * tick_ns));
    plant(tree.path(), "proc/stat", &stat(49));
    let (usage, backwards) = before.usage_since(&root);
    assert_eq!(usage.steal_ns, None);
    assert_eq!(backwards.len(), 1);
    assert!(backwards[0].contains("stolen time"), "{}", backwards[0]);
    assert_eq!(usage.throttled_ns, None, "absent where there are no control groups");
}

#[test]
fn p10_a_trial_in_its_own_group_is_counted_and_killed_whole() {
    let group = match TrialCgroup::create(&Root::real()) {
        Ok(group) => group,
        Err(missing) => return println!("skipped: {missing}"),
    };
    // A grandchild that nobody waits for burns time after its parent has gone.
    let script = format!(
        "echo $$ > '{0}/cgroup.procs' || exit 9; mkdir '{0}/below'; \
         (while :; do :; done) & echo working; exec sleep 1000",
        group.path().display()
    );
    let mut child = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "working\n");
    let path: PathBuf = group.path().into();
    let busy = || group.cpu_stat().unwrap().user_ns > 0;
    while !busy() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    group.kill_all().unwrap();
    let mut usage = Usage { throttled_ns: Some(5), ..Usage::default() };
    group.account(&mut usage);
    assert!(usage.user_ns.unwrap() > 0);
    assert!(usage.throttled_ns.unwrap() >= 5);
    group.remove().unwrap();
    assert!(!path.exists());
    assert!(!child.wait().unwrap().success());
}
