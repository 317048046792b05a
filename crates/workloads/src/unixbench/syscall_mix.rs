//! syscall-mix: how fast a process makes system calls that do next to nothing.

use super::{Needs, Special, description, measure};
use crate::counting::Task;
use crate::{Failure, Trial, Workload};
use experiment::{Description, Params};
use rustix::fs::Mode;
use rustix::io::{Errno, dup};
use rustix::process::{Pid, getpid, getuid, umask};
use rustix::stdio::stdin;

const NEEDS: Needs = Needs { processes: 1, files: 8 };

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SyscallMix;

impl Workload for SyscallMix {
    fn describe(&self) -> Description {
        description(Special {
            name: "syscall-mix",
            summary: "rate of five system calls that do next to nothing",
            about: "A loop makes five system calls: dup of standard input, close of the copy, getpid, getuid and \
                    umask. Each enters the kernel every time; none is answered from a cache of the C library. The \
                    answers must be the same each time.",
            source: "`syscall` (mix; later versions call getppid in place of getpid)",
            parameters: vec![],
            runtime_s: 2.0,
            originals: &[],
            requirement: "as many processes as the point says",
        })
    }

    fn check(&self, _params: &Params, trial: &Trial) -> Result<(), Failure> {
        NEEDS.check(trial)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        measure(params, trial, NEEDS, |task| mix(task, getpid()))
    }
}

fn mix(task: &Task, pid: Pid) -> Result<(), Failure> {
    let (uid, mask) = (getuid(), Mode::from_raw_mode(0o022));
    umask(mask);
    task.repeat(1, || {
        drop(dup(stdin()).map_err(broken)?);
        match getpid() == pid && getuid() == uid && umask(mask) == mask {
            true => Ok(()),
            false => Err(changed()),
        }
    })
}

#[cold]
fn broken(error: Errno) -> Failure {
    Failure::Refused(format!("standard input cannot be duplicated: {error}"))
}

#[cold]
fn changed() -> Failure {
    Failure::Invariant("a system call gave another answer than before".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::UNTIL_IT_FAILS;
    use crate::unixbench::tests::looping;
    use rustix::process::getppid;

    #[test]
    fn an_answer_that_changes_is_found() {
        alone("unixbench::syscall_mix::tests::an_answer_that_changes_is_found", || {
            let error = leaving_nothing(|| looping(UNTIL_IT_FAILS).run(|task| mix(task, getppid().unwrap())))
                .unwrap_err();
            assert!(matches!(error, Failure::Invariant(_)), "{error}");
        });
    }
}
