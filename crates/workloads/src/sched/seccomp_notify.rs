//! seccomp-notify: one process waits at each of its system calls until another has answered it.

use super::seccomp::{ANSWER, Listener, probe};
use super::{ORIGINALS, Plan, Span, Special, Start, description};
use crate::clock::now_ns;
use crate::processes::Children;
use crate::shared::Semantics;
use crate::shared_memory::SharedValue;
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Parameter, Params};
use rustix::io::Errno;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SeccompNotify;

impl Workload for SeccompNotify {
    fn describe(&self) -> Description {
        description(Special {
            name: "seccomp-notify",
            summary: "rate at which system calls of one process are answered by another",
            about: "In every pair the first process installs a seccomp filter that stops gettid for an answer \
                    (SECCOMP_RET_USER_NOTIF), and forks the second, which calls gettid over and over. The first \
                    receives each call with one ioctl and answers it with another, and the second checks the answer. \
                    With `sync` the kernel is told that the answering process is going to wait, so that it wakes the \
                    caller on the same CPU.",
            source: "`perf bench sched seccomp-notify` of Linux 6.6, whose default is 1,000,000 loops",
            operation: "answered system calls",
            parameters: vec![Parameter::flag(
                "sync",
                false,
                "wake callers on the CPU of who answers (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)",
            )],
            requirements: &[
                "Linux 5.0 with CONFIG_SECCOMP_FILTER, 6.6 for `sync`",
                "two processes per pair",
                "perf of Linux 6.6 for `via`, with one pair",
            ],
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        probe(params.flag("sync")?)?;
        match originals::wanted(params, ORIGINALS)? {
            Some(_) => originals::perf_sched::check("seccomp-notify", &Plan::new(params, trial)?),
            None => Plan::new(params, trial)?.make_room(2),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        let sync = params.flag("sync")?;
        if originals::wanted(params, ORIGINALS)?.is_some() {
            let option = sync.then_some("--sync-mode");
            return originals::perf_sched::measure("seccomp-notify", option, &plan, params, trial);
        }
        plan.make_room(2)?;
        plan.measure(params, trial, |start| pair(&plan, sync, start))
    }
}

/// What the process of one pair does, which answers. It is under the filter too, as perf's is, and so must not call
/// gettid itself. Nothing tells it when the caller is killed from outside: the deadline of the trial does.
fn pair(plan: &Plan, sync: bool, start: &Start) -> Result<Span, Failure> {
    let caller = SharedValue::new(<(AtomicU64, AtomicU64)>::default)
        .map_err(|error| Failure::Refused(format!("no memory to share: {error}")))?;
    let (answered, end_ns) = &*caller;
    let early_ns = match plan.semantics {
        Semantics::Original => Some(start.wait()?),
        Semantics::Strict => None,
    };
    let listener = Listener::install(libc::SYS_gettid)?;
    let mut children = Children::default();
    let last = 1 + plan.loops;
    let forked = children.fork(|| call_for_ever(answered, last, end_ns));
    forked.map_err(|error| Failure::Spawn { nth: 2, count: 2, why: error.to_string() })?;
    if sync {
        listener.wake_in_step()?;
    }
    match early_ns {
        Some(start_ns) => {
            answer_all(&listener, plan.loops)?;
            drop(children);
            let end_ns = now_ns();
            // It was killed, maybe before it saw the last answer.
            check(answered, plan.expected_loops - 1..=plan.expected_loops)?;
            Ok(Span { start_ns, end_ns })
        }
        None => {
            answer_all(&listener, 1)?;
            let start_ns = start.wait()?;
            answer_all(&listener, plan.loops)?;
            // Once it calls again it has seen the last answer, and when.
            listener.receive(libc::SYS_gettid).map_err(|error| lost(plan.loops, error))?;
            drop(children);
            check(answered, 1 + plan.expected_loops..=1 + plan.expected_loops)?;
            Ok(Span { start_ns, end_ns: end_ns.load(Relaxed) })
        }
    }
}

fn answer_all(listener: &Listener, loops: u64) -> Result<(), Failure> {
    for number in 0..loops {
        listener
            .receive(libc::SYS_gettid)
            .and_then(|call| listener.answer(call))
            .map_err(|error| lost(number, error))?;
    }
    Ok(())
}

#[cold]
fn lost(number: u64, error: Errno) -> Failure {
    Failure::Invariant(format!("system call {number} could not be answered: {error}"))
}

fn check(answered: &AtomicU64, expected: RangeInclusive<u64>) -> Result<(), Failure> {
    let answered = answered.load(Relaxed);
    if expected.contains(&answered) {
        return Ok(());
    }
    Err(Failure::Invariant(format!("the caller got {answered} right answers instead of {}", expected.end())))
}

/// What the second process does until it is killed. A wrong answer is not counted. The time of the `last` is taken.
fn call_for_ever(answered: &AtomicU64, last: u64, end_ns: &AtomicU64) -> u8 {
    let mut done = 0;
    loop {
        done += u64::from(call());
        answered.store(done, Relaxed);
        if done == last {
            end_ns.store(now_ns(), Relaxed);
        }
    }
}

/// Calls gettid and says whether the answer was the right one.
#[inline]
fn call() -> bool {
    // SAFETY: It takes no argument and touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) == ANSWER }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::sched::tests::run;

    fn missing() -> bool {
        let probed = probe(false);
        if let Err(why) = &probed {
            println!("skipped: {why}");
        }
        probed.is_err()
    }

    #[test]
    fn pairs_yield_their_rates_and_leave_nothing() {
        alone("sched::seccomp_notify::tests::pairs_yield_their_rates_and_leave_nothing", || {
            if missing() {
                return;
            }
            for semantics in ["original", "strict"] {
                for sync in ["off", "on"] {
                    if sync == "on" && probe(true).is_err() {
                        println!("skipped: sync=on, before Linux 6.6");
                        continue;
                    }
                    let set = [("semantics", semantics), ("sync", sync), ("loops", "50")];
                    let samples = leaving_nothing(|| run(&SeccompNotify, 3, &set).unwrap());
                    let (rate, us) = (samples["rate"][0], samples["time-per-op"][0]);
                    assert!((rate * us / 3e6 - 1.0).abs() < 1e-9, "{rate} {us}");
                }
            }
        });
    }

    #[test]
    fn an_answer_that_did_not_arrive_fails_the_trial() {
        alone("sched::seccomp_notify::tests::an_answer_that_did_not_arrive_fails_the_trial", || {
            if missing() {
                return;
            }
            for semantics in [Semantics::Original, Semantics::Strict] {
                let plan = Plan { pairs: 2, loops: 20, semantics, expected_loops: 22 };
                let error = leaving_nothing(|| plan.time_ns(|start| pair(&plan, false, start))).unwrap_err();
                assert!(matches!(error, Failure::Invariant(_)), "{error}");
                assert!(error.to_string().contains("right answers instead of"), "{error}");
            }
        });
    }

    #[test]
    fn this_process_stays_without_a_filter() {
        alone("sched::seccomp_notify::tests::this_process_stays_without_a_filter", || {
            if missing() {
                return;
            }
            run(&SeccompNotify, 1, &[("loops", "5")]).unwrap();
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            assert!(status.contains("NoNewPrivs:\t0") && status.contains("Seccomp:\t0"), "{status}");
        });
    }

    #[test]
    fn a_second_listener_is_refused_with_its_cause() {
        alone("sched::seccomp_notify::tests::a_second_listener_is_refused_with_its_cause", || {
            if missing() {
                return;
            }
            let second = || {
                let _first = Listener::install(0x3fff_0000)?;
                Listener::install(0x3fff_0001).map(drop)
            };
            let error =
                std::thread::scope(|scope| scope.spawn(second).join()).unwrap().unwrap_err().to_string();
            assert!(error.contains("already runs under a filter with a listener"), "{error}");
        });
    }
}
