//! Threads that wait for a futex until somebody comes and measures how they are woken or moved.

use super::Setup;
use crate::shared::Semantics;
use crate::{Failure, crew};
use rustix::io::Errno;
use rustix::thread::{futex, gettid};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Lets all threads `wait` for `word` and, when they do, calls `measure`. Whatever came of that, `release` lets
/// go whoever is left, and its answer is returned beside what was measured.
///
/// # Errors
/// What the threads or `measure` failed with.
pub fn with_waiters<M, L>(
    setup: &Setup,
    word: &Word,
    wait: impl Fn() -> Result<(), Failure> + Sync,
    measure: impl FnOnce() -> Result<M, Failure>,
    release: impl FnOnce() -> L,
) -> Result<(M, L), Failure> {
    let sleepers = Sleepers::new(setup.threads);
    // As in the original, a waiter is bound by who starts it: where waiters bind themselves, the calls that wake them take
    // longer (benches/futex-wake-parallel).
    let ((measured, left), waiters) = crew::run_on(
        Some(&setup.cpus),
        setup.stack_bytes(),
        setup.threads,
        |index, gate| {
            sleepers.enlist(index);
            match gate.wait() {
                true => wait(),
                false => Ok(()),
            }
        },
        |gate| {
            gate.open();
            let asleep = match setup.semantics {
                // The original takes this to be enough.
                Semantics::Original => {
                    sleep(Duration::from_millis(100));
                    Ok(())
                }
                Semantics::Strict => sleepers.prove_asleep(word),
            };
            (asleep.and_then(|()| measure()), release())
        },
    )?;
    let measured = measured?;
    waiters.into_iter().collect::<Result<(), Failure>>()?;
    Ok((measured, left))
}

/// A futex with a cache line to itself, and 0 in it until it is released.
#[repr(align(128))]
#[derive(Default)]
pub struct Word {
    pub futex: AtomicU32,
    /// Threads whose wait ended without a wake-up.
    pub left_early: AtomicU32,
}

impl Word {
    /// Waits until woken; not at all where the value is no longer 0.
    pub fn wait(&self, flags: futex::Flags) -> Result<(), Errno> {
        loop {
            match futex::wait(&self.futex, flags, 0, None) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.left_early.fetch_add(1, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    }

    /// Whether, with `woken` of `threads` woken, nobody is left who could be.
    pub fn is_deserted(&self, woken: usize, threads: usize) -> bool {
        woken + self.left_early.load(Ordering::Relaxed) as usize >= threads
    }

    /// Lets go whoever waits or still will, so that no thread is left behind whatever went wrong. Returns how
    /// many were waiting.
    pub fn release(&self, flags: futex::Flags) -> usize {
        self.futex.store(1, Ordering::Release);
        // Waking cannot fail on an aligned word of our own.
        futex::wake(&self.futex, flags, i32::MAX as u32).unwrap_or(0)
    }
}

/// The threads that are to fall asleep.
struct Sleepers {
    threads: Vec<AtomicI32>,
}

/// How long a thread may take to fall asleep.
const PATIENCE: Duration = Duration::from_secs(60);

impl Sleepers {
    fn new(count: usize) -> Sleepers {
        Sleepers { threads: (0..count).map(|_| AtomicI32::new(0)).collect() }
    }

    /// Adds the calling thread, before it passes the gate.
    fn enlist(&self, index: usize) {
        if let Some(place) = self.threads.get(index) {
            place.store(gettid().as_raw_nonzero().get(), Ordering::Release);
        }
    }

    /// Waits until the kernel shows each thread off its CPU, inside a futex call on `word`.
    ///
    /// # Errors
    /// When the kernel does not show it, or when a thread does not fall asleep.
    fn prove_asleep(&self, word: &Word) -> Result<(), Failure> {
        let start = Instant::now();
        for thread in &self.threads {
            while !is_asleep(thread.load(Ordering::Acquire), word)? {
                if start.elapsed() > PATIENCE {
                    return Err(Failure::Refused("a waiter did not fall asleep within 60 s".into()));
                }
                sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }
}

/// Whether the kernel's account of a thread is `FUTEX WORD …`. The kernel says `running` unless the thread is
/// off its CPU.
fn is_asleep(thread: i32, word: &Word) -> Result<bool, Failure> {
    let task = format!("/proc/self/task/{thread}");
    let path = format!("{task}/syscall");
    let text =
        fs::read_to_string(&path).map_err(|error| match Path::new(&format!("{task}/stat")).exists() {
            true => Failure::Refused(format!(
                "{path}: {error}; without it no waiter can be proven asleep, so take semantics=original"
            )),
            false => Failure::Invariant("a waiter ended before it was woken".into()),
        })?;
    let mut fields = text.split_ascii_whitespace();
    Ok(fields.next() == Some(&libc::SYS_futex.to_string())
        && fields.next() == Some(&format!("{:#x}", word.futex.as_ptr() as usize)))
}
