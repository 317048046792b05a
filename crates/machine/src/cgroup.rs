//! The control groups of this process, in every layout: version 1, version 2, and both at once.

use crate::mounts::{self, Mount};
use crate::{ReadError, Root};
use std::path::{Component, Path, PathBuf};

/// Where this process stands in the hierarchies of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    places: Vec<Place>,
}

/// The place of this process in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The controllers of a hierarchy of version 1; `None` for that of version 2.
    controllers: Option<Vec<String>>,
    /// The top of the hierarchy, as far as it can be seen here.
    top: PathBuf,
    /// The group of this process.
    own: PathBuf,
}

/// Which versions of control groups are mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// None.
    Absent,
    /// Version 1 alone.
    V1,
    /// Version 2 alone.
    V2,
    /// Hierarchies of version 1 with one of version 2 beside them.
    Hybrid,
}

/// A limit on CPU time. It bounds CPU seconds per second and not the number of threads that run at once, so it is
/// no reason to start fewer of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// CPU seconds per second.
    pub cpus: f64,
    /// The file that sets it.
    pub path: PathBuf,
}

/// A limit on the number of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PidsLimit {
    /// The most tasks.
    pub max: u64,
    /// The tasks that there are.
    pub current: u64,
    /// The file that sets it.
    pub path: PathBuf,
}

/// How often and how long quotas have stopped a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which it was stopped.
    pub periods: u64,
    /// Time for which its threads were stopped, in nanoseconds.
    pub stopped_ns: u64,
}

impl Cgroups {
    /// Reads /proc/self/cgroup and the table of mounts.
    ///
    /// # Errors
    /// When one of them cannot be read: a kernel without control groups, or no /proc.
    pub fn of_self(root: &Root) -> Result<Cgroups, ReadError> {
        let mounts = mounts::parse(&root.text("proc/self/mountinfo")?);
        let membership = root.text("proc/self/cgroup")?;
        Ok(Cgroups { places: membership.lines().filter_map(|line| place(root, line, &mounts)).collect() })
    }

    /// Which versions are mounted.
    pub fn layout(&self) -> Layout {
        let v1 = self.places.iter().any(|place| place.controllers.is_some());
        match (v1, self.unified().is_some()) {
            (false, false) => Layout::Absent,
            (true, false) => Layout::V1,
            (false, true) => Layout::V2,
            (true, true) => Layout::Hybrid,
        }
    }

    /// The group of this process in the hierarchy of version 2.
    pub fn unified(&self) -> Option<&Path> {
        self.places.iter().find(|place| place.controllers.is_none()).map(|place| place.own.as_path())
    }

    /// The controllers that the group of this process has in the hierarchy of version 2, and those of the mounted
    /// hierarchies of version 1.
    pub fn controllers(&self) -> (Vec<String>, Vec<String>) {
        let listed = self.unified().map(|own| std::fs::read_to_string(own.join("cgroup.controllers")));
        let listed = listed.and_then(Result::ok).unwrap_or_default();
        let v1 = self.places.iter().filter_map(|place| place.controllers.as_ref()).flatten();
        // A hierarchy that only holds processes has a name in place of controllers.
        let v1 = v1.filter(|name| !name.starts_with("name=")).cloned().collect();
        (listed.split_whitespace().map(str::to_string).collect(), v1)
    }

    /// The limit on CPU time that binds tightest, among the group of this process and all above it.
    pub fn cpu_quota(&self) -> Option<Quota> {
        let quotas = self.groups("cpu").into_iter().filter_map(|group| quota(&group));
        quotas.min_by(|a, b| a.cpus.total_cmp(&b.cpus))
    }

    /// The weight of the group of this process for CPU time among its siblings, with the name of the file that sets it.
    pub fn cpu_weight(&self) -> Option<(&'static str, u64)> {
        let own = self.groups("cpu").into_iter().next()?;
        ["cpu.weight", "cpu.shares"].into_iter().find_map(|file| Some((file, number(&own.join(file))?)))
    }

    /// The tightest limit on memory, of the group of this process and all above it, in bytes.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let limit = |group: PathBuf| {
            ["memory.max", "memory.limit_in_bytes"].iter().find_map(|file| number(&group.join(file)))
        };
        // Version 2 writes `max` for no limit, version 1 the largest number of whole pages.
        self.groups("memory").into_iter().filter_map(limit).min().filter(|bytes| *bytes < 1 << 62)
    }

    /// The limits on the number of tasks, of the group of this process and all above it.
    pub fn pids_limits(&self) -> Vec<PidsLimit> {
        let limit = |group: PathBuf| {
            let path = group.join("pids.max");
            // `max` is no number and no limit.
            let max = number(&path)?;
            Some(PidsLimit { max, current: number(&group.join("pids.current"))?, path })
        };
        self.groups("pids").into_iter().filter_map(limit).collect()
    }

    /// How often and how long quotas have stopped the group of this process and those above it, since each was
    /// made. `None` where no group counts it.
    pub fn throttling(&self) -> Option<Throttling> {
        let counted = self.groups("cpu").into_iter().filter_map(|group| throttling(&group.join("cpu.stat")));
        counted.reduce(|a, b| Throttling {
            periods: a.periods.saturating_add(b.periods),
            stopped_ns: a.stopped_ns.saturating_add(b.stopped_ns),
        })
    }

    /// The group of this process in the hierarchy that has the controller, and all groups above it that can be
    /// seen. A controller that is in no hierarchy of version 1 belongs to version 2.
    pub(crate) fn groups(&self, controller: &str) -> Vec<PathBuf> {
        let has = |place: &&Place| {
            place.controllers.as_ref().is_some_and(|all| all.iter().any(|one| one == controller))
        };
        let place = self
            .places
            .iter()
            .find(has)
            .or_else(|| self.places.iter().find(|place| place.controllers.is_none()));
        place.map_or(Vec::new(), |place| {
            let inside = |group: &&Path| group.starts_with(&place.top);
            place.own.ancestors().take_while(inside).map(Path::to_path_buf).collect()
        })
    }
}

/// Finds the directory that a line of /proc/self/cgroup, `ID:CONTROLLERS:PATH`, stands for.
fn place(root: &Root, line: &str, mounts: &[Mount]) -> Option<Place> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let unified = id == "0" && controllers.is_empty();
    let controllers: Vec<String> = controllers.split(',').map(str::to_string).collect();
    mounts
        .iter()
        .filter(|mount| match unified {
            true => mount.kind == "cgroup2",
            // `cpu,cpuacct` may be mounted under either name; any of its options is enough.
            false => mount.kind == "cgroup" && controllers.iter().any(|one| mount.options.contains(one)),
        })
        .find_map(|mount| {
            // A container sees its own part of the hierarchy: the mount begins at `mount.top`.
            let below = Path::new(path).strip_prefix(&mount.top).ok()?;
            // To a process whose group lies outside its namespace the kernel names it by the way up, `/../other`, and
            // there is no directory for it here.
            if below.components().any(|part| part == Component::ParentDir) {
                return None;
            }
            let top = root.path(&mount.point);
            // Joined with nothing, a path gets a slash at its end.
            let own = if below.as_os_str().is_empty() { top.clone() } else { top.join(below) };
            let controllers = (!unified).then(|| controllers.clone());
            own.is_dir().then_some(Place { controllers, top, own })
        })
}

fn quota(group: &Path) -> Option<Quota> {
    let file = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let (path, quota, period) = match file("cpu.max") {
        Some(text) => {
            let mut words = text.split_whitespace().map(str::to_string);
            (group.join("cpu.max"), words.next()?, words.next()?)
        }
        None => (group.join("cpu.cfs_quota_us"), file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?),
    };
    // `max` and -1 stand for no limit, and neither is an unsigned number.
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (period > 0).then(|| Quota { cpus: quota as f64 / period as f64, path })
}

/// Reads the counters of a cpu.stat of either version.
pub(crate) fn throttling(cpu_stat: &Path) -> Option<Throttling> {
    let text = std::fs::read_to_string(cpu_stat).ok()?;
    let field = |name: &str| field(&text, name);
    // Version 1 counts in nanoseconds, version 2 in microseconds.
    let stopped_ns = field("throttled_time").or_else(|| Some(field("throttled_usec")?.saturating_mul(1000)));
    Some(Throttling { periods: field("nr_throttled")?, stopped_ns: stopped_ns? })
}

/// The number that stands behind `name` in a file of one pair a line.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

pub(crate) fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
