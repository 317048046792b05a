//! Files that are written, read and copied in blocks of 1 KiB, in order or at random. Their blocks begin with their
//! numbers, which every reader checks.

use super::user::{User, failed};
use crate::Failure;
use crate::originals::{die_with_parent, failed_command};
use crate::random::Random;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BLOCK: usize = 1024;

/// Writes a file in order.
pub fn write(user: &mut User, synced: bool) -> Result<(), Failure> {
    let mut file = Blocks::create(user, "disk", synced)?;
    file.fill()?;
    file.remove()
}

/// Writes a file and reads it in order.
pub fn read(user: &mut User) -> Result<(), Failure> {
    let mut file = Blocks::create(user, "disk", false)?;
    file.fill()?;
    file.seek(0)?;
    (0..file.count).try_for_each(|number| file.read(number))?;
    file.remove()
}

/// Writes a file and reads as many blocks of it at random.
pub fn read_random(user: &mut User) -> Result<(), Failure> {
    let mut file = Blocks::create(user, "disk", false)?;
    file.fill()?;
    file.at_random(&mut user.random, Blocks::read)?;
    file.remove()
}

/// Writes a file and then as many blocks of it at random.
pub fn write_random(user: &mut User, synced: bool) -> Result<(), Failure> {
    let mut file = Blocks::create(user, "disk", synced)?;
    file.fill()?;
    file.at_random(&mut user.random, Blocks::write)?;
    file.remove()
}

/// Writes a file with `O_SYNC`, then reads as many blocks of it at random and writes each back.
pub fn update(user: &mut User) -> Result<(), Failure> {
    let mut file = Blocks::create(user, "disk", true)?;
    file.fill()?;
    file.at_random(&mut user.random, |file, number| {
        file.read(number)?;
        file.seek(number)?;
        file.write(number)
    })?;
    file.remove()
}

/// Writes a file and copies it block by block.
pub fn copy(user: &mut User, synced: bool) -> Result<(), Failure> {
    let mut source = Blocks::create(user, "disk", synced)?;
    source.fill()?;
    source.seek(0)?;
    let mut copy = Blocks::open(user, "copy", synced)?;
    for number in 0..source.count {
        source.read(number)?;
        copy.block.copy_from_slice(&source.block);
        copy.write(number)?;
    }
    source.remove()?;
    copy.remove()
}

/// A file of numbered blocks.
struct Blocks {
    path: PathBuf,
    file: File,
    count: u64,
    block: [u8; BLOCK],
}

impl Blocks {
    /// The first file of a job, before which the whole machine is synced where that was asked for.
    fn create(user: &User, name: &str, synced: bool) -> Result<Blocks, Failure> {
        if user.sync {
            sync_machine()?;
        }
        Blocks::open(user, name, synced)
    }

    fn open(user: &User, name: &str, synced: bool) -> Result<Blocks, Failure> {
        let path = user.path(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        if synced {
            options.custom_flags(libc::O_SYNC);
        }
        let file = options.open(&path).map_err(failed(in_words("make", &path)))?;
        let count = if synced { user.file_kib / 2 } else { user.file_kib };
        Ok(Blocks { path, file, count: count.max(1), block: [0x5a; BLOCK] })
    }

    fn fill(&mut self) -> Result<(), Failure> {
        (0..self.count).try_for_each(|number| self.write(number))
    }

    /// Does `job` at as many blocks as there are, each drawn at random.
    fn at_random(
        &mut self,
        random: &mut Random,
        job: impl Fn(&mut Blocks, u64) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..self.count {
            let number = random.below(self.count);
            self.seek(number)?;
            job(self, number)?;
        }
        Ok(())
    }

    fn seek(&mut self, number: u64) -> Result<(), Failure> {
        let moved = self.file.seek(SeekFrom::Start(number * BLOCK as u64));
        moved.map(drop).map_err(failed(in_words("seek in", &self.path)))
    }

    fn write(&mut self, number: u64) -> Result<(), Failure> {
        self.block[..8].copy_from_slice(&number.to_ne_bytes());
        self.file.write_all(&self.block).map_err(failed(in_words("write", &self.path)))
    }

    fn read(&mut self, number: u64) -> Result<(), Failure> {
        self.file.read_exact(&mut self.block).map_err(failed(in_words("read", &self.path)))?;
        match self.block[..8] == number.to_ne_bytes() {
            true => Ok(()),
            false => Err(Failure::Invariant(format!(
                "block {number} of {} has another number",
                self.path.display()
            ))),
        }
    }

    fn remove(self) -> Result<(), Failure> {
        let length = self.file.metadata().map_err(failed(in_words("look at", &self.path)))?.len();
        fs::remove_file(&self.path).map_err(failed(in_words("remove", &self.path)))?;
        match length == self.count * BLOCK as u64 {
            true => Ok(()),
            false => Err(Failure::Invariant(format!(
                "{} has {length} bytes, of {} KiB",
                self.path.display(),
                self.count
            ))),
        }
    }
}

fn sync_machine() -> Result<(), Failure> {
    let mut command = Command::new("sync");
    die_with_parent(command.stdin(Stdio::null()));
    let status = command.status().map_err(failed("sync could not be started"))?;
    failed_command("sync", status, "", "").map_or(Ok(()), Err)
}

fn in_words(what: &str, path: &Path) -> String {
    format!("cannot {what} {} (`directory` names another place)", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_another_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let user = User {
            index: 0,
            directory: directory.path().into(),
            file_kib: 4,
            sync: false,
            random: Random::new(1, 0),
        };
        let mut file = Blocks::open(&user, "disk", false).unwrap();
        file.fill().unwrap();
        file.seek(2).unwrap();
        let error = file.read(1).unwrap_err();
        assert!(matches!(error, Failure::Invariant(_)), "{error}");
        file.file.set_len(100).unwrap();
        assert!(matches!(file.remove(), Err(Failure::Invariant(_))));
    }
}
