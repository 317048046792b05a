//! A crew of threads that start together.

pub use crate::gate::Gate;
use crate::shared::nth_cpu;
use crate::{Failure, threads};
use rustix::thread::futex;
use std::io;

/// Thousands of threads must fit; the work of a member needs no deep stack.
pub(crate) const STACK_BYTES: usize = 256 * 1024;

/// Starts `count` threads that run `body(index, gate)`, waits until all have called [`Gate::wait`], and then
/// calls `conduct`, which must open the gate. Returns what `conduct` returned and what each thread did, by
/// index.
///
/// # Errors
/// When a thread cannot be started, or ends before all have called [`Gate::wait`]: the others are released, leave and are
/// joined first. When a thread panics.
pub fn run<T: Send, R>(
    count: usize,
    body: impl Fn(usize, &Gate) -> T + Sync,
    conduct: impl FnOnce(&Gate) -> R,
) -> Result<(R, Vec<T>), Failure> {
    run_on(None, STACK_BYTES, count, body, conduct)
}

/// As [`run`], with stacks of `stack_bytes`, and where `cpus` are given, each thread on its CPU only: the (index mod n)-th of
/// n.
///
/// # Errors
/// As [`run`], and when a thread may not run on its CPU.
pub fn run_on<T: Send, R>(
    cpus: Option<&[u32]>,
    stack_bytes: usize,
    count: usize,
    body: impl Fn(usize, &Gate) -> T + Sync,
    conduct: impl FnOnce(&Gate) -> R,
) -> Result<(R, Vec<T>), Failure> {
    let gate = Gate::new(count as u32, futex::Flags::PRIVATE);
    let (gate, body) = (&gate, &body);
    threads::scope(stack_bytes, |crew| {
        for index in 0..count {
            let work = move || {
                let _end = End(gate);
                body(index, gate)
            };
            let cpu = cpus.map(|cpus| nth_cpu(cpus, index)).transpose();
            let started = cpu.and_then(|cpu| {
                crew.start_on(cpu.as_ref(), work).map_err(|error| match cpu {
                    Some(cpu) if error.kind() == io::ErrorKind::InvalidInput => {
                        Failure::Refused(format!("no thread may run on CPU {cpu}: {error}"))
                    }
                    _ => Failure::Spawn { nth: index + 1, count, why: error.to_string() },
                })
            });
            if let Err(failure) = started {
                gate.cancel();
                return Err(failure);
            }
        }
        while !gate.wait_for_all(None) {}
        let conducted = (!gate.is_cancelled()).then(|| conduct(gate));
        let results = crew.join().into_iter().map(|ended| {
            ended.into_result().ok_or_else(|| Failure::Invariant("a thread of the workload panicked".into()))
        });
        let results = results.collect::<Result<Vec<T>, Failure>>()?;
        let early = || Failure::Invariant("a thread of the workload ended before all had started".into());
        Ok((conducted.ok_or_else(early)?, results))
    })
}

/// Tells the gate that a member ends, also by a panic: whoever waits for it at the gate must not wait for ever.
struct End<'a>(&'a Gate);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn nobody_works_before_the_gate_opens() {
        let started = AtomicU32::new(0);
        let (before, results) = run(
            8,
            |index, gate| {
                assert!(gate.wait());
                started.fetch_add(1, Ordering::SeqCst);
                index
            },
            |gate| {
                let before = started.load(Ordering::SeqCst);
                gate.open();
                before
            },
        )
        .unwrap();
        assert_eq!(before, 0);
        assert_eq!(results, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(started.into_inner(), 8);
    }

    #[test]
    fn a_thread_that_ends_before_the_gate_opens_fails_all_at_once() {
        for (panics, said) in [(true, "panicked"), (false, "ended before all had started")] {
            for count in [1, 5] {
                let worked = AtomicU32::new(0);
                let result = run(
                    count,
                    |index, gate| {
                        if index + 1 == count {
                            assert!(!panics, "on purpose");
                            return;
                        }
                        if gate.wait() {
                            worked.fetch_add(1, Ordering::SeqCst);
                        }
                    },
                    |gate| {
                        worked.fetch_add(1, Ordering::SeqCst);
                        gate.open();
                    },
                );
                assert!(
                    matches!(&result, Err(Failure::Invariant(text)) if text.contains(said)),
                    "{result:?}"
                );
                assert_eq!(worked.into_inner(), 0);
            }
        }
    }

    #[test]
    fn m15_a_thread_that_cannot_start_releases_the_others() {
        alone("crew::tests::m15_a_thread_that_cannot_start_releases_the_others", || {
            if !limit_tasks(8) {
                return;
            }
            let worked = AtomicU32::new(0);
            let result = leaving_nothing(|| {
                run(
                    12,
                    |_, gate| {
                        if gate.wait() {
                            worked.fetch_add(1, Ordering::SeqCst);
                        }
                    },
                    |gate| gate.open(),
                )
            });
            assert!(matches!(result, Err(Failure::Spawn { nth: 2..=8, count: 12, .. })), "{result:?}");
            assert_eq!(worked.into_inner(), 0);
        });
    }
}
