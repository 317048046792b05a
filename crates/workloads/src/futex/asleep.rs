use super::Word;
use crate::Failure;
use rustix::thread::gettid;
use std::fs;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// The threads that are to fall asleep.
pub struct Sleepers {
    threads: Vec<AtomicI32>,
}

/// How long a thread may take to fall asleep.
const PATIENCE: Duration = Duration::from_secs(60);

impl Sleepers {
    pub fn new(count: usize) -> Sleepers {
        Sleepers { threads: (0..count).map(|_| AtomicI32::new(0)).collect() }
    }

    /// Adds the calling thread, before it passes the gate.
    pub fn enlist(&self, index: usize) {
        if let Some(place) = self.threads.get(index) {
            place.store(gettid().as_raw_nonzero().get(), Ordering::Release);
        }
    }

    /// Waits until the kernel shows each thread off its CPU, inside a futex call on `word`.
    ///
    /// # Errors
    /// When the kernel does not show it, or when a thread does not fall asleep.
    pub fn prove_asleep(&self, word: &Word) -> Result<(), Failure> {
        let start = Instant::now();
        for thread in &self.threads {
            while !is_asleep(thread.load(Ordering::Acquire), word)? {
                if start.elapsed() > PATIENCE {
                    return Err(Failure::Refused("a waiter did not fall asleep within 60 s".into()));
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }
}

/// Whether the kernel's account of a thread is `FUTEX WORD …`. The kernel says `running` unless the thread is off
/// its CPU.
fn is_asleep(thread: i32, word: &Word) -> Result<bool, Failure> {
    let path = format!("/proc/self/task/{thread}/syscall");
    let text = fs::read_to_string(&path).map_err(|error| {
        Failure::Refused(format!(
            "{path}: {error}; without it the waiters cannot be proven asleep, take semantics=original"
        ))
    })?;
    let mut fields = text.split_ascii_whitespace();
    Ok(fields.next() == Some(&libc::SYS_futex.to_string())
        && fields.next() == Some(&format!("{:#x}", word.futex.as_ptr() as usize)))
}
