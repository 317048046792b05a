//! The kernel's side of the time slice extension: its counts and its length, in debugfs.

use crate::{Root, knobs};
use std::fs;

/// The length of a grant, as debugfs has it.
pub const SLICE_LENGTH: &str = "rseq/slice_ext_nsec";

/// What became of the time slice extensions of all processes since boot, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SliceCounts {
    /// Extensions that were granted.
    pub grants: u64,
    /// Those that were given back by the system call for it.
    pub yields: u64,
    /// Those that ended because their time was over.
    pub expired: u64,
    /// Those that ended because the thread was interrupted a second time.
    pub revoked: u64,
    /// Those that another system call ended.
    pub aborted: u64,
}

impl SliceCounts {
    /// The counts of the running kernel; `None` where it has none (CONFIG_RSEQ_STATS) or this user may not read them.
    pub fn read(root: &Root) -> Option<SliceCounts> {
        let path = knobs::debugfs(root).ok()?.join("rseq/stats");
        SliceCounts::parse(&fs::read_to_string(path).ok()?)
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &SliceCounts) -> SliceCounts {
        SliceCounts {
            grants: self.grants.saturating_sub(before.grants),
            yields: self.yields.saturating_sub(before.yields),
            expired: self.expired.saturating_sub(before.expired),
            revoked: self.revoked.saturating_sub(before.revoked),
            aborted: self.aborted.saturating_sub(before.aborted),
        }
    }

    fn parse(text: &str) -> Option<SliceCounts> {
        let count = |name: &str| {
            text.lines().find_map(|line| {
                let (found, count) = line.split_once(':')?;
                (found.trim() == name).then(|| count.trim().parse().ok())?
            })
        };
        Some(SliceCounts {
            // A kernel without the extension counts other things of rseq.
            grants: count("sgrant")?,
            yields: count("syield").unwrap_or(0),
            expired: count("sexpir").unwrap_or(0),
            revoked: count("srevok").unwrap_or(0),
            aborted: count("sabort").unwrap_or(0),
        })
    }
}

/// How long a grant lasts, in nanoseconds; `None` where the kernel has no extension or this user may not see it.
pub fn slice_length_ns(root: &Root) -> Option<u64> {
    let path = knobs::debugfs(root).ok()?.join(SLICE_LENGTH);
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "exit:               12\nsgrant:            270\nsexpir:            200\n\
                         srevok:             21\nsyield:             49\nsabort:              0\n";

    #[test]
    fn counts_are_read_and_subtracted() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        assert_eq!((SliceCounts::read(&root), slice_length_ns(&root)), (None, None));
        let debugfs = tree.path().join("sys/kernel/debug/rseq");
        fs::create_dir_all(&debugfs).unwrap();
        fs::create_dir_all(tree.path().join("proc/self")).unwrap();
        let mounts = "24 1 0:7 / /sys/kernel/debug rw - debugfs debugfs rw\n";
        fs::write(tree.path().join("proc/self/mountinfo"), mounts).unwrap();
        fs::write(debugfs.join("stats"), STATS).unwrap();
        fs::write(debugfs.join("slice_ext_nsec"), "30000\n").unwrap();
        let counts = SliceCounts::read(&root).unwrap();
        assert_eq!((counts.grants, counts.yields, counts.revoked), (270, 49, 21));
        assert_eq!(counts.since(&counts), SliceCounts::default());
        assert_eq!(counts.since(&SliceCounts { grants: 70, ..SliceCounts::default() }).grants, 200);
        assert_eq!(slice_length_ns(&root), Some(30_000));
    }

    #[test]
    fn a_kernel_that_counts_other_things_has_no_counts_of_the_extension() {
        assert_eq!(SliceCounts::parse("exit: 12\nsignal: 3\n"), None);
        assert_eq!(SliceCounts::parse("sgrant: many\n"), None);
    }
}
