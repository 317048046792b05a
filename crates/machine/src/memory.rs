//! How much memory a trial may take before the kernel begins to kill.

use crate::cgroup::{field, number};
use crate::{Cgroups, Root};
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// A need of memory that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct MemoryShortage {
    /// The bytes that were needed.
    pub wanted_bytes: u64,
    /// The bytes that can be had.
    pub available_bytes: u64,
    /// The file that says so: that of the machine, or the limit of a control group.
    pub said_by: String,
}

impl fmt::Display for MemoryShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        let MemoryShortage { wanted_bytes, available_bytes, said_by } = self;
        write!(
            f,
            "{} MiB of memory are needed and {} MiB available",
            mib(*wanted_bytes),
            mib(*available_bytes)
        )?;
        write!(f, " (by {said_by})")
    }
}

/// Makes sure that `wanted_bytes` can be had without swapping, and without a kill in the control group of this
/// process or one above it. What cannot be read is passed over.
///
/// # Errors
/// When it cannot; says what binds tightest.
pub fn memory_for(root: &Root, wanted_bytes: u64) -> Result<(), MemoryShortage> {
    let machine =
        meminfo_bytes(root, "MemAvailable:").map(|bytes| (bytes, "MemAvailable of /proc/meminfo".into()));
    let groups = Cgroups::of_self(root).map(|groups| groups.groups("memory")).unwrap_or_default();
    let available = groups.iter().filter_map(|group| left_in(group)).chain(machine).min();
    match available {
        Some((available_bytes, said_by)) if available_bytes < wanted_bytes => {
            Err(MemoryShortage { wanted_bytes, available_bytes, said_by })
        }
        _ => Ok(()),
    }
}

/// A field of /proc/meminfo, such as `MemTotal:`.
pub(crate) fn meminfo_bytes(root: &Root, name: &str) -> Option<u64> {
    let meminfo = root.text("proc/meminfo").ok()?;
    let rest = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What a group may still take, with the pages of files that it would give up, and the file that limits it.
fn left_in(group: &Path) -> Option<(u64, String)> {
    let v2 = group.join("memory.max").exists();
    let [max, current, prefix] = match v2 {
        true => ["memory.max", "memory.current", ""],
        false => ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_"],
    };
    let path = group.join(max);
    // `max` is no number and no limit.
    let (max, current) = (number(&path)?, number(&group.join(current))?);
    let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let of_files = |list: &str| field(&stat, &format!("{prefix}{list}_file")).unwrap_or(0);
    let files = of_files("inactive").saturating_add(of_files("active"));
    Some((max.saturating_sub(current.saturating_sub(files)), path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for (inside, text) in files {
            let path = top.path().join(inside);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        top
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:  4096 kB\nMemAvailable:    2048 kB\n");

    #[test]
    fn what_binds_tightest_is_named() {
        let mountinfo = "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        let v2 = [
            MEMINFO,
            ("proc/self/mountinfo", mountinfo),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1500000\n"),
            ("sys/fs/cgroup/a/memory.current", "1000000\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\nactive_file 200000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "1000\n"),
        ];
        let top = tree(&v2);
        let root = Root::at(top.path());
        assert_eq!(memory_for(&root, 800_000), Ok(()));
        let shortage = memory_for(&root, 800_001).unwrap_err();
        assert_eq!(shortage.available_bytes, 800_000);
        assert!(shortage.said_by.ends_with("/a/memory.max"), "{shortage}");

        let top = tree(&v2[..1]);
        let shortage = memory_for(&Root::at(top.path()), 3 << 20).unwrap_err().to_string();
        assert_eq!(
            shortage,
            "3 MiB of memory are needed and 2 MiB available (by MemAvailable of /proc/meminfo)"
        );
    }

    #[test]
    fn a_group_of_version_1_is_read_and_an_empty_tree_limits_nothing() {
        let top = tree(&[
            MEMINFO,
            ("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"),
            ("proc/self/cgroup", "4:memory:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900\n"),
            ("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n"),
        ]);
        assert_eq!(memory_for(&Root::at(top.path()), 401).unwrap_err().available_bytes, 400);
        assert_eq!(memory_for(&Root::at(tempfile::tempdir().unwrap().path()), u64::MAX), Ok(()));
    }
}
