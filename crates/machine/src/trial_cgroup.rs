//! A control group of its own for a trial, so that none of its processes can be lost or go uncounted.

use crate::cgroup::{Cgroups, field, throttling};
use crate::owner;
use crate::{Root, Throttling};
use experiment::{Missing, Usage};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PREFIX: &str = "kduel-";
/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A control group of version 2 below the one of this process. It needs no controller: to hold, count and kill
/// processes is in every group. Dropping it kills what is inside and removes it.
#[derive(Debug)]
pub struct TrialCgroup {
    path: PathBuf,
    owner: u32,
}

/// CPU time of a group and all that was ever in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuStat {
    /// In user mode, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel, in nanoseconds.
    pub system_ns: u64,
    /// How often and how long a quota stopped it, where there is one.
    pub throttling: Option<Throttling>,
}

impl TrialCgroup {
    /// Makes a group. Empty ones that dead agents have left are removed on the way.
    ///
    /// # Errors
    /// The reason why there cannot be one here: no version 2, or not permitted. A trial runs without it as well.
    pub fn create(root: &Root) -> Result<TrialCgroup, Missing> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let groups = Cgroups::of_self(root).map_err(|error| Missing::because(error.to_string()))?;
        let Some(parent) = groups.unified() else {
            return Err(Missing::because("no hierarchy of control groups of version 2 is mounted here"));
        };
        sweep(root, parent);
        let owner = std::process::id();
        let path = parent.join(format!("{PREFIX}{owner}-{}", MADE.fetch_add(1, Ordering::Relaxed)));
        let refused = |error: io::Error| {
            Missing::because(format!("cannot make the control group {}: {error}", path.display()))
        };
        fs::create_dir(&path).map_err(refused)?;
        let group = TrialCgroup { path: path.clone(), owner };
        // To move a process takes the right to write where it leaves and where it arrives.
        for procs in [parent.join("cgroup.procs"), path.join("cgroup.procs")] {
            fs::OpenOptions::new().write(true).open(procs).map_err(refused)?;
        }
        // Below a threaded group a new one takes no process.
        match fs::read_to_string(path.join("cgroup.type")) {
            Ok(kind) if kind.trim() != "domain" => {
                Err(Missing::because(format!("{} would be a group of type {}", path.display(), kind.trim())))
            }
            _ => Ok(group),
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The CPU time of all that was ever in it.
    ///
    /// # Errors
    /// When the kernel does not count it.
    pub fn cpu_stat(&self) -> Result<CpuStat, Missing> {
        let path = self.path.join("cpu.stat");
        let text = fs::read_to_string(&path)
            .map_err(|error| Missing::because(format!("cannot read {}: {error}", path.display())))?;
        let ns = |name: &str| {
            let us = field(&text, name);
            us.map(|us| us.saturating_mul(1000))
                .ok_or_else(|| Missing::because(format!("{} has no {name}", path.display())))
        };
        let (user_ns, system_ns) = (ns("user_usec")?, ns("system_usec")?);
        Ok(CpuStat { user_ns, system_ns, throttling: throttling(&path) })
    }

    /// Puts what the group counted into `usage`: the CPU time of every process of the trial, also of those that nobody
    /// waited for, and the time for which a quota of the group stopped them.
    pub fn account(&self, usage: &mut Usage) {
        let Ok(stat) = self.cpu_stat() else { return };
        usage.user_ns = Some(stat.user_ns);
        usage.system_ns = Some(stat.system_ns);
        if let Some(throttling) = stat.throttling {
            usage.throttled_ns = Some(usage.throttled_ns.unwrap_or(0).saturating_add(throttling.stopped_ns));
        }
    }

    /// Kills everything inside and waits until it is gone, up to a few seconds.
    ///
    /// # Errors
    /// When something inside does not go.
    pub fn kill_all(&self) -> Result<(), Missing> {
        let start = Instant::now();
        loop {
            if write(&self.path.join("cgroup.kill"), "1").is_err() {
                // Before Linux 5.14 there is no such file.
                kill_one_by_one(&self.path);
            }
            if !is_populated(&self.path) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                return Err(Missing::because(format!("processes in {} do not end", self.path.display())));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills everything inside and removes the group.
    ///
    /// # Errors
    /// When something inside does not go. The next group that is made here tries again.
    pub fn remove(mut self) -> Result<(), Missing> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), Missing> {
        self.owner = 0;
        self.kill_all()?;
        remove_tree(&self.path)
            .map_err(|error| Missing::because(format!("cannot remove {}: {error}", self.path.display())))
    }
}

impl Drop for TrialCgroup {
    fn drop(&mut self) {
        // A child that inherited this by fork may be inside.
        if self.owner == std::process::id() {
            let _ = self.take_down();
        }
    }
}

/// Moves this process, with all its threads, into a group. What it starts later is born there.
///
/// # Errors
/// When the kernel refuses.
pub fn join_cgroup(group: &Path) -> io::Result<()> {
    write(&group.join("cgroup.procs"), "0")
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

fn kill_one_by_one(group: &Path) {
    for below in subgroups(group) {
        kill_one_by_one(&below);
    }
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process of another pid namespace, and for `kill` it would mean our own group.
    for pid in members.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn is_populated(group: &Path) -> bool {
    fs::read_to_string(group.join("cgroup.events")).is_ok_and(|events| field(&events, "populated") == Some(1))
}

/// A workload may have made groups below its own.
fn remove_tree(group: &Path) -> io::Result<()> {
    for below in subgroups(group) {
        remove_tree(&below)?;
    }
    fs::remove_dir(group)
}

fn subgroups(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Removes the empty groups of agents that are dead.
fn sweep(root: &Root, parent: &Path) {
    for group in subgroups(parent) {
        let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')?.0.parse().ok());
        if owner.is_some_and(|pid| !owner::exists(root, pid)) {
            // The kernel refuses while anything is inside.
            let _ = remove_tree(&group);
        }
    }
}
