//! What becomes of trials that do not end well, and what every trial records.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use std::io::Write as _;
use std::path::PathBuf;
use support::{Kduel, STAT_INTERVAL, alone_with_the_sysctl, is_root, reasons, strays};

/// Runs one variant of `exec` and gives the kinds and reasons of its missing trials.
fn exec(command: &str, more: &[&str]) -> Vec<(String, String)> {
    let kduel = Kduel::new();
    let set = format!("command={command}");
    let output = kduel.output(
        &[&["run", "exec", "--set", &set, "--set", "settle=0", "--blocks", "1", "--no-aa"][..], more]
            .concat(),
    );
    assert_eq!(strays(kduel.home()), Vec::<u32>::new());
    let missing = reasons(&kduel.trials());
    let status = if missing.is_empty() { 0 } else { 2 };
    assert_eq!(output.status.code(), Some(status), "{}", support::stderr(&output));
    missing
}

#[test]
fn p4_a_failing_command_is_missing_with_its_exact_status() {
    let missing = exec("sh -c 'exit 7'", &[]);
    assert_eq!(missing.len(), 1);
    assert!(missing[0].1.contains('7'), "{missing:?}");
    let missing = exec("sh -c 'kill -SEGV $$'", &[]);
    assert!(missing[0].1.contains("11") || missing[0].1.contains("SEGV"), "{missing:?}");
    assert_eq!(exec("true", &[]), []);
}

#[test]
fn p11_a_run_that_measured_nothing_says_so_and_fails() {
    let kduel = Kduel::new();
    let run = ["run", "exec", "--set", "command=false", "--set", "settle=0", "--blocks", "2"];
    let output = kduel.output(&run);
    assert_eq!(output.status.code(), Some(2));
    let said = support::stderr(&output);
    assert!(said.contains("nothing was measured: 4 trials ended and none yielded anything"), "{said}");
    assert!(!said.contains("Next:"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("left with status 1"), "the report says why");
    // The run itself is whole, and can be looked at like any other.
    for args in [&["report"][..], &["report", "--fail-on", "regression"], &["resume"], &["show", "latest"]] {
        kduel.ok(args);
    }
}

#[test]
fn what_cannot_be_done_is_told_before_the_first_trial() {
    let kduel = Kduel::new();
    let error =
        kduel.fails(&["run", "exec", "-V", "a:command=true", "-V", "b:command=no-such-program-anywhere"]);
    assert!(error.contains("b: exec: ") && error.contains("no-such-program-anywhere"), "{error}");
    assert!(kduel.fails(&["run", "exec"]).contains("--set command="));
    let mut without_originals = kduel.command(&["run", "hackbench", "-V", "original:via=rt-tests"]);
    let output = without_originals.env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(support::stderr(&output).contains("apt-get install rt-tests"), "{}", support::stderr(&output));
    assert_eq!(kduel.ok(&["list", "runs"]), "", "nothing is left of it");
}

#[test]
fn a_trial_that_hangs_is_ended_with_everything_that_it_started() {
    let began = std::time::Instant::now();
    let missing = exec("sh -c 'setsid sleep 1000 & sleep 1000'", &["--deadline", "0.5"]);
    assert_eq!(missing[0].0, "hang", "{missing:?}");
    assert!(missing[0].1.contains("deadline"), "{missing:?}");
    assert!(began.elapsed().as_secs() < 60, "it was not waited for");
}

#[test]
fn what_a_trial_leaves_running_is_ended_with_it() {
    // `exec` checks inside for strays once kduel has returned.
    assert_eq!(exec("sh -c 'setsid sleep 1000 > /dev/null 2>&1 < /dev/null & true'", &[]), []);
}

/// The control group of version 2 that this process is in.
fn own_group() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(mount).join(group))
}

#[test]
fn who_leaves_the_cgroup_and_the_process_group_of_a_trial_is_ended_with_it() {
    let procs = own_group().map(|group| group.join("cgroup.procs")).unwrap_or_default();
    if std::fs::OpenOptions::new().write(true).open(&procs).is_err() {
        println!("skipped: to leave a cgroup needs the right to write to the one above it");
        return;
    }
    // `exec` checks inside for strays.
    let flee = format!("sh -c 'echo 0 > {}; setsid sleep 1000 & sleep 1000'", procs.display());
    assert_eq!(exec(&flee, &["--deadline", "0.5"])[0].0, "hang");
}

/// A control group whose processes may use no more than 128 MiB, where one can be made.
struct SmallGroup(PathBuf);

impl SmallGroup {
    fn new() -> Option<SmallGroup> {
        let name = format!("kduel-test-{}", std::process::id());
        let kinds = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        kinds.into_iter().find_map(|(parent, limit)| {
            let path = PathBuf::from(parent).join(&name);
            std::fs::create_dir(&path).ok()?;
            let group = SmallGroup(path);
            std::fs::OpenOptions::new()
                .write(true)
                .open(group.0.join(limit))
                .ok()?
                .write_all(b"128M")
                .ok()?;
            Some(group)
        })
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn who_runs_out_of_memory_is_missing_for_that_reason() {
    let Some(group) = SmallGroup::new() else {
        println!("skipped: only root can limit memory by a cgroup");
        return;
    };
    let kduel = Kduel::new();
    // `tail` keeps the last line, and /dev/zero has no other.
    let command = kduel.command(&[
        "run",
        "exec",
        "--set",
        "command=tail /dev/zero",
        "--set",
        "settle=0",
        "--blocks",
        "1",
        "--no-aa",
    ]);
    let limited = std::process::Command::new("sh")
        .arg("-c")
        .arg("echo 0 > $GROUP/cgroup.procs && exec \"$0\" \"$@\"")
        .arg(command.get_program())
        .args(command.get_args())
        .env("KDUEL_HOME", kduel.home())
        .env("GROUP", &group.0)
        .output()
        .unwrap();
    assert_eq!(limited.status.code(), Some(2), "{}", support::stderr(&limited));
    let missing = reasons(&kduel.trials());
    assert_eq!(missing[0].0, "out-of-memory", "{missing:?}");
    assert!(missing[0].1.contains("tail") && missing[0].1.contains("out-of-memory killer"), "{missing:?}");
}

#[test]
fn how_a_trial_ends_is_seen_even_where_the_ends_of_children_are_ignored() {
    let kduel = Kduel::new();
    let command = kduel.command(&[
        "run",
        "exec",
        "--set",
        "command=true",
        "--set",
        "settle=0",
        "--blocks",
        "1",
        "--no-aa",
    ]);
    let ignoring = std::process::Command::new("env")
        .arg("--ignore-signal=CHLD")
        .arg(command.get_program())
        .args(command.get_args())
        .env("KDUEL_HOME", kduel.home())
        .output()
        .unwrap();
    if ignoring.status.code() == Some(125) {
        println!("skipped: this env cannot have a program ignore a signal");
        return;
    }
    assert!(ignoring.status.success(), "{}", support::stderr(&ignoring));
    assert_eq!(reasons(&kduel.trials()), []);
}

#[test]
fn p11_a_missing_trial_is_missing_and_never_zero() {
    let kduel = Kduel::new();
    kduel.ok(&[
        "run",
        "exec",
        "--set",
        "settle=0",
        "-V",
        "good:command=true",
        "-V",
        "bad:command=false",
        "--blocks",
        "6",
    ]);
    let cells = kduel.json()["cells"].as_array().unwrap().clone();
    let bad = cells.iter().find(|cell| cell["variant"] == "bad" && cell["metric"] == "time").unwrap();
    assert_eq!(bad["verdict"], "missing");
    assert!(bad["value"].is_null());
    assert!(bad["reason"].as_str().unwrap().contains('1'), "{bad}");
    let report = kduel.ok(&["report"]);
    assert!(report.contains("n/a"), "{report}");
}

#[test]
fn m15_a_point_beyond_every_limit_is_missing_with_its_reason_and_the_rest_goes_on() {
    let kduel = Kduel::new();
    let set = ["--set", "total=6000", "--set", "settle=0", "--blocks", "1", "--no-aa", "--deadline", "60"];
    // A limit that even root meets: no address space for so many stacks.
    let mut command = kduel.command(&["run", "global-lock", "--points", "1,3000"]);
    command.args(set);
    let limited = std::process::Command::new("sh")
        .arg("-c")
        .arg("ulimit -v 500000; exec \"$0\" \"$@\"")
        .arg(command.get_program())
        .args(command.get_args())
        .env("KDUEL_HOME", kduel.home())
        .output()
        .unwrap();
    assert!(limited.status.success(), "{}", support::stderr(&limited));
    let trials = kduel.trials();
    assert_eq!(trials.len(), 2);
    let missing = reasons(&trials);
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].1.contains("of 3000"), "{missing:?}");
}

#[test]
fn p10_the_use_of_children_that_nobody_waited_for_is_counted() {
    let kduel = Kduel::new();
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let set = format!("command=sh -c '({spin}) & sleep 3'");
    kduel.ok(&["run", "exec", "--set", &set, "--blocks", "1", "--no-aa"]);
    let usage = kduel.trials()[0]["usage"].clone();
    let user_ns = usage["user_ns"].as_u64().unwrap_or_default();
    assert!(user_ns > 50_000_000, "{usage}");
    for field in ["system_ns", "max_rss_bytes", "voluntary_switches", "involuntary_switches"] {
        assert!(usage[field].is_u64(), "{field}: {usage}");
    }
}

#[test]
fn environment_nice_and_cpus_reach_the_trial() {
    let kduel = Kduel::new();
    kduel.ok(&[
        "run",
        "exec",
        "--set",
        "command=sh -c 'test \"$WORD\" = hello && test $(nice) = 5 && test $(nproc) = 1 && \
         echo \"$GLIBC_TUNABLES\" | grep -q glibc.pthread.rseq=0'",
        "-V",
        "a:env.WORD=hello,nice=5,cpus=0,rseq=off",
        "--blocks",
        "1",
        "--no-aa",
    ]);
    assert_eq!(reasons(&kduel.trials()), []);
}

#[test]
fn a_sysctl_is_turned_for_its_variant_only_and_put_back() {
    if !is_root() {
        println!("skipped: turning a sysctl needs root");
        return;
    }
    let _alone = alone_with_the_sysctl();
    let before = std::fs::read_to_string(STAT_INTERVAL).unwrap();
    let kduel = Kduel::new();
    kduel.ok(&[
        "run",
        "exec",
        "--set",
        "command=cat /proc/sys/vm/stat_interval",
        "--set",
        r"regex=(\d+)",
        "-V",
        "as-is",
        "-V",
        "turned:sysctl.vm.stat_interval=17",
        "--blocks",
        "3",
        "--set",
        "settle=0",
    ]);
    assert_eq!(std::fs::read_to_string(STAT_INTERVAL).unwrap(), before);
    for trial in kduel.trials() {
        let expected = if trial["variant"] == "turned" { "17" } else { before.trim() };
        let seen = trial["outcome"]["samples"]["value"][0].as_f64().unwrap();
        assert_eq!(seen, expected.parse::<f64>().unwrap(), "{trial}");
    }
}
