//! Memory and its nodes.

use super::line;
use crate::memory::meminfo_bytes;
use crate::{CpuSet, Root};
use experiment::{Facts, NumaNode};

const NODES: &str = "sys/devices/system/node";

pub(super) fn read(root: &Root, facts: &mut Facts) {
    facts.memory_bytes = meminfo_bytes(root, "MemTotal:");
    facts.swap_bytes = meminfo_bytes(root, "SwapTotal:");
    // Nodes are numbered and listed as CPUs are.
    let Some(online) = line(root, &format!("{NODES}/online")).and_then(|list| list.parse::<CpuSet>().ok())
    else {
        return;
    };
    facts.numa_nodes = Some(online.len() as u32);
    facts.numa = online.iter().filter_map(|node| numa_node(root, node)).collect();
}

fn numa_node(root: &Root, node: u32) -> Option<NumaNode> {
    let directory = format!("{NODES}/node{node}");
    let cpus = root.text(format!("{directory}/cpulist")).ok()?;
    Some(NumaNode {
        node,
        cpus,
        memory_bytes: root.text(format!("{directory}/meminfo")).ok().and_then(|text| total_bytes(&text)),
        distances: line(root, &format!("{directory}/distance")),
    })
}

/// The total in a node's `meminfo`: `Node 0 MemTotal:  16318172 kB`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let (_, rest) = meminfo.lines().find_map(|line| line.split_once(" MemTotal:"))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
