//! System V objects of trials: their limits count with a variant's knobs turned, and none of them is ever left.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Kduel, alone_with_the_sysctl, reasons, stderr, strays};

/// Starts a run whose users make and remove such objects all the time, for hours; none where there are no such objects.
fn start(kduel: &Kduel, more: &[&str]) -> Option<Child> {
    if !std::path::Path::new("/proc/sysvipc/sem").exists() {
        println!("skipped: this kernel has no System V objects");
        return None;
    }
    let mut args = vec!["run", "jobmix", "--points", "40", "--set", "jobs=1000000", "-V", "a", "--no-aa"];
    args.extend(["--blocks", "1"]);
    args.extend(more);
    Some(kduel.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kduel starts"))
}

/// The processes whose keys the objects have that there are now.
fn makers() -> BTreeSet<u32> {
    let of = |table: &str| {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        let keys = table.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        keys.filter(|key| key >> 24 == 0x6b).map(|key| key & 0xff_ffff).collect::<Vec<_>>()
    };
    of("/proc/sysvipc/shm").into_iter().chain(of("/proc/sysvipc/sem")).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes of the run once many of them have made something; none if it ended before.
fn in_its_middle(kduel: &Kduel, run: &mut Child) -> Option<BTreeSet<u32>> {
    let (mut users, mut at_work) = (BTreeSet::new(), false);
    wait_until("users are at work", || {
        users = strays(kduel.home()).into_iter().collect();
        at_work = users.intersection(&makers()).count() >= 10;
        at_work || run.try_wait().unwrap().is_some()
    });
    at_work.then_some(users)
}

fn left(users: &BTreeSet<u32>) -> usize {
    users.intersection(&makers()).count()
}

#[test]
fn p2_after_kill_9_of_everything_the_next_command_removes_them() {
    let kduel = Kduel::new();
    let Some(mut run) = start(&kduel, &[]) else { return };
    let users = in_its_middle(&kduel, &mut run).unwrap();
    for pid in &users {
        // It may have died with its parent.
        let _ = kill_process(Pid::from_raw(*pid as i32).unwrap(), Signal::KILL);
    }
    run.wait().unwrap();
    wait_until("all are gone", || strays(kduel.home()).is_empty());
    let told = stderr(&kduel.output(&["list", "workloads"]));
    // Any kduel that ran meanwhile, such as that of another test, may have been first, with some of it or all.
    assert!(told.lines().all(|line| line.starts_with("kduel: removed ")), "{told}");
    assert_eq!(left(&users), 0);
}

#[test]
fn p2_the_agents_kill_at_the_deadline_leaves_none() {
    // A machine that is busy with other work may not get to its middle by an early deadline.
    for deadline_s in ["3", "15", "60"] {
        let kduel = Kduel::new();
        let Some(mut run) = start(&kduel, &["--deadline", deadline_s]) else { return };
        let users = in_its_middle(&kduel, &mut run);
        run.wait().unwrap();
        assert_eq!(reasons(&kduel.trials())[0].0, "hang");
        if let Some(users) = users {
            return assert_eq!(left(&users), 0);
        }
    }
    panic!("no run came to its middle");
}

#[test]
fn p1_an_interrupt_leaves_none() {
    let kduel = Kduel::new();
    let Some(mut run) = start(&kduel, &[]) else { return };
    let users = in_its_middle(&kduel, &mut run).unwrap();
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(left(&users), 0);
}

/// Runs `script` as root of an IPC namespace of its own, whose limits are nobody else's, with `kduel` as `$KDUEL`.
fn in_a_namespace(kduel: &Kduel, script: &str) -> Option<Output> {
    let command = kduel.command(&[]);
    // The undo journal knows a sysctl by its path, in whatever namespace it is turned.
    let _alone = alone_with_the_sysctl();
    let mut unshare = Command::new("unshare");
    unshare.args(["--ipc", "sh", "-c", script]).env("KDUEL", command.get_program());
    let output = unshare.env("KDUEL_HOME", kduel.home()).stdin(Stdio::null()).output().ok();
    let output = output.filter(|output| !stderr(output).contains("unshare failed"));
    if output.is_none() {
        println!("skipped: an IPC namespace needs root and unshare of util-linux");
    }
    output
}

#[test]
fn limits_are_told_before_the_first_trial_and_a_knob_that_raises_them_counts_and_goes_back() {
    let kduel = Kduel::new();
    let run = "$KDUEL run jobmix --points 5 --set jobs=2 --no-aa --blocks 1 -V";
    let script = format!(
        "echo 3 > /proc/sys/kernel/shmmni; echo '32000 1024000000 500 3' > /proc/sys/kernel/sem
         {run} a && exit 1
         {run} 'a:sysctl.kernel.shmmni=10,sysctl.kernel.sem=32000 1024000000 500 10' || exit 1
         echo; cat /proc/sys/kernel/shmmni /proc/sys/kernel/sem; ipcs -s -m"
    );
    let Some(output) = in_a_namespace(&kduel, &script) else { return };
    let (told, printed) = (stderr(&output), String::from_utf8(output.stdout).unwrap());
    assert!(output.status.success(), "{told}");
    // Long items are wrapped.
    let told = told.split_whitespace().collect::<Vec<&str>>().join(" ");
    for text in [
        "- jobmix: the number of semaphore sets, 4th in kernel.sem, is 3 and 5 are needed",
        "`sysctl.kernel.sem=32000 1024000000 500 5` as a knob",
        "kernel.shmmni is 3 and 5 are needed",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert!(printed.contains("\n3\n32000\t1024000000\t500\t3\n"), "{printed}");
    assert!(!printed.contains("0x6b"), "{printed}");
    assert_eq!(reasons(&kduel.trials()), []);
}

#[test]
fn the_four_numbers_of_kernel_sem_are_a_knob_in_an_experiment_file_too() {
    let kduel = Kduel::new();
    let file = kduel.file(
        "limits.toml",
        "blocks = 1\naa = false\n[[workload]]\nname = \"jobmix\"\npoints = [5]\njobs = 2\n[[variant]]\nname = \"a\"\n\
         sysctl.kernel.sem = \"250 32000 100 128\"\n",
    );
    let script = format!("$KDUEL run --experiment {} && cat /proc/sys/kernel/sem", file.display());
    let Some(output) = in_a_namespace(&kduel, &script) else { return };
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(printed.contains("sysctl.kernel.sem=250 32000 100 128"), "{printed}");
    assert!(!printed.ends_with("250\t32000\t100\t128\n"), "{printed}");
}
