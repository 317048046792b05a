//! Tests that go for the locks of an address space: page faults, mappings, the break, flushes of the TLB.

use super::{Site, Test, broken, same};
use crate::Failure;
use crate::counting::Counted;
use crate::mapping::Mapping;
use crate::shared::Semantics;
use machine::Whose;
use rustix::fs::ftruncate;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};
use rustix::param::page_size;
use std::os::fd::OwnedFd;

const MIB: usize = 1 << 20;
/// What most of them map.
const MAPPED: usize = 128 * MIB;

pub const TESTS: &[Test] = &[
    Test::new("page_fault1", "first write to a page of 128 MiB of anonymous memory", page_fault1)
        .about(HUGE_PAGES)
        .with_memory(MAPPED as u64),
    Test::new(
        "page_fault2",
        "first write to a page of a private mapping of an own file of 128 MiB",
        page_fault2,
    )
    .about(HUGE_PAGES)
    .with_files(1)
    .with_space(MAPPED as u64)
    .with_memory(2 * MAPPED as u64),
    Test::new(
        "page_fault3",
        "first write to a page of a shared mapping of an own file of 128 MiB",
        page_fault3,
    )
    .about(HUGE_PAGES)
    .with_files(1)
    .with_space(MAPPED as u64)
    .with_memory(MAPPED as u64),
    Test::new("mmap1", "mmap and munmap of 128 MiB of anonymous memory", mmap1),
    Test::new("mmap2", "mmap and munmap of an own file of 128 MiB", mmap2).with_files(1),
    Test::new("brk1", "brk, up by a page and down again in turn", brk1).not_by_threads(BREAK_OF_THREADS),
    Test::new("brk2", "brk, up by a page and down again in turn, beyond a first page of its own", brk2)
        .not_by_threads(BREAK_OF_THREADS),
    Test::new(
        "tlb_flush1",
        "write to and MADV_DONTNEED of a page of a private mapping of an own file",
        tlb_flush1,
    )
    .with_files(1)
    .with_space(MAPPED as u64)
    .with_memory(MAPPED as u64),
    Test::new("tlb_flush2", "write to and MADV_DONTNEED of a page of anonymous memory", tlb_flush2),
    Test::new(
        "tlb_flush3",
        "write to and MADV_DONTNEED of a page of a shared mapping of an own file",
        tlb_flush3,
    )
    .with_files(1)
    .with_space(MAPPED as u64)
    .with_memory(MAPPED as u64),
];

const HUGE_PAGES: &str = "Where a fault brings a huge page all its pages are counted; with strict semantics the kernel \
                          is advised against huge pages.";

const BREAK_OF_THREADS: &str = "The threads of a process have one break, and each would set it to a value of its own: \
                                what an operation does then is a matter of chance, and memory in use would be \
                                unmapped. So it is not done by threads.";

/// What is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Anonymous,
    PrivateFile,
    SharedFile,
}

impl Source {
    /// The file of a task, if it has one.
    fn file(self, site: &Site, index: usize) -> Result<Option<OwnedFd>, Failure> {
        match self {
            Source::Anonymous => Ok(None),
            _ => site.directory()?.file_with_space(&index.to_string(), MAPPED as u64).map(Some),
        }
    }

    fn flags(self) -> MapFlags {
        if self == Source::SharedFile { MapFlags::SHARED } else { MapFlags::PRIVATE }
    }
}

fn page_fault1(site: &Site) -> Result<Counted, Failure> {
    page_faults(site, Source::Anonymous, page_size())
}

fn page_fault2(site: &Site) -> Result<Counted, Failure> {
    page_faults(site, Source::PrivateFile, page_size())
}

fn page_fault3(site: &Site) -> Result<Counted, Failure> {
    page_faults(site, Source::SharedFile, page_size())
}

/// Pages that one fault can bring at most: those of a huge page.
const PAGES_PER_FAULT: u64 = 512;

/// Writes to every page of a new mapping and unmaps it. `step` is that from page to page, except in tests that
/// break the work.
fn page_faults(site: &Site, source: Source, step: usize) -> Result<Counted, Failure> {
    let pages = MAPPED / page_size();
    site.run(|task| {
        let file = source.file(site, task.index())?;
        let before = faults_of_this_thread();
        task.until_stopped(|| {
            let mapping = map(MAPPED, file.as_ref(), source.flags())?;
            if site.semantics == Semantics::Strict {
                mapping.advise(0, MAPPED, Advice::LinuxNoHugepage).or_else(without_huge_pages)?;
            }
            for page in 0..pages {
                mapping.write(page * step, 0);
                task.count(1);
            }
            Ok(())
        })?;
        let faults = faults_of_this_thread() - before;
        if faults < task.counted() / PAGES_PER_FAULT {
            return Err(Failure::Invariant(format!(
                "{} pages were written, with {faults} faults",
                task.counted()
            )));
        }
        Ok(())
    })
}

/// A kernel that has no huge pages does not know the advice.
fn without_huge_pages(error: Errno) -> Result<(), Failure> {
    match error {
        Errno::INVAL => Ok(()),
        error => Err(broken("madvise", error)),
    }
}

fn faults_of_this_thread() -> u64 {
    machine::rusage(Whose::Thread).map_or(0, |rusage| rusage.faults)
}

#[inline]
fn map(bytes: usize, file: Option<&OwnedFd>, flags: MapFlags) -> Result<Mapping, Failure> {
    let mapping = match file {
        None => Mapping::anonymous(bytes, flags),
        Some(file) => Mapping::of_file(bytes, flags, file),
    };
    mapping.map_err(|error| broken("mmap", error))
}

fn mmap1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| task.repeat(1, || map(MAPPED, None, MapFlags::PRIVATE).map(drop)))
}

fn mmap2(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let file = site.directory()?.unnamed_file(&task.index().to_string())?;
        // Nobody touches it, so it needs no space.
        ftruncate(&file, MAPPED as u64).map_err(|error| broken("ftruncate", error))?;
        task.repeat(1, || map(MAPPED, Some(&file), MapFlags::PRIVATE).map(drop))
    })
}

fn brk1(site: &Site) -> Result<Counted, Failure> {
    breaks(site, 0)
}

fn brk2(site: &Site) -> Result<Counted, Failure> {
    breaks(site, page_size())
}

/// Moves the break up and down by a page, from `first` bytes beyond where it is.
fn breaks(site: &Site, first: usize) -> Result<Counted, Failure> {
    site.run(|task| {
        let start = current_break();
        // Nothing is allocated between here and the end of the loop.
        let (low, high) = (start + first, start + first + page_size());
        set_break(low)?;
        task.repeat(2, || {
            set_break(high)?;
            set_break(low)
        })?;
        let end = current_break();
        set_break(start)?;
        same("is the break at the end", end as u64, low as u64)
    })
}

fn current_break() -> usize {
    // SAFETY: a step of 0 changes nothing.
    unsafe { libc::sbrk(0) as usize }
}

/// Sets the break, to where it was when the process began its loop, or above.
fn set_break(place: usize) -> Result<(), Failure> {
    // SAFETY: the process has a single thread, which is between two values of the break that it was itself the last to
    // set; what lies above the lower is used by nobody.
    match unsafe { libc::brk(place as *mut libc::c_void) } {
        0 => Ok(()),
        _ => Err(broken("brk", std::io::Error::last_os_error())),
    }
}

fn tlb_flush1(site: &Site) -> Result<Counted, Failure> {
    flushes(site, Source::PrivateFile, MAPPED, Advice::LinuxDontNeed)
}

fn tlb_flush2(site: &Site) -> Result<Counted, Failure> {
    flushes(site, Source::Anonymous, MIB, Advice::LinuxDontNeed)
}

fn tlb_flush3(site: &Site) -> Result<Counted, Failure> {
    flushes(site, Source::SharedFile, MAPPED, Advice::LinuxDontNeed)
}

/// Writes to every page of a new mapping and gives the kernel `advice` about it, which makes it drop the page, except in
/// tests that break the work.
fn flushes(site: &Site, source: Source, bytes: usize, advice: Advice) -> Result<Counted, Failure> {
    // What is dropped of a shared file is still in the file.
    let expected = u8::from(source == Source::SharedFile);
    site.run(|task| {
        let file = source.file(site, task.index())?;
        let page_bytes = page_size();
        task.until_stopped(|| {
            let mapping = map(bytes, file.as_ref(), source.flags())?;
            for place in (0..bytes).step_by(page_bytes) {
                mapping.write(place, 1);
                mapping.advise(place, page_bytes, advice).map_err(|error| broken("madvise", error))?;
                if mapping.read(place) != Some(expected) {
                    return Err(Failure::Invariant(
                        "a page that was dropped holds what it held before".into(),
                    ));
                }
                task.count(1);
            }
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::{UNTIL_IT_FAILS, patiently};
    use crate::scale::tests::site;
    use crate::shared::Mode;

    #[test]
    fn pages_that_were_not_touched_or_not_dropped_are_found() {
        alone("scale::memory::tests::pages_that_were_not_touched_or_not_dropped_are_found", || {
            for mode in [Mode::Process, Mode::Thread] {
                let one_page_only = |runtime| {
                    let site = site(mode, Semantics::Original, runtime);
                    leaving_nothing(|| page_faults(&site, Source::Anonymous, 0))
                };
                let error = patiently(one_page_only).unwrap_err().to_string();
                assert!(error.contains("pages were written, with"), "{error}");
                let site = site(mode, Semantics::Original, UNTIL_IT_FAILS);
                let no_flush = || flushes(&site, Source::Anonymous, MIB, Advice::Normal);
                let error = leaving_nothing(no_flush).unwrap_err().to_string();
                assert!(error.contains("holds what it held before"), "{error}");
            }
        });
    }
}
