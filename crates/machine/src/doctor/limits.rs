//! Whether the largest published duels fit into the limits of this user and machine.

use super::Finding;
use crate::limits::limit;
use crate::{LimitError, Need, Root, SystemVNeed, room_for, room_for_system_v};

const TASKS: &str = "tasks";
const FILES: &str = "open files";
const SYSTEM_V: &str = "System V objects";

/// The users of the largest posted run of AIM7's shared memory: each is a process with a semaphore and a segment.
const USERS: u64 = 7000;
const SEGMENT_BYTES: u64 = 1 << 16;
/// The files of hackbench with 50 groups of threads, which hold both ends of 1000 sockets in one process.
const OPEN_FILES: u64 = 2000;

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    let Ok(limits) = root.text("proc/self/limits") else {
        let unread = |ability| Finding::unknown(ability, "the limits of this process cannot be read");
        return [TASKS, FILES, SYSTEM_V].map(unread).to_vec();
    };
    let in_words = |value: u64| if value == u64::MAX { "unlimited".to_string() } else { value.to_string() };
    let of_user = |name: &str| match limit(&limits, name) {
        Some((soft, hard)) if soft == hard => in_words(soft),
        Some((soft, hard)) => format!("{} to {}", in_words(soft), in_words(hard)),
        None => "not known".to_string(),
    };
    let sysctl = |name: &str| match root.text(format!("proc/sys/kernel/{name}")) {
        Ok(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Err(_) => "not known".to_string(),
    };
    let tasks = format!(
        "nproc {}, threads-max {}, pid_max {}",
        of_user("Max processes"),
        sysctl("threads-max"),
        sysctl("pid_max")
    );
    // The soft limit is raised where the hard one allows it.
    let files = format!("nofile {}", of_user("Max open files"));
    let objects = format!("sem {}, shmmni {}", sysctl("sem"), sysctl("shmmni"));

    let of_users = Need { processes: USERS, ..Need::default() };
    let of_threads = Need { files: OPEN_FILES, ..Need::default() };
    let of_shared_memory = SystemVNeed { sets: USERS, segments: USERS, segment_bytes: SEGMENT_BYTES };
    vec![
        judge(TASKS, &format!("{USERS} more processes"), room_for(root, &of_users), &tasks),
        judge(FILES, &format!("{OPEN_FILES} in one process"), room_for(root, &of_threads), &files),
        judge(SYSTEM_V, &format!("{USERS} of each"), room_for_system_v(root, &of_shared_memory), &objects),
    ]
}

fn judge(ability: &'static str, need: &str, room: Result<(), LimitError>, values: &str) -> Finding {
    match room {
        Ok(()) => Finding::ok(ability, format!("{need} fit: {values}")),
        Err(LimitError { shortages }) => {
            let limits: Vec<&str> = shortages.iter().map(|shortage| shortage.limit.as_str()).collect();
            let remedies: Vec<&str> = shortages.iter().map(|shortage| shortage.remedy.as_str()).collect();
            let seen = format!("{need} do not fit, by {}: {values}", limits.join(" and "));
            Finding::limited(ability, seen).advice(remedies.join("; "))
        }
    }
}
