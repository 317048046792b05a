//! Processes that have come to this one because their own parents ended.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use std::fs;

/// Reaps every process that has come to this one, and kills those that still run. Returns how many did. What it cannot
/// kill is left to the agent.
pub fn end_all_children() -> usize {
    let mut killed = 0;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => {
                let children = children();
                if children.is_empty() {
                    // They run, and this kernel does not list them: they are left to the agent.
                    return killed;
                }
                let ended =
                    children.iter().filter(|child| kill_process(**child, Signal::KILL).is_ok()).count();
                if ended == 0 {
                    // They are another user's.
                    return killed;
                }
                killed += ended;
                // One that was killed ends soon, and its own children come to this process then.
                let _ = wait(WaitOptions::empty());
            }
            Err(_) => return killed,
        }
    }
}

/// The children of this process that have not ended.
fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .filter_map(Pid::from_raw)
        .collect()
}
