//! Processes that outlived their trial, and the kernel log beside it, on the machine that runs the tests.
#![cfg(test)]

use machine::{KernelLog, Root, kill_ownerless, kill_strays, new_token};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};

fn sleeper(variable: &str, token: &str) -> Child {
    Command::new("sleep").arg("1000").env(variable, token).spawn().unwrap()
}

#[test]
fn p2_marked_processes_are_killed_and_others_are_not() {
    // A variable of this test alone, so that no process of another run can be meant.
    let variable = "KDUEL_TEST_MARK_A";
    let token = new_token(&Root::real()).unwrap();
    assert_ne!(token, new_token(&Root::real()).unwrap());
    let mut marked = [sleeper(variable, &token), sleeper(variable, &token)];
    let mut other = sleeper(variable, &format!("{token}0"));
    let killed = kill_strays(variable, &token);
    let mut pids: Vec<u32> = killed.iter().map(|stray| stray.pid).collect();
    pids.sort_unstable();
    let mut expected: Vec<u32> = marked.iter().map(Child::id).collect();
    expected.sort_unstable();
    assert_eq!(pids, expected);
    assert!(killed[0].to_string().contains("sleep 1000"), "{}", killed[0]);
    for child in &mut marked {
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    assert_eq!(other.try_wait().unwrap(), None);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(kill_strays(variable, &token), []);
}

#[test]
fn p2_what_a_dead_run_has_marked_is_killed_and_a_live_run_is_left_alone() {
    let variable = "KDUEL_TEST_MARK_B";
    let token = new_token(&Root::real()).unwrap();
    let (_, rest) = token.split_once('.').unwrap();
    let (_, rest) = rest.split_once('.').unwrap();
    // The same process id with another start: its owner has died and the number was used again.
    let dead = format!("{}.1.{rest}", std::process::id());
    let mut live = sleeper(variable, &token);
    let mut ownerless = sleeper(variable, &dead);
    let mut unknown = sleeper(variable, "something else");
    let killed = kill_ownerless(variable);
    assert_eq!(killed.iter().map(|stray| stray.pid).collect::<Vec<_>>(), [ownerless.id()]);
    assert_eq!(ownerless.wait().unwrap().signal(), Some(9));
    for child in [&mut live, &mut unknown] {
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn what_the_kernel_logs_after_the_mark_is_read() {
    let log = KernelLog::mark();
    if !log.is_readable() {
        return println!("skipped: /dev/kmsg cannot be read here; it needs root or kernel.dmesg_restrict=0");
    }
    let told = std::fs::read_to_string("/proc/sys/debug/exception-trace").unwrap_or_default();
    if told.trim() != "1" {
        return println!("skipped: this kernel does not log crashes (debug.exception-trace)");
    }
    // A crash of a program is something that the kernel logs and that harms nobody.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_crashes", "--ignored"])
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGSEGV));
    let lines = log.since();
    // The kernel names the thread, which the test harness has named after its test, cut to 15 bytes.
    let ours = |line: &String| line.contains("child_that_cras") && line.contains("segfault");
    assert!(lines.iter().any(ours), "{lines:?}");
    assert!(!log.since().iter().any(ours), "each line is read once");
}

#[test]
#[ignore = "started by another test"]
fn child_that_crashes() {
    // SAFETY: takes no pointer. The signal has its default action here only if nobody handles it.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
    // SAFETY: none; the fault is what this process is started for.
    unsafe { std::ptr::null_mut::<u8>().add(64).write_volatile(1) };
}
