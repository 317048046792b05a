//! Tests that go for the locks of names and of open files.

use super::{Site, Test, broken};
use crate::Failure;
use crate::counting::Counted;
use rustix::fs::{Mode, OFlags, open, unlink};
use rustix::io::dup;
use std::ffi::{CStr, CString};

pub const TESTS: &[Test] = &[
    Test::new("dup1", "dup of an own file and close of the copy", dup1).with_files(2),
    Test::new("open1", "open and close of an own file, all in one directory", open1).with_files(1),
    Test::new("open2", "open and close of an own file, each in its own directory", open2).with_files(1),
    Test::new("open3", "open and close of the same file", open3).with_files(1),
    Test::new("unlink1", "creation, close and unlink of an own file, all in one directory", unlink1)
        .with_files(1),
    Test::new("unlink2", "creation, close and unlink of an own file, each in its own directory", unlink2)
        .with_files(1),
];

fn dup1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let file = site.directory()?.unnamed_file(&task.index().to_string())?;
        task.repeat(1, || dup(&file).map(drop).map_err(|error| broken("dup", error)))
    })
}

fn open1(site: &Site) -> Result<Counted, Failure> {
    opens(site, |task| task.to_string())
}

fn open2(site: &Site) -> Result<Counted, Failure> {
    opens(site, |task| format!("{task}/file"))
}

fn open3(site: &Site) -> Result<Counted, Failure> {
    opens(site, |_| "one".into())
}

/// Opens and closes the file of the name that `name` gives.
fn opens(site: &Site, name: impl Fn(usize) -> String) -> Result<Counted, Failure> {
    let paths = paths(site, name)?;
    for path in &paths {
        open_and_close(path, OFlags::RDWR | OFlags::CREATE)?;
    }
    site.run(|task| {
        let path = paths.get(task.index()).ok_or_else(|| broken("open", "no name"))?;
        task.repeat(1, || open_and_close(path, OFlags::RDWR))
    })
}

fn unlink1(site: &Site) -> Result<Counted, Failure> {
    unlinks(site, |task| task.to_string(), true)
}

fn unlink2(site: &Site) -> Result<Counted, Failure> {
    unlinks(site, |task| format!("{task}/file"), true)
}

/// Creates the file of the name that `name` gives, closes it and, except in tests that break the work, unlinks it.
fn unlinks(site: &Site, name: impl Fn(usize) -> String, and_unlink: bool) -> Result<Counted, Failure> {
    let paths = paths(site, name)?;
    site.run(|task| {
        let path = paths.get(task.index()).ok_or_else(|| broken("open", "no name"))?;
        task.repeat(1, || {
            open_and_close(path, OFlags::RDWR | OFlags::CREATE)?;
            match and_unlink {
                true => unlink(path).map_err(|error| broken("unlink", error)),
                false => Ok(()),
            }
        })?;
        match open(path, OFlags::PATH, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            found => Err(Failure::Invariant(format!("a file that was unlinked is still there: {found:?}"))),
        }
    })
}

#[inline]
fn open_and_close(path: &CStr, flags: OFlags) -> Result<(), Failure> {
    open(path, flags, Mode::RUSR | Mode::WUSR).map(drop).map_err(|error| broken("open", error))
}

/// The path of each task's file. The directories that lead there are made.
fn paths(site: &Site, name: impl Fn(usize) -> String) -> Result<Vec<CString>, Failure> {
    let inside = site.directory()?;
    let path = |task| {
        let name = name(task);
        if let Some((directory, _)) = name.split_once('/') {
            inside.directory(directory)?;
        }
        inside.path(&name)
    };
    (0..site.looping.tasks).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::patiently;
    use crate::scale::tests::site;
    use crate::shared::{Mode, Semantics};

    #[test]
    fn a_file_that_is_still_there_is_found() {
        alone("scale::files::tests::a_file_that_is_still_there_is_found", || {
            for mode in [Mode::Process, Mode::Thread] {
                let no_unlink = |runtime| {
                    let site = || site(mode, Semantics::Original, runtime);
                    leaving_nothing(|| unlinks(&site(), |task| format!("{task}/file"), false))
                };
                let error = patiently(no_unlink).unwrap_err().to_string();
                assert!(error.contains("still there"), "{error}");
            }
        });
    }
}
