//! CPUs of the host for the CPUs of a machine.

use machine::CpuSet;
use std::fs;

/// Lets each CPU of a machine run on one CPU of the host only, the next of the list, or from its start again. The error
/// is a sentence.
pub(super) fn pin(qemu: u32, cpus: &CpuSet) -> Result<(), String> {
    let tasks = fs::read_dir(format!("/proc/{qemu}/task"))
        .map_err(|error| format!("the threads of QEMU cannot be seen: {error}"))?;
    let hosts = cpus.to_vec();
    let mut pinned = 0;
    for task in tasks.flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let id = task.file_name().to_str().and_then(|id| id.parse::<u32>().ok());
        if let (Some(id), Some(on)) = (id, hosts_of(&name, &hosts)) {
            machine::cpus::pin_task(id, &on).map_err(|error| format!("CPU {on} of this host: {error}"))?;
            pinned += 1;
        }
    }
    if pinned == 0 { Err("this QEMU does not name the threads of its CPUs".into()) } else { Ok(()) }
}

/// Where a thread of QEMU belongs, by its name: `CPU 3/KVM`, or `ALL CPUs/TCG` for all of a machine whose CPUs take turns.
fn hosts_of(name: &str, hosts: &[u32]) -> Option<CpuSet> {
    if name.starts_with("ALL CPUs/") {
        return Some(hosts.iter().copied().collect());
    }
    let number: usize = name.strip_prefix("CPU ")?.split('/').next()?.parse().ok()?;
    hosts.get(number % hosts.len().max(1)).map(|host| CpuSet::one(*host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_by_their_names() {
        let list = |name| hosts_of(name, &[4, 6]).map(|cpus| cpus.to_string());
        assert_eq!(list("CPU 0/KVM\n").as_deref(), Some("4"));
        assert_eq!(list("CPU 3/TCG\n").as_deref(), Some("6"));
        assert_eq!(list("ALL CPUs/TCG\n").as_deref(), Some("4,6"));
        assert_eq!(list("qemu-system-x86\n"), None);
        assert_eq!(list("CPU x/KVM\n"), None);
    }

    #[test]
    fn a_process_without_such_threads_is_an_error() {
        let error = pin(std::process::id(), &CpuSet::one(0)).unwrap_err();
        assert!(error.contains("does not name"), "{error}");
        assert!(pin(u32::MAX, &CpuSet::one(0)).is_err());
    }
}
