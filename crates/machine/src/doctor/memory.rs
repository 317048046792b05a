//! Memory for trials and guests, and space for runs.

use super::Finding;
use crate::memory::meminfo_bytes;
use crate::{Root, memory_for};
use rustix::fs::{Access, access, statvfs};
use std::path::Path;

const MEMORY: &str = "memory";
const SPACE: &str = "space for runs";

/// A guest of 1 GiB and a workload beside it.
const MEMORY_WANTED: u64 = 2 << 30;
/// Runs with profiles take some hundred MB each.
const SPACE_WANTED: u64 = 1 << 30;

/// How much memory can be had.
pub(super) fn memory(root: &Root) -> Finding {
    let (Some(total), Some(available)) =
        (meminfo_bytes(root, "MemTotal:"), meminfo_bytes(root, "MemAvailable:"))
    else {
        return Finding::unknown(MEMORY, "/proc/meminfo does not say how much is available");
    };
    let seen = format!("{} MiB of {} MiB available", available >> 20, total >> 20);
    match memory_for(root, MEMORY_WANTED) {
        Ok(()) => Finding::ok(MEMORY, seen),
        Err(shortage) => {
            let wanted = MEMORY_WANTED >> 20;
            let more = format!("{seen}; {} MiB by {}", shortage.available_bytes >> 20, shortage.said_by);
            Finding::limited(MEMORY, more).advice(format!(
                "A guest and a workload beside it want {wanted} MiB: end what holds memory, raise the limit, or give \
                 the guest less (vm.memory=)."
            ))
        }
    }
}

/// Whether runs can be kept in `home`, which need not exist yet.
pub(super) fn space(home: Option<&Path>) -> Finding {
    let Some(home) = home else {
        return Finding::unknown(SPACE, "there is no home for runs").command("export KDUEL_HOME=$HOME/kduel");
    };
    let place = home.ancestors().find(|place| place.exists()).unwrap_or(home);
    let shown = home.display();
    if let Err(error) = access(place, Access::WRITE_OK | Access::EXEC_OK) {
        return Finding::no(SPACE, format!("cannot write in {}: {error}", place.display()))
            .command("export KDUEL_HOME=$HOME/kduel");
    }
    match statvfs(place) {
        Err(error) => Finding::unknown(SPACE, format!("{shown}: {error}")),
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let seen = format!("{} MiB free in {shown}", free >> 20);
            match free >= SPACE_WANTED {
                true => Finding::ok(SPACE, seen),
                false => Finding::limited(SPACE, seen).advice(
                    "Remove old runs (kduel list runs), or point KDUEL_HOME at a larger file system.",
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_home_that_does_not_exist_yet_is_judged_by_where_it_would_be() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("not/there/yet");
        let finding = space(Some(&home));
        assert_ne!(finding.state, State::No, "{finding:?}");
        assert!(finding.seen.contains("not/there/yet"), "{finding:?}");
        assert!(!home.exists(), "looking makes nothing");
        assert_eq!(space(None).state, State::Unknown);
        // A file cannot hold runs; the file system says so.
        std::fs::write(top.path().join("file"), "").unwrap();
        assert_eq!(space(Some(&top.path().join("file/below"))).state, State::No);
    }
}
