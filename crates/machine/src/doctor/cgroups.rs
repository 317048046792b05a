//! The control groups around this process, and whether trials can have groups of their own.

use super::Finding;
use crate::{Cgroups, Layout, ReadError, Root, TrialCgroup};

const LAYOUT: &str = "cgroups";
const OWN: &str = "groups of trials";
const QUOTA: &str = "CPU quota";

/// There where systemd runs the machine, and delegates groups to users.
const SYSTEMD: &str = "run/systemd/system";

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    let groups = Cgroups::of_self(root);
    vec![layout(&groups), own(root, &groups), quota(&groups)]
}

fn layout(groups: &Result<Cgroups, ReadError>) -> Finding {
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) => return Finding::unknown(LAYOUT, error.to_string()),
    };
    let (v2, v1) = groups.controllers();
    let list = |names: &[String]| if names.is_empty() { "none".to_string() } else { names.join(" ") };
    match groups.layout() {
        Layout::V2 => Finding::ok(LAYOUT, format!("version 2; controllers here: {}", list(&v2))),
        Layout::Hybrid => Finding::ok(
            LAYOUT,
            format!("hybrid; controllers of version 2 here: {}; of version 1: {}", list(&v2), list(&v1)),
        ),
        Layout::V1 => Finding::limited(LAYOUT, format!("version 1 alone; controllers: {}", list(&v1)))
            .command("mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified"),
        Layout::Absent => Finding::limited(LAYOUT, "none is mounted that holds this process")
            .command("mount -t cgroup2 none /sys/fs/cgroup"),
    }
}

/// A group of its own counts the CPU time of every process of a trial and lets none escape.
fn own(root: &Root, groups: &Result<Cgroups, ReadError>) -> Finding {
    match groups {
        Ok(groups) if groups.unified().is_none() => Finding::no(
            OWN,
            "there is no hierarchy of version 2 to make one in",
        )
        .advice(
            "Mount one, as said above; until then what leaves a trial's process group is found by a mark.",
        ),
        Err(_) => Finding::unknown(OWN, "the groups of this process cannot be read"),
        Ok(_) if !root.is_real() => Finding::of_a_tree(OWN),
        Ok(groups) => match TrialCgroup::create(root) {
            Ok(_) => {
                let place = groups.unified().map_or(String::new(), |own| format!(" in {}", own.display()));
                Finding::ok(OWN, format!("made one{place} and removed it"))
            }
            Err(missing) if root.path(SYSTEMD).is_dir() => Finding::no(OWN, missing.to_string())
                .command("systemd-run --user --scope -p Delegate=yes kduel run ..."),
            Err(missing) => Finding::no(OWN, missing.to_string()).advice("Run as root."),
        },
    }
}

fn quota(groups: &Result<Cgroups, ReadError>) -> Finding {
    let groups = match groups {
        Ok(groups) => groups,
        Err(_) => return Finding::unknown(QUOTA, "the groups of this process cannot be read"),
    };
    let Some(quota) = groups.cpu_quota() else {
        return match groups.layout() {
            Layout::Absent => Finding::unknown(QUOTA, "no control group can be seen"),
            _ => Finding::ok(QUOTA, "none"),
        };
    };
    let stopped = match groups.throttling() {
        Some(throttling) => format!("; it has stopped this group in {} periods", throttling.periods),
        None => String::new(),
    };
    let path = quota.path.display();
    // Version 1 has two files, and -1 for no limit.
    let none = if quota.path.ends_with("cpu.max") { "max" } else { "-1" };
    Finding::limited(
        QUOTA,
        format!("{} CPUs by {path}{stopped}; trials that it stops are invalid", quota.cpus),
    )
    .command(format!("echo {none} > {path}"))
}
