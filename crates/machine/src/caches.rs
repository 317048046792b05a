//! The caches between CPUs and memory.

use crate::{CpuSet, Root};

/// The size of all last-level caches of `cpus` together, in bytes; one that several CPUs share counts once. `None`
/// where the kernel does not tell.
pub fn last_level_cache_bytes(root: &Root, cpus: &[u32]) -> Option<u64> {
    let caches = last_level_caches(root, cpus.iter().copied());
    (!caches.is_empty()).then(|| caches.into_iter().fold(0, u64::saturating_add))
}

/// The sizes of all last-level caches of `cpus`, in bytes. CPUs whose caches are not known are passed over.
pub(crate) fn last_level_caches(root: &Root, cpus: impl Iterator<Item = u32>) -> Vec<u64> {
    let mut sharers = CpuSet::new();
    let mut sizes = Vec::new();
    for cpu in cpus {
        // On a machine of thousands of CPUs every file that is not read counts.
        if !sharers.contains(cpu)
            && let Some((own, bytes)) = last_level_cache(root, cpu)
        {
            own.iter().for_each(|sharer| sharers.insert(sharer));
            sizes.push(bytes);
        }
    }
    sizes
}

/// The last-level cache of a CPU: the CPUs that share it, and its size in bytes.
fn last_level_cache(root: &Root, cpu: u32) -> Option<(CpuSet, u64)> {
    let directory = |index: u32| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
    let last = (0..)
        .map(directory)
        .map_while(|cache| Some((root.number(format!("{cache}/level")).ok()?, cache)))
        .max_by_key(|(level, _)| *level);
    let (_, cache) = last?;
    let sharers = root.text(format!("{cache}/shared_cpu_list")).ok().and_then(|list| list.parse().ok());
    let size_kib: u64 = root.text(format!("{cache}/size")).ok()?.strip_suffix('K')?.parse().ok()?;
    Some((sharers.unwrap_or_else(|| CpuSet::one(cpu)), size_kib.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn shared_caches_count_once_and_only_those_of_the_cpus_asked_for() {
        let top = tempfile::tempdir().unwrap();
        for (cpu, sharers) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            for (index, level, size) in [(0, "1", "48K"), (1, "2", "1024K"), (2, "3", "32768K")] {
                let cache = top.path().join(format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}"));
                fs::create_dir_all(&cache).unwrap();
                fs::write(cache.join("level"), level).unwrap();
                fs::write(cache.join("size"), size).unwrap();
                fs::write(cache.join("shared_cpu_list"), sharers).unwrap();
            }
        }
        let root = Root::at(top.path());
        assert_eq!(last_level_cache_bytes(&root, &[0, 1]), Some(32 << 20));
        assert_eq!(last_level_cache_bytes(&root, &[0, 1, 3]), Some(64 << 20));
        assert_eq!(last_level_cache_bytes(&root, &[9]), None);
    }
}
