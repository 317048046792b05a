//! Whether all users fit, before the first of them is forked.

use super::{Plan, ipc};
use crate::Failure;
use crate::originals::{absent, on_path};
use crate::shared::room_for;
use experiment::counted;
use machine::{Root, Scratch, SystemVNeed};

/// Files that a user has open at once, with room to spare.
const FILES_PER_USER: u64 = 16;

impl Plan {
    /// Whether there is room for all users, whose files are in `scratch` if they have any, as far as that is known before
    /// the first of them.
    pub(super) fn room(&self, scratch: Option<&Scratch>) -> Result<(), Failure> {
        let users = self.users as u64;
        let uses = |name: &str| self.mix.sub_tests().any(|test| test.name.contains(name));
        let syncs = self.sync && uses("disk_");
        let mut programs: Vec<&str> = self.mix.sub_tests().flat_map(|test| test.programs).copied().collect();
        if syncs {
            programs.push("sync");
        }
        if let Some(program) = programs.into_iter().find(|program| on_path(program).is_none()) {
            let advice =
                format!("`{program}` is not on PATH, and this mix starts it; install it or take another mix");
            return Err(absent(program, &advice));
        }
        if uses("shared_memory") {
            let need = SystemVNeed { sets: users, segments: users, segment_bytes: ipc::SEGMENT_BYTES as u64 };
            machine::room_for_system_v(&Root::real(), &need)
                .map_err(|error| Failure::Refused(error.to_string()))?;
        }
        if let Some(scratch) = scratch.filter(|_| uses("disk_")) {
            self.room_on_disk(scratch)?;
        }
        let started = self.mix.sub_tests().map(|test| test.processes).max().unwrap_or(0);
        let per_user = 1 + started.max(u64::from(syncs));
        room_for(0, users * per_user, FILES_PER_USER)
    }

    fn room_on_disk(&self, scratch: &Scratch) -> Result<(), Failure> {
        let directory = self.directory.display();
        let free = scratch.free_bytes().map_err(|error| {
            Failure::Refused(format!("how much is free in {directory} is not known: {error}"))
        })?;
        // The copies need two files at a time.
        let wanted = u128::from(self.file_kib) * 1024 * 2 * self.users as u128;
        match wanted <= free.into() {
            true => Ok(()),
            false => Err(Failure::Refused(format!(
                "{directory} has {} KiB free, and the files of {} may need {}; take a smaller file-kib or pool-kib, or \
                 another `directory`",
                free / 1024,
                counted(self.users, "user"),
                wanted / 1024
            ))),
        }
    }
}
