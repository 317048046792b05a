//! Tests of locks: those of files, and those of the C library.

use super::mutex::{Guarded, Semaphore, increment};
use super::{Site, Test, broken, same};
use crate::Failure;
use crate::counting::Counted;
use crate::shared::{Mode, Semantics};
use crate::shared_memory::SharedValue;
use rustix::fs::{FlockOperation, OFlags, fcntl_lock, open};
use std::hint::black_box;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const TESTS: &[Test] = &[
    Test::new("lock1", "fcntl, a write lock on an own file and its release in turn", lock1).with_files(1),
    Test::new("lock2", "fcntl, a write lock on the same file and its release in turn", lock2)
        .with_files(1)
        .about(OF_PROCESSES),
    Test::new("pthread_mutex1", "lock and unlock of one mutex", pthread_mutex1).with_one_mutex(),
    Test::new("pthread_mutex2", "lock and unlock of an own mutex", pthread_mutex2),
    Test::new("pthread_mutex3", "addition to a common variable under one mutex", pthread_mutex3)
        .with_one_mutex(),
    Test::new("pthread_mutex4", "addition to a variable on the stack under one mutex", pthread_mutex4)
        .with_one_mutex(),
    Test::new("pthread_mutex5", "addition to a variable of the thread under one mutex", pthread_mutex5)
        .with_one_mutex(),
    Test::new("posix_semaphore1", "sem_wait and sem_post of an own semaphore", posix_semaphore1),
];

const OF_PROCESSES: &str = "The locks of fcntl belong to the process, so threads never wait for one another, though they \
                            contend for the list of locks of the file.";

fn lock1(site: &Site) -> Result<Counted, Failure> {
    file_locks(site, |index| site.directory()?.unnamed_file(&index.to_string()))
}

fn lock2(site: &Site) -> Result<Counted, Failure> {
    drop(site.directory()?.file("one")?);
    let path = site.directory()?.path("one")?;
    file_locks(site, |_| {
        open(path.as_c_str(), OFlags::RDWR, rustix::fs::Mode::empty()).map_err(|error| broken("open", error))
    })
}

fn file_locks(
    site: &Site,
    file: impl Fn(usize) -> Result<OwnedFd, Failure> + Sync,
) -> Result<Counted, Failure> {
    site.run(|task| {
        let file = file(task.index())?;
        task.repeat(2, || {
            let lock = |operation| fcntl_lock(&file, operation).map_err(|error| broken("fcntl", error));
            lock(FlockOperation::LockExclusive)?;
            lock(FlockOperation::Unlock)
        })
    })
}

fn pthread_mutex1(site: &Site) -> Result<Counted, Failure> {
    one_mutex(site, |guarded| site.run(|task| task.repeat(1, || guarded.locked(|_| ()))))
}

fn pthread_mutex2(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let guarded = Guarded::default();
        task.repeat(1, || guarded.locked(|_| ()))
    })
}

fn pthread_mutex3(site: &Site) -> Result<Counted, Failure> {
    common_variable(site, increment)
}

/// Does `update` with a variable that all share, which has to count what all did.
fn common_variable(site: &Site, update: impl Fn(&AtomicU64) + Sync) -> Result<Counted, Failure> {
    one_mutex(site, |guarded| {
        let private = site.mode() == Mode::Process && site.semantics == Semantics::Original;
        let counted = site.run(|task| {
            task.repeat(1, || guarded.locked(&update))?;
            // A process that has a copy of its own is the only one that sees it.
            if private { same("additions found", guarded.value(), task.counted()) } else { Ok(()) }
        })?;
        if !private {
            same("additions found", guarded.value(), counted.total)?;
        }
        Ok(counted)
    })
}

fn pthread_mutex4(site: &Site) -> Result<Counted, Failure> {
    one_mutex(site, |guarded| {
        site.run(|task| {
            let value = AtomicU64::new(0);
            // The variable must stay in memory.
            let value = black_box(&value);
            task.repeat(1, || guarded.locked(|_| increment(value)))?;
            same("additions found", value.load(Relaxed), task.counted())
        })
    })
}

fn pthread_mutex5(site: &Site) -> Result<Counted, Failure> {
    thread_local! {
        static VALUE: AtomicU64 = const { AtomicU64::new(0) };
    }
    one_mutex(site, |guarded| {
        site.run(|task| {
            task.repeat(1, || guarded.locked(|_| VALUE.with(increment)))?;
            same("additions found", VALUE.with(|value| value.load(Relaxed)), task.counted())
        })
    })
}

/// Lets tasks `use_it`, one mutex. With original semantics processes each get a copy of it; with strict ones they share it.
fn one_mutex(
    site: &Site,
    use_it: impl FnOnce(&Guarded) -> Result<Counted, Failure>,
) -> Result<Counted, Failure> {
    if site.mode() == Mode::Thread || site.semantics == Semantics::Original {
        return use_it(&Guarded::default());
    }
    let guarded = SharedValue::new(Guarded::default)
        .map_err(|error| Failure::Refused(format!("no memory for a mutex that processes share: {error}")))?;
    guarded.share_among_processes()?;
    use_it(&guarded)
}

fn posix_semaphore1(site: &Site) -> Result<Counted, Failure> {
    site.run(|task| {
        let semaphore = Semaphore::new()?;
        task.repeat(1, || semaphore.wait_and_post())?;
        match semaphore.value()? {
            1 => Ok(()),
            value => Err(Failure::Invariant(format!("the semaphore is {value} at the end and not 1"))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::patiently;
    use crate::scale::tests::site;

    #[test]
    fn additions_that_are_not_those_counted_are_found() {
        alone("scale::locks::tests::additions_that_are_not_those_counted_are_found", || {
            for mode in [Mode::Process, Mode::Thread] {
                for semantics in [Semantics::Original, Semantics::Strict] {
                    let run = |update: fn(&AtomicU64)| {
                        patiently(|runtime| {
                            let site = site(mode, semantics, runtime);
                            leaving_nothing(|| common_variable(&site, update))
                        })
                    };
                    assert!(run(increment).is_ok());
                    let twice = |value: &AtomicU64| {
                        increment(value);
                        increment(value);
                    };
                    let error = run(twice).unwrap_err().to_string();
                    assert!(error.contains("additions found"), "{error}");
                }
            }
        });
    }
}
