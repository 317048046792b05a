//! Whether a trial's tasks and files will fit, before the first of them is made.

use crate::{Cgroups, Root, owner};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fmt;
use thiserror::Error;

/// Memory areas of one thread: its stack and its signal stack, each with a guard. Measured with 1000 threads.
const AREAS_PER_THREAD: u64 = 4;
/// Memory areas that a process has without further threads, with room to spare.
const AREAS_OF_PROCESS: u64 = 200;
/// Process ids that the kernel keeps for itself.
const PIDS_RESERVED: u64 = 300;
/// Files that a process opens besides those of its workload, such as those in /proc that it reads.
const FILES_SPARE: u64 = 16;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_RESOURCE: u32 = 24;

/// What a trial is going to need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// Threads in one process.
    pub threads: u64,
    /// Processes.
    pub processes: u64,
    /// Files that one process has open at once.
    pub files: u64,
}

/// One limit that is too low.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The limit, by the name under which its manual knows it.
    pub limit: String,
    /// Its value.
    pub value: u64,
    /// The value that would be enough.
    pub wanted: u64,
    /// The command that raises it.
    pub remedy: String,
}

/// Limits that are too low.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct LimitError {
    /// All of them, so that they can be raised in one go.
    pub shortages: Vec<Shortage>,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Shortage { limit, value, wanted, remedy }) in self.shortages.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{limit} is {value} and {wanted} are needed (raise it: {remedy})")?;
        }
        Ok(())
    }
}

/// Makes sure that `need` fits into every limit of the kernel, of this user and of the control groups. The soft limit
/// on open files is raised where the hard one allows it. A limit that cannot be read is passed over: the trial
/// itself reports what then fails.
///
/// # Errors
/// With every limit that is too low, its value and the command that raises it.
pub fn room_for(root: &Root, need: &Need) -> Result<(), LimitError> {
    let tasks = need.threads.saturating_add(need.processes);
    let mut shortages = Vec::new();
    let mut wants = |limit: &str, value: Option<u64>, wanted: u64, remedy: &dyn Fn(u64) -> String| {
        if let Some(value) = value.filter(|value| *value < wanted) {
            shortages.push(Shortage { limit: limit.into(), value, wanted, remedy: remedy(wanted) });
        }
    };
    let sysctl = |name: &'static str| move |wanted: u64| format!("sysctl -w {name}={wanted}");
    let in_use = tasks_in_use(root).unwrap_or(0);
    let number = |inside: &str| root.number(inside).ok();

    wants(
        "kernel.pid_max",
        number("proc/sys/kernel/pid_max"),
        in_use.saturating_add(tasks).saturating_add(PIDS_RESERVED),
        &sysctl("kernel.pid_max"),
    );
    wants(
        "kernel.threads-max",
        number("proc/sys/kernel/threads-max"),
        in_use.saturating_add(tasks),
        &sysctl("kernel.threads-max"),
    );
    wants(
        "vm.max_map_count",
        number("proc/sys/vm/max_map_count"),
        need.threads.saturating_mul(AREAS_PER_THREAD).saturating_add(AREAS_OF_PROCESS),
        &sysctl("vm.max_map_count"),
    );
    for limit in Cgroups::of_self(root).map(|groups| groups.pids_limits()).unwrap_or_default() {
        let path = limit.path.display().to_string();
        let wanted = limit.current.saturating_add(tasks);
        wants(&path, Some(limit.max), wanted, &|wanted| format!("echo {wanted} > {path}"));
    }
    let limits = root.text("proc/self/limits").unwrap_or_default();
    if let Some((soft, _)) = limit(&limits, "Max processes")
        && !is_exempt(root)
        // Counting the tasks of one user takes a while; all tasks of the machine are known at once.
        && soft < in_use.saturating_add(tasks)
    {
        let wanted = tasks_of_user(root).saturating_add(tasks);
        wants("RLIMIT_NPROC", Some(soft), wanted, &|wanted| format!("ulimit -u {wanted}"));
    }
    if let Some((soft, hard)) = limit(&limits, "Max open files") {
        let open = std::fs::read_dir(root.path("proc/self/fd")).map_or(0, |entries| entries.count() as u64);
        let wanted = open.saturating_add(need.files).saturating_add(FILES_SPARE);
        let raised = soft < wanted && wanted <= hard && raise_open_files(root, wanted, hard);
        wants("RLIMIT_NOFILE", Some(if raised { wanted } else { soft }), wanted, &|wanted| {
            format!("ulimit -n {wanted}, or as root: prlimit --pid $$ --nofile={wanted}")
        });
    }
    if shortages.is_empty() { Ok(()) } else { Err(LimitError { shortages }) }
}

/// All tasks of the machine: behind the slash of /proc/loadavg's fourth field.
fn tasks_in_use(root: &Root) -> Option<u64> {
    let text = root.text("proc/loadavg").ok()?;
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// The soft and the hard value of a line of /proc/self/limits; one that is unlimited is the largest number.
pub(crate) fn limit(limits: &str, name: &str) -> Option<(u64, u64)> {
    let mut words = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut value = || match words.next()? {
        "unlimited" => Some(u64::MAX),
        word => word.parse().ok(),
    };
    Some((value()?, value()?))
}

/// Whether the limit on the processes of a user does not bind this one: the machine's root, and who has its rights.
/// Root in a container's own user namespace is not exempt.
fn is_exempt(root: &Root) -> bool {
    let Ok(map) = root.text("proc/self/uid_map") else { return false };
    let Ok(status) = root.text("proc/self/status") else { return false };
    let outermost = map.split_whitespace().eq(["0", "0", "4294967295"]);
    let rights = status_field(&status, "CapEff:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let has = |right: u32| rights.is_some_and(|mask| mask >> right & 1 == 1);
    outermost && (status_field(&status, "Uid:") == Some("0") || has(CAP_SYS_RESOURCE) || has(CAP_SYS_ADMIN))
}

fn tasks_of_user(root: &Root) -> u64 {
    let own = root.text("proc/self/status").unwrap_or_default();
    let own = status_field(&own, "Uid:");
    let tasks = |pid: u32| {
        let status = root.text(format!("proc/{pid}/status")).ok()?;
        let ours = status_field(&status, "Uid:") == own;
        ours.then(|| status_field(&status, "Threads:")?.parse::<u64>().ok())?
    };
    owner::all_pids(root).into_iter().filter_map(tasks).fold(0, u64::saturating_add)
}

/// The first word behind a name in a status file of /proc.
fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
}

/// Raises the soft limit no further than needed, since there are programs that close every file up to it before they
/// begin. A limit that was only read from a tree is not raised, but could have been.
fn raise_open_files(root: &Root, wanted: u64, hard: u64) -> bool {
    let limit = Rlimit { current: Some(wanted), maximum: Some(hard).filter(|hard| *hard != u64::MAX) };
    !root.is_real() || setrlimit(Resource::Nofile, limit).is_ok()
}
