use super::{broken, memory_file, timed, whole, write_all};
use crate::Failure;
use crate::clock::now_ns;
use crate::inversion::path::Path;
use crate::times::Times;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{pread, pwrite};
use std::os::fd::OwnedFd;

/// The rwsem of an inode: the owner overwrites a file, the waiter writes 8 bytes behind that.
pub struct Inode {
    file: OwnedFd,
    bytes: usize,
}

/// What the waiter writes.
const WORD_BYTES: usize = 8;

impl Inode {
    /// A file for so many bytes, in this directory, or in memory where it is empty. It has no name.
    pub fn new(bytes: usize, directory: &str) -> Result<Inode, Failure> {
        if directory.is_empty() {
            return Ok(Inode { file: memory_file(bytes)?, bytes });
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(directory, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
            Failure::Refused(format!(
                "no file without a name can be made in `directory={directory}`: {error}; name a directory that may be \
                 written, on a file system that has them (ext4, xfs, btrfs, tmpfs)"
            ))
        })?;
        let inode = Inode { file, bytes };
        whole("write", write_all(&inode.file, &vec![1; bytes])?, bytes)?;
        Ok(inode)
    }

    /// The word at `offset`, which was written last.
    fn word(&self, offset: usize) -> Result<u64, Failure> {
        let mut word = [0; WORD_BYTES];
        let got = pread(&self.file, &mut word, offset as u64).map_err(|error| broken("read", error))?;
        whole("read", got, WORD_BYTES)?;
        Ok(u64::from_ne_bytes(word))
    }
}

impl Path for Inode {
    fn owner(&self) -> impl FnMut(&mut Times) -> Result<(), Failure> {
        let (mut buffer, mut count) = (vec![1; self.bytes], 0_u64);
        move |holds| {
            count += 1;
            // The last word is the number of the write, so that it can be seen afterwards that it was written to its end.
            if let Some(last) = buffer.last_chunk_mut::<WORD_BYTES>() {
                *last = count.to_ne_bytes();
            }
            let put =
                timed(holds, || pwrite(&self.file, &buffer, 0)).map_err(|error| broken("write", error))?;
            whole("write", put, self.bytes)
        }
    }

    fn waiter(&self) -> impl FnMut() -> Result<u64, Failure> {
        let (offset, mut count) = (self.bytes as u64, 0_u64);
        move || {
            count += 1;
            let start_ns = now_ns();
            let put =
                pwrite(&self.file, &count.to_ne_bytes(), offset).map_err(|error| broken("write", error))?;
            let wait_ns = now_ns().saturating_sub(start_ns);
            whole("write", put, WORD_BYTES).map(|()| wait_ns)
        }
    }

    fn check(self, holds: u64, waits: u64) -> Result<(), Failure> {
        for (who, calls, offset) in [("owner", holds, self.bytes - WORD_BYTES), ("waiter", waits, self.bytes)]
        {
            let found = if calls == 0 { 0 } else { self.word(offset)? };
            if found != calls {
                return Err(Failure::Invariant(format!(
                    "the {who} wrote {calls} times, but the file has its write number {found}"
                )));
            }
        }
        Ok(())
    }
}
