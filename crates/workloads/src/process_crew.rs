//! A crew of processes that start together.

use crate::Failure;
use crate::complaint::Complaint;
pub use crate::gate::Gate;
use crate::processes::Children;
use crate::shared_memory::SharedValue;
use experiment::counted;
use rustix::thread::futex;
use std::time::Duration;

/// How often it is looked whether a process ended before it arrived.
const PATIENCE: Duration = Duration::from_millis(20);

/// Forks `count` processes that run `body(index, &gate)`, waits until all have called [`Gate::wait`], and then calls
/// `conduct`, which must open the gate. Returns what `conduct` returned, when all processes have ended. What a process
/// found out it leaves in memory that the caller shares with it ([`crate::shared_memory`]). Must be called before this process has
/// a second thread.
///
/// # Errors
/// When a process cannot be started, when one fails (the error of the first that did) or dies, and what `conduct`
/// failed with. The others are then killed and reaped.
pub fn run<R>(
    count: usize,
    body: impl Fn(usize, &Gate) -> Result<(), Failure>,
    conduct: impl FnOnce(&Gate) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let memory =
        |error| Failure::Refused(format!("no memory to share with {}: {error}", counted(count, "process")));
    let gate = SharedValue::new(|| Gate::new(count as u32, futex::Flags::empty())).map_err(memory)?;
    let complaint = SharedValue::new(Complaint::default).map_err(memory)?;
    let mut children = Children::default();
    // What a process itself said is better than the status that it left with.
    let told = |how: String| complaint.read().unwrap_or(Failure::Invariant(how));
    for index in 0..count {
        let forked = children.fork(|| match body(index, &gate) {
            Ok(()) => 0,
            Err(failure) => {
                complaint.write(&failure);
                1
            }
        });
        forked.map_err(|error| Failure::Spawn { nth: index + 1, count, why: error.to_string() })?;
    }
    while !gate.wait_for_all(Some(PATIENCE)) {
        children.reap_ended().map_err(told)?;
    }
    let conducted = conduct(&gate);
    if conducted.is_ok() {
        children.wait_all().map_err(told)?;
    } else if let Some(failure) = complaint.read() {
        // It may be why `conduct` failed.
        return Err(failure);
    }
    conducted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use crate::shared_memory::SharedWords;
    use std::sync::atomic::Ordering;

    #[test]
    fn all_work_once_and_none_before_the_gate_opens() {
        alone("process_crew::tests::all_work_once_and_none_before_the_gate_opens", || {
            leaving_nothing(|| {
                let words = SharedWords::new(8).unwrap();
                let sum = || words.iter().map(|word| word.load(Ordering::SeqCst)).sum::<u64>();
                let before = run(
                    8,
                    |index, gate| {
                        assert!(gate.wait());
                        words[index].fetch_add(index as u64 + 1, Ordering::SeqCst);
                        Ok(())
                    },
                    |gate| {
                        let before = sum();
                        gate.open();
                        Ok(before)
                    },
                );
                assert_eq!((before.unwrap(), sum()), (0, 36));
            });
        });
    }

    #[test]
    fn the_first_failure_of_a_process_is_told_and_the_others_end() {
        alone("process_crew::tests::the_first_failure_of_a_process_is_told_and_the_others_end", || {
            for early in [true, false] {
                let error = leaving_nothing(|| {
                    run(
                        4,
                        |index, gate| {
                            if index == 2 && early {
                                return Err(Failure::Invariant("lost a message".into()));
                            }
                            assert!(gate.wait());
                            match index {
                                2 => Err(Failure::Invariant("lost a message".into())),
                                _ => loop {
                                    std::thread::sleep(Duration::from_secs(600));
                                },
                            }
                        },
                        |gate| {
                            gate.open();
                            Ok(())
                        },
                    )
                });
                let error = error.unwrap_err();
                assert!(matches!(&error, Failure::Invariant(text) if text == "lost a message"), "{error}");
            }
        });
    }

    #[test]
    fn m15_a_process_that_cannot_start_ends_the_others() {
        alone("process_crew::tests::m15_a_process_that_cannot_start_ends_the_others", || {
            if !limit_tasks(8) {
                return;
            }
            let result = leaving_nothing(|| {
                run(
                    12,
                    |_, gate| match gate.wait() {
                        true => Err(Failure::Invariant("it started".into())),
                        false => Ok(()),
                    },
                    |gate| {
                        gate.open();
                        Ok(())
                    },
                )
            });
            assert!(matches!(result, Err(Failure::Spawn { nth: 2..=8, count: 12, .. })), "{result:?}");
        });
    }
}
