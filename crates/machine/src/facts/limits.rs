//! What the control groups of this process leave it.

use crate::{Cgroups, Layout, Root};
use experiment::Facts;

pub(super) fn read(root: &Root, facts: &mut Facts) {
    let Ok(groups) = Cgroups::of_self(root) else { return };
    facts.cgroups = Some(
        match groups.layout() {
            Layout::Absent => "none",
            Layout::V1 => "v1",
            Layout::V2 => "v2",
            Layout::Hybrid => "hybrid",
        }
        .into(),
    );
    facts.cpu_quota = groups.cpu_quota().map(|quota| quota.cpus);
    facts.cpu_weight = groups.cpu_weight().map(|(file, weight)| format!("{file} {weight}"));
    facts.memory_limit_bytes = groups.memory_limit_bytes();
    facts.tasks_limit = groups.pids_limits().iter().map(|limit| limit.max).min();
}
