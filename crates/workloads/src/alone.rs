//! Tests that need a process to themselves: they fork, change limits, or count what is left behind.

use rustix::process::{DumpableBehavior, Resource, Rlimit, Uid, set_dumpable_behavior, setrlimit};
use rustix::thread::set_thread_res_uid;
use std::env;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const VARIABLE: &str = "KDUEL_TEST_ALONE";
const CAME_TO_ITS_END: &str = "the test came to its end";

/// Runs `body` in a process of its own, with a single thread. `test` is the path of the test that calls this.
pub fn alone(test: &str, body: impl FnOnce()) {
    if env::var(VARIABLE).is_ok_and(|name| name == test) {
        body();
        println!("{CAME_TO_ITS_END}");
        return;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(VARIABLE, test);
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains(CAME_TO_ITS_END),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
}

/// Runs `body` and asserts that it leaves no open file, no thread and no child process behind.
pub fn leaving_nothing<T>(body: impl FnOnce() -> T) -> T {
    let before = possessions();
    let result = body();
    // A thread that has been joined may take the kernel a moment longer to let go.
    let patience = Instant::now() + Duration::from_secs(2);
    while possessions() != before && Instant::now() < patience {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(possessions(), before, "open files, threads, children");
    result
}

fn possessions() -> (usize, usize, String) {
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    (count("/proc/self/fd"), count("/proc/self/task"), children)
}

/// Lets this process have no more than `count` tasks, by becoming a user who has no others. False where that
/// needs root and this is not.
pub fn limit_tasks(count: u64) -> bool {
    let nobody = Uid::from_raw(54_321);
    if set_thread_res_uid(nobody, nobody, nobody).is_err() {
        println!("skipped: only root can become a user whose number of tasks it limits");
        return false;
    }
    // Who changes the user may no longer look at itself in /proc, unless it says so.
    set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
    setrlimit(Resource::Nproc, Rlimit { current: Some(count), maximum: Some(count) }).unwrap();
    true
}
