//! What is read: nothing, a temporary file, or a file or block device that is there.

use crate::Failure;
use experiment::Params;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::env;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The value of `target` for operations that do nothing.
pub const NOP: &str = "nop";
const AUTO: &str = "auto";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Operations that do nothing.
    Nop,
    /// A temporary file of this many bytes.
    Auto {
        /// Its size.
        bytes: u64,
        /// O_DIRECT.
        direct: bool,
    },
    /// What is at this path.
    At {
        /// The path.
        path: PathBuf,
        /// O_DIRECT.
        direct: bool,
    },
}

impl Wanted {
    /// Whether nothing is to be read.
    pub fn is_nop(&self) -> bool {
        *self == Wanted::Nop
    }

    /// What the parameters ask for.
    pub fn new(params: &Params) -> Result<Wanted, Failure> {
        let direct = params.flag("direct")?;
        Ok(match params.text("target")? {
            NOP => Wanted::Nop,
            AUTO => {
                let (bytes, bs) = (params.count("size")? << 20, params.count("bs")?);
                if bytes < bs {
                    return Err(Failure::Refused(format!(
                        "a temporary file of {bytes} bytes has no room for one read of bs={bs}; take a larger size"
                    )));
                }
                Wanted::Auto { bytes, direct }
            }
            path => Wanted::At { path: path.into(), direct },
        })
    }
}

/// What is there to be read. A temporary file has no name and goes with the last who has it open.
#[derive(Debug)]
pub enum Target {
    /// Nothing.
    Nop,
    /// A file or a block device.
    Readable {
        /// Its path; of a temporary file one that holds as long as this process has it open.
        path: PathBuf,
        /// How messages call it.
        name: String,
        /// Its size in bytes.
        bytes: u64,
        /// O_DIRECT.
        direct: bool,
        /// What keeps a temporary file.
        _keeps: Option<File>,
    },
}

impl Target {
    /// Finds or makes what is wanted. A temporary file can be made of `bytes` instead, to see whether it works at all.
    ///
    /// # Errors
    /// When it cannot be had, and what would change that.
    pub fn open(wanted: &Wanted, instead_bytes: Option<u32>) -> Result<Target, Failure> {
        match wanted {
            Wanted::Nop => Ok(Target::Nop),
            Wanted::Auto { bytes, direct } => {
                let bytes = instead_bytes.map_or(*bytes, |bytes| u64::from(bytes).next_multiple_of(1 << 16));
                let file = temporary(bytes)?;
                Ok(Target::Readable {
                    path: format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
                    name: "the temporary file".into(),
                    bytes,
                    direct: *direct,
                    _keeps: Some(file),
                })
            }
            Wanted::At { path, direct } => {
                let name = path.display().to_string();
                let bytes = readable_bytes(&name, &open(path, &name, false)?)?;
                open(path, &name, *direct)?;
                Ok(Target::Readable { path: path.clone(), name, bytes, direct: *direct, _keeps: None })
            }
        }
    }

    /// An opened file of the target for one thread; `None` where nothing is read.
    pub fn file(&self) -> Result<Option<File>, Failure> {
        match self {
            Target::Nop => Ok(None),
            Target::Readable { path, name, direct, .. } => open(path, name, *direct).map(Some),
        }
    }

    /// How many blocks of `bs` bytes it has; 0 where nothing is read.
    ///
    /// # Errors
    /// When it is smaller than one.
    pub fn blocks(&self, bs: u32) -> Result<u64, Failure> {
        match self {
            Target::Nop => Ok(0),
            Target::Readable { name, bytes, .. } => match bytes / u64::from(bs) {
                0 => Err(Failure::Refused(format!("{name} has {bytes} bytes, and one read is of bs={bs}"))),
                blocks => Ok(blocks),
            },
        }
    }
}

fn open(path: &Path, name: &str, direct: bool) -> Result<File, Failure> {
    let direct_flag = if direct { OFlags::DIRECT } else { OFlags::empty() };
    match openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC | direct_flag, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        Err(Errno::INVAL) if direct => Err(Failure::Refused(format!(
            "{name} cannot be read past the page cache (O_DIRECT), as its file system has no such thing; set direct=off"
        ))),
        Err(error) => Err(Failure::Refused(format!("{name} cannot be opened to be read: {error}"))),
    }
}

/// The size of a file or block device.
fn readable_bytes(name: &str, mut file: &File) -> Result<u64, Failure> {
    let wrong = |why: &str| Failure::Refused(format!("{name} {why}; target takes a file or a block device"));
    let kind = fstat(file).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind.map_err(|error| wrong(&format!("cannot be looked at: {error}")))? {
        FileType::RegularFile | FileType::BlockDevice => {
            file.seek(SeekFrom::End(0)).map_err(|error| wrong(&format!("has no size: {error}")))
        }
        FileType::Directory => Err(wrong("is a directory")),
        _ => Err(wrong("is no file that has blocks")),
    }
}

/// A file without a name, which is gone when the last process that has it open ends, however it ends. Its blocks are
/// written, so that reading them reaches the device.
fn temporary(bytes: u64) -> Result<File, Failure> {
    let place = env::temp_dir();
    let refused = |why: String| {
        Failure::Refused(format!(
            "no temporary file of {bytes} bytes could be made in {}: {why}; set TMPDIR to a directory with room on \
             another file system, or name a file with target=PATH",
            place.display()
        ))
    };
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file: File = openat(CWD, &place, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| refused(error.to_string()))?
        .into();
    let mut fill = || {
        let chunk = vec![0x5a; 1 << 16];
        let mut left = bytes;
        while left > 0 {
            let length = left.min(chunk.len() as u64);
            file.write_all(&chunk[..length as usize])?;
            left -= length;
        }
        // What is not written yet would be written while it is measured.
        file.sync_data()
    };
    fill().map_err(|error| refused(error.to_string()))?;
    Ok(file)
}
