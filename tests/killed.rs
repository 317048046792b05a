//! Interrupted, killed, out of disk: what was done stays, nothing is left behind, and `resume` finishes the rest.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support.rs"]
mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Kduel, STAT_INTERVAL, alone_with_the_sysctl, is_root, stderr, strays};

/// Starts a run of some twenty short trials; as root it turns a sysctl, too.
fn start(kduel: &Kduel) -> Child {
    let now = std::fs::read_to_string(STAT_INTERVAL).unwrap_or_default();
    let variant = match (is_root(), now.trim()) {
        (false, _) => "turned:nice=3",
        // What is turned to the value that it has cannot be missed when it is not put back.
        (true, "19") => "turned:sysctl.vm.stat_interval=18",
        (true, _) => "turned:sysctl.vm.stat_interval=19",
    };
    kduel
        .command(&[
            "run",
            "exec",
            "--set",
            "command=sleep 0.02",
            "--set",
            "settle=0",
            "-V",
            "as-is",
            "-V",
            variant,
            "--blocks",
            "7",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("kduel starts")
}

/// The processes under this home, by the part that they play: `run`, `agent`, `trial`, or a program.
fn parts(kduel: &Kduel) -> Vec<(u32, String)> {
    let part = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        match words.get(1).map(String::as_str) {
            Some(word @ ("run" | "resume" | "agent" | "trial")) => word.to_string(),
            _ => words.first().cloned().unwrap_or_default(),
        }
    };
    strays(kduel.home()).into_iter().map(|pid| (pid, part(pid))).collect()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a pid");
    // It may have gone by itself meanwhile.
    let _ = kill_process(pid, Signal::KILL);
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn keys(trials: &[serde_json::Value]) -> BTreeSet<String> {
    trials
        .iter()
        .map(|trial| format!("{}/{}/{}/{}", trial["block"], trial["point"], trial["variant"], trial["twin"]))
        .collect()
}

fn finished(kduel: &Kduel) {
    let trials = kduel.trials();
    let keys = keys(&trials);
    assert_eq!(keys.len(), trials.len(), "every trial stands once");
    assert_eq!(keys.len(), 7 * 3, "and all of them are there");
}

/// `kill -9` of one part after a delay.
fn one_kill(kduel: &Kduel, delay: Duration, victim: &str) {
    let before = std::fs::read_to_string(STAT_INTERVAL).unwrap_or_default();
    let mut run = start(kduel);
    std::thread::sleep(delay);
    // Between two trials there is none to kill, and when the run has ended there is nothing.
    wait_until("there is something to kill", || {
        let victims: Vec<u32> =
            parts(kduel).into_iter().filter(|(_, part)| part == victim).map(|(pid, _)| pid).collect();
        victims.iter().for_each(|pid| kill(*pid));
        !victims.is_empty() || run.try_wait().expect("it was ours").is_some()
    });
    if victim == "run" {
        run.wait().expect("it was ours");
        wait_until("the agent ends by itself when its coordinator is gone", || {
            strays(kduel.home()).is_empty()
        });
    } else {
        assert!(run.wait().expect("it was ours").success(), "a lost {victim} costs a trial, not the run");
    }
    // Any command puts back what a killed run has left.
    if kduel.home().join("latest").exists() {
        let resumed = kduel.output(&["resume"]);
        assert!(resumed.status.success(), "{}", stderr(&resumed));
        finished(kduel);
    }
    assert_eq!(strays(kduel.home()), Vec::<u32>::new(), "no process is left");
    let after = std::fs::read_to_string(STAT_INTERVAL).unwrap_or_default();
    assert_eq!(after, before, "every sysctl has its old value");
}

#[test]
fn p2_m12_kill_9_of_any_part_at_any_time_loses_nothing_and_leaves_nothing() {
    let _alone = alone_with_the_sysctl();
    // KDUEL_KILLS asks for more: the fifty are `KDUEL_KILLS=50 cargo test --test killed`.
    let kills: u64 = std::env::var("KDUEL_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(9);
    for round in 0..kills {
        let victim = ["run", "agent", "trial"][round as usize % 3];
        // Spread over the whole of a run, which takes about two seconds, start-up included.
        let delay = Duration::from_millis(5 + (round * 7919) % 1500);
        one_kill(&Kduel::new(), delay, victim);
    }
}

#[test]
fn p1_an_interrupt_keeps_what_is_done_and_exits_with_130() {
    let _alone = alone_with_the_sysctl();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && hangups_are_ignored() {
            println!("skipped: SIGHUP is ignored here");
            continue;
        }
        let kduel = Kduel::new();
        let run = start(&kduel);
        let pid = Pid::from_raw(run.id() as i32).unwrap();
        wait_until("a trial is done", || has_trials(&kduel));
        kill_process(pid, signal).unwrap();
        let status = run.wait_with_output().unwrap().status;
        assert_eq!(status.code(), Some(130));
        // What was killed may need a moment to be gone.
        wait_until("no process is left", || strays(kduel.home()).is_empty());
        let done = kduel.trials().len();
        assert!((1..21).contains(&done), "{done}");
        assert!(kduel.ok(&["show", "latest"]).contains("interrupted"));
        let report = kduel.ok(&["report"]);
        assert!(report.to_lowercase().contains("interrupted"), "{report}");
        kduel.ok(&["resume"]);
        finished(&kduel);
        assert!(kduel.ok(&["show", "latest"]).contains("finished"));
    }
}

/// Whether the journal of the latest run has a trial already.
fn has_trials(kduel: &Kduel) -> bool {
    let journal = std::fs::read_to_string(kduel.home().join("latest/journal.jsonl"));
    journal.is_ok_and(|text| text.contains("\"kind\":\"trial\""))
}

/// Whether these tests were started by nohup.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask of signals");
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") & 1 == 1
}

#[test]
fn under_nohup_a_run_outlives_its_terminal() {
    let _alone = alone_with_the_sysctl();
    let kduel = Kduel::new();
    let command = kduel.command(&[
        "run",
        "exec",
        "--set",
        "command=sleep 0.05",
        "--set",
        "settle=0",
        "-V",
        "a",
        "--no-aa",
        "--blocks",
        "6",
    ]);
    let mut run = Command::new("nohup")
        .arg(command.get_program())
        .args(command.get_args())
        .env("KDUEL_HOME", kduel.home())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nohup starts");
    wait_until("a trial is done", || has_trials(&kduel));
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::HUP).unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(kduel.trials().len(), 6);
}

#[test]
fn two_coordinators_cannot_write_one_run() {
    let _alone = alone_with_the_sysctl();
    let kduel = Kduel::new();
    let mut run = start(&kduel);
    wait_until("the run has begun", || kduel.home().join("latest/journal.jsonl").exists());
    // A run that is stopped cannot end before the second has tried.
    let pid = Pid::from_raw(run.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let second = kduel.output(&["resume"]);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    assert!(run.wait().unwrap().success());
}

#[test]
fn p8_a_full_disk_stops_the_run_and_the_journal_stays_readable() {
    let kduel = Kduel::new();
    let disk = kduel.home().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&disk)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("skipped: mounting a file system of 1 MB needs root");
        return;
    }
    let _unmount = Unmount(disk.clone());
    std::fs::write(disk.join("ballast"), vec![0; 900 << 10]).unwrap();
    let run = kduel
        .command(&[
            "run",
            "exec",
            "--set",
            "command=true",
            "--set",
            "settle=0",
            "--blocks",
            "1000",
            "-V",
            "a",
        ])
        .env("KDUEL_HOME", &disk)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2), "{}", stderr(&run));
    let complaint = stderr(&run);
    assert!(complaint.contains("full") || complaint.contains("space"), "{complaint}");
    let trials = || kduel.records_of(&disk.join("latest")).iter().filter(|r| r["kind"] == "trial").count();
    let before = trials();
    assert!(before > 10, "{before}");
    let report = kduel.command(&["report"]).env("KDUEL_HOME", &disk).output().unwrap();
    assert!(report.status.success(), "{}", stderr(&report));
    // With space again, the run goes on where it stopped.
    std::fs::remove_file(disk.join("ballast")).unwrap();
    let mut resume = kduel.command(&["resume"]);
    let resumed =
        resume.env("KDUEL_HOME", &disk).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the resumed run has done a trial", || trials() > before);
    kill_process(Pid::from_raw(resumed.id() as i32).unwrap(), Signal::INT).unwrap();
    assert_eq!(resumed.wait_with_output().unwrap().status.code(), Some(130));
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
