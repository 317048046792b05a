//! Names in directories: made, linked, listed, searched.

use super::user::{User, failed};
use crate::Failure;
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, open, seek};
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One file, 1000 times made and closed.
pub fn create_and_close(user: &mut User) -> Result<(), Failure> {
    let path = user.path("creat");
    for _ in 0..1000 {
        drop(File::create(&path).map_err(failed(in_words("make", &path)))?);
    }
    // It has to be there, or this fails.
    fs::remove_file(&path).map_err(failed(in_words("remove", &path)))
}

/// A file under eight names, of which seven are removed and linked again, 100 times.
pub fn links(user: &mut User) -> Result<(), Failure> {
    let first = user.path("link0");
    drop(File::create(&first).map_err(failed(in_words("make", &first)))?);
    let others: Vec<_> = (1..8).map(|number| user.path(&format!("link{number}"))).collect();
    let link = |other: &Path| fs::hard_link(&first, other).map_err(failed(in_words("link", other)));
    let unlink = |other: &Path| fs::remove_file(other).map_err(failed(in_words("remove", other)));
    others.iter().try_for_each(|other| link(other))?;
    for _ in 0..100 {
        others.iter().try_for_each(|other| unlink(other).and_then(|()| link(other)))?;
    }
    let names = fs::metadata(&first).map_err(failed(in_words("look at", &first)))?.nlink();
    others.iter().try_for_each(|other| unlink(other))?;
    unlink(&first)?;
    match names {
        8 => Ok(()),
        _ => Err(Failure::Invariant(format!("the file has {names} names, of 8"))),
    }
}

/// 10,000 entries of /bin, from its start again whenever it ends.
pub fn read_directory() -> Result<(), Failure> {
    let bin = Path::new("/bin");
    let directory = open(bin, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed(in_words("open", bin)))?;
    let mut left = 10_000_u32;
    // As large as the buffer of the C library's readdir.
    let mut buffer = [MaybeUninit::uninit(); 32 << 10];
    while left > 0 {
        let before = left;
        let mut entries = RawDir::new(&directory, &mut buffer);
        while left > 0
            && let Some(entry) = entries.next()
        {
            entry.map_err(failed(in_words("read", bin)))?;
            left -= 1;
        }
        if left == before {
            return Err(Failure::Refused("/bin has no entries".into()));
        }
        seek(&directory, SeekFrom::Start(0)).map_err(failed(in_words("rewind", bin)))?;
    }
    Ok(())
}

/// 20 files in a directory of their own, of which each is looked for 10 times, from the directory's start.
pub fn search(user: &mut User) -> Result<(), Failure> {
    const FILES: usize = 20;
    let directory = user.path("search");
    fs::create_dir(&directory).map_err(failed(in_words("make", &directory)))?;
    let names: Vec<String> = (0..FILES).map(|number| format!("file{number}")).collect();
    for name in &names {
        let path = directory.join(name);
        drop(File::create(&path).map_err(failed(in_words("make", &path)))?);
    }
    let mut found = 0;
    for name in names.iter().cycle().take(10 * FILES) {
        let entries = fs::read_dir(&directory).map_err(failed(in_words("read", &directory)))?;
        let entry = entries.flatten().find(|entry| entry.file_name() == name.as_str());
        found += usize::from(entry.is_some_and(|entry| entry.metadata().is_ok_and(|file| file.len() == 0)));
    }
    fs::remove_dir_all(&directory).map_err(failed(in_words("remove", &directory)))?;
    match found == 10 * FILES {
        true => Ok(()),
        false => Err(Failure::Invariant(format!("{found} files were found, of {}", 10 * FILES))),
    }
}

fn in_words(what: &str, path: &Path) -> String {
    format!("cannot {what} {}", path.display())
}
