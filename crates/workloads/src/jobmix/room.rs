//! Whether all users fit, before the first of them is forked.

use super::{Plan, ipc};
use crate::Failure;
use crate::originals::on_path;
use crate::shared::room_for;
use machine::{Root, SystemVNeed};

/// Files that a user has open at once, with room to spare.
const FILES_PER_USER: u64 = 16;

impl Plan {
    /// Whether there is room for all users, as far as that is known before the first of them.
    pub(super) fn room(&self) -> Result<(), Failure> {
        let users = self.users as u64;
        let mut programs: Vec<&str> = self.mix.sub_tests().flat_map(|test| test.programs).copied().collect();
        if self.sync {
            programs.push("sync");
        }
        if let Some(absent) = programs.into_iter().find(|program| on_path(program).is_none()) {
            return Err(Failure::Refused(format!(
                "`{absent}` is not on PATH, and this mix starts it; install it or take another mix"
            )));
        }
        let uses = |name: &str| self.mix.sub_tests().any(|test| test.name.contains(name));
        if uses("shared_memory") {
            let need = SystemVNeed { sets: users, segments: users, segment_bytes: ipc::SEGMENT_BYTES as u64 };
            machine::room_for_system_v(&Root::real(), &need)
                .map_err(|error| Failure::Refused(error.to_string()))?;
        }
        if uses("disk_") {
            self.room_on_disk()?;
        }
        let started = self.mix.sub_tests().map(|test| test.processes).max().unwrap_or(0);
        let per_user = 1 + started.max(u64::from(self.sync));
        room_for(0, users * per_user, FILES_PER_USER)
    }

    fn room_on_disk(&self) -> Result<(), Failure> {
        let in_words = |error| format!("cannot use the directory {}: {error}", self.directory.display());
        let disk = rustix::fs::statvfs(&self.directory).map_err(|error| Failure::Refused(in_words(error)))?;
        let free_kib = u128::from(disk.f_bavail) * u128::from(disk.f_frsize) / 1024;
        // The copies need two files at a time.
        let wanted_kib = u128::from(self.file_kib) * 2 * self.users as u128;
        match wanted_kib <= free_kib {
            true => Ok(()),
            false => Err(Failure::Refused(format!(
                "{} has {free_kib} KiB free, and the files of {} users may need {wanted_kib}; take a smaller \
                 file-kib or pool-kib, or another `directory`",
                self.directory.display(),
                self.users
            ))),
        }
    }
}
