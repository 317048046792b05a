//! A crew of threads that start together.

pub use crate::gate::Gate;
use crate::{Failure, threads};
use rustix::thread::futex;

/// Thousands of threads must fit; the work of a member needs no deep stack.
pub(crate) const STACK_BYTES: usize = 256 * 1024;

/// Starts `count` threads that run `body(index, gate)`, waits until all have called [`Gate::wait`], and then
/// calls `conduct`, which must open the gate. Returns what `conduct` returned and what each thread did, by
/// index.
///
/// # Errors
/// When a thread cannot be started: the others are released, leave and are joined first. When a thread panics.
pub fn run<T: Send, R>(
    count: usize,
    body: impl Fn(usize, &Gate) -> T + Sync,
    conduct: impl FnOnce(&Gate) -> R,
) -> Result<(R, Vec<T>), Failure> {
    run_on(STACK_BYTES, count, body, conduct)
}

/// As [`run`], with stacks of `stack_bytes`.
///
/// # Errors
/// As [`run`].
pub fn run_on<T: Send, R>(
    stack_bytes: usize,
    count: usize,
    body: impl Fn(usize, &Gate) -> T + Sync,
    conduct: impl FnOnce(&Gate) -> R,
) -> Result<(R, Vec<T>), Failure> {
    let gate = Gate::new(count as u32, futex::Flags::PRIVATE);
    let (gate, body) = (&gate, &body);
    threads::scope(stack_bytes, |crew| {
        for index in 0..count {
            if let Err(error) = crew.start(move || body(index, gate)) {
                gate.cancel();
                return Err(Failure::Spawn { nth: index + 1, count, why: error.to_string() });
            }
        }
        while !gate.wait_for_all(None) {}
        let conducted = conduct(gate);
        let results = crew.join().into_iter().map(|ended| {
            ended.into_result().ok_or_else(|| Failure::Invariant("a thread of the workload panicked".into()))
        });
        Ok((conducted, results.collect::<Result<Vec<T>, Failure>>()?))
    })
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
