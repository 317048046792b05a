//! A spin lock per CPU, which makes it expensive to preempt a thread in the middle of its work.

use crate::Failure;
use crate::shared::Semantics;
use rustix::thread::sched_getcpu;
use std::sync::atomic::{AtomicU8, Ordering};

/// The locks, each as far from the next as the semantics say: those of the original, 48 bytes apart, share cache lines.
#[derive(Debug)]
pub struct CpuLocks {
    bytes: Vec<AtomicU8>,
    distance: usize,
}

impl CpuLocks {
    /// A lock for each CPU id up to the highest of `cpus`, which may have holes.
    pub fn new(cpus: &[u32], semantics: Semantics) -> CpuLocks {
        let count = cpus.iter().max().map_or(0, |highest| *highest as usize + 1);
        let distance = match semantics {
            Semantics::Original => 48,
            Semantics::Strict => 128,
        };
        CpuLocks { bytes: (0..count * distance).map(|_| AtomicU8::new(0)).collect(), distance }
    }

    /// Takes the lock of the CPU that the thread is on when it has got it; `None` if `gives_up` became true meanwhile.
    /// `pause` is what it does between two tries.
    ///
    /// # Errors
    /// When the thread is on a CPU that the trial may not use.
    pub fn lock(&self, gives_up: impl Fn() -> bool, pause: impl Fn()) -> Result<Option<Locked<'_>>, Failure> {
        loop {
            let cpu = sched_getcpu();
            let lock = self.of(cpu)?;
            while lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
                if gives_up() {
                    return Ok(None);
                }
                pause();
            }
            let locked = Locked(lock);
            if sched_getcpu() == cpu {
                return Ok(Some(locked));
            }
        }
    }

    fn of(&self, cpu: usize) -> Result<&AtomicU8, Failure> {
        self.bytes.get(cpu * self.distance).ok_or_else(|| {
            Failure::Invariant(format!("a worker ran on CPU {cpu}, which this trial may not use"))
        })
    }
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Locked<'a>(&'a AtomicU8);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_cpu_ids_have_locks_and_others_none() {
        for semantics in [Semantics::Original, Semantics::Strict] {
            let locks = CpuLocks::new(&[0, 7, 300], semantics);
            assert!(locks.of(300).is_ok());
            let error = locks.of(301).unwrap_err().to_string();
            assert!(error.contains("CPU 301"), "{error}");
        }
    }

    #[test]
    fn a_lock_is_free_when_its_holder_has_dropped_it() {
        let cpus = machine::cpus::allowed().unwrap().to_vec();
        let locks = CpuLocks::new(&cpus, Semantics::Strict);
        for _ in 0..2 {
            assert!(locks.lock(|| false, || ()).unwrap().is_some());
        }
        assert!(locks.bytes.iter().all(|byte| byte.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn who_waits_for_a_lock_can_give_up() {
        let cpus = machine::cpus::allowed().unwrap().to_vec();
        let locks = CpuLocks::new(&cpus, Semantics::Original);
        for byte in &locks.bytes {
            byte.store(1, Ordering::Relaxed);
        }
        assert!(locks.lock(|| true, || ()).unwrap().is_none());
    }
}
