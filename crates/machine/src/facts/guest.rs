//! The machine below the kernel: its maker and firmware, and whether it is a virtual one.

use super::line;
use crate::Root;
use experiment::Facts;

/// The signature of KVM, on whose leaf of features the names below are based.
const KVM: &str = "KVMKVMKVM";

/// What KVM offers to its guests, by bit of its leaf of features.
#[cfg(target_arch = "x86_64")]
const OFFERS: &[(u32, &str)] = &[
    (0, "kvmclock"),
    (1, "no-io-delay"),
    (3, "kvmclock2"),
    (4, "async-page-fault"),
    (5, "steal-time"),
    (6, "pv-eoi"),
    (7, "pv-unhalt"),
    (9, "pv-tlb-flush"),
    (11, "pv-send-ipi"),
    (12, "poll-control"),
    (13, "pv-sched-yield"),
    (14, "async-page-fault-interrupt"),
    (15, "msi-ext-dest-id"),
    (24, "kvmclock-stable"),
];

pub(super) fn read(root: &Root, facts: &mut Facts) {
    let board = |file: &str| line(root, &format!("sys/class/dmi/id/{file}"));
    let joined = |files: [&str; 3]| {
        let parts: Vec<String> = files.into_iter().filter_map(board).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    };
    facts.product =
        joined(["sys_vendor", "product_name", "product_version"]).or_else(|| tree_text(root, "model"));
    facts.firmware = joined(["bios_vendor", "bios_version", "bios_date"]);
    let signature = signature(root);
    facts.paravirtual = signature.as_deref().filter(|name| *name == KVM).and_then(|_| offers(root));
    facts.hypervisor = hypervisor(root, signature);
}

/// A text of the device tree, which ends with a zero byte, or several that each do.
fn tree_text(root: &Root, name: &str) -> Option<String> {
    let text = root.text(format!("proc/device-tree/{name}")).ok()?;
    let texts: Vec<&str> = text.split('\0').map(str::trim).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The hypervisor, where there is one: by the name that it gives itself, or `unnamed`.
fn hypervisor(root: &Root, signature: Option<String>) -> Option<String> {
    let tree = tree_text(root, "hypervisor/compatible");
    if let Some(kind) = tree.or_else(|| line(root, "sys/hypervisor/type")).filter(|kind| kind != "none") {
        return Some(kind);
    }
    // The boards that QEMU and others make up for guests without a name of their own for the hypervisor.
    let board = tree_text(root, "compatible").filter(|board| {
        ["dummy-virt", "riscv-virtio"].iter().any(|virtual_board| board.contains(virtual_board))
    });
    if board.is_some() {
        return board;
    }
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    if !flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")) {
        return None;
    }
    let board = |file: &str| line(root, &format!("sys/class/dmi/id/{file}"));
    let names = [signature, board("sys_vendor"), board("product_name")].into_iter().flatten();
    let names: Vec<String> = names.collect();
    Some(if names.is_empty() { "unnamed".into() } else { names.join(", ") })
}

/// The signature in the CPU's leaf for hypervisors, such as `KVMKVMKVM`.
#[cfg(target_arch = "x86_64")]
fn signature(root: &Root) -> Option<String> {
    if !root.is_real() {
        return None;
    }
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|part| part.to_le_bytes()).collect();
    let name: String =
        bytes.iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect();
    (!name.is_empty()).then_some(name)
}

/// What KVM says that it offers.
#[cfg(target_arch = "x86_64")]
fn offers(root: &Root) -> Option<String> {
    if !root.is_real() {
        return None;
    }
    let leaf = std::arch::x86_64::__cpuid(0x4000_0001);
    let mut words: Vec<&str> =
        OFFERS.iter().filter(|(bit, _)| leaf.eax >> bit & 1 == 1).map(|(_, name)| *name).collect();
    if leaf.edx & 1 == 1 {
        words.push("dedicated");
    }
    Some(if words.is_empty() { "none".into() } else { words.join(" ") })
}

#[cfg(not(target_arch = "x86_64"))]
fn signature(_root: &Root) -> Option<String> {
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn offers(_root: &Root) -> Option<String> {
    None
}
