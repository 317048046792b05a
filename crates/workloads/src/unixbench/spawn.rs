//! spawn: how fast a process makes processes that end at once.

use super::{Needs, Special, description, measure};
use crate::counting::Task;
use crate::originals::{self, stress_ng};
use crate::processes::fork_to_leave;
use crate::{Failure, Original, Trial, Workload};
use experiment::{Description, Params};
use rustix::process::{WaitOptions, waitpid};

const NEEDS: Needs = Needs { processes: 2, files: 8 };

/// What forks, waits and counts in its own way.
const ORIGINALS: &[Original] = &[Original::STRESS_NG];

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Spawn;

impl Workload for Spawn {
    fn describe(&self) -> Description {
        description(Special {
            name: "spawn",
            summary: "rate at which a process forks others that end at once",
            about: "A loop forks a process, which leaves at once with status 0, and waits for it. So what is measured \
                    is the copy of an address space, its end and the wait. The address space is kduel's own. Each \
                    process must be reaped with its own id and status 0. The fork stressor of stress-ng, which `via` takes, \
                    has the child make more calls, and copies a larger address space.",
            source: "`spawn`. The process leaves by _exit, without the clean-up of the C library",
            parameters: vec![],
            runtime_s: 2.0,
            originals: ORIGINALS,
            requirement: "twice as many processes as the point says",
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        NEEDS.check(trial)?;
        match originals::wanted(params, ORIGINALS)? {
            None => Ok(()),
            Some(original) => stress_ng::check(original, params, trial),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if let Some(original) = originals::wanted(params, ORIGINALS)? {
            NEEDS.check(trial)?;
            return stress_ng::run(original, params, trial);
        }
        measure(params, trial, NEEDS, |task| fork_and_wait(task, 0))
    }
}

fn fork_and_wait(task: &Task, status: u8) -> Result<(), Failure> {
    task.repeat(1, || {
        let pid = fork_to_leave(status)
            .map_err(|error| Failure::Refused(format!("no further process could be forked: {error}")))?;
        match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((reaped, status))) if reaped == pid && status.as_raw() == 0 => Ok(()),
            other => Err(Failure::Invariant(format!(
                "a forked process did not leave with status 0: waiting gave {other:?}"
            ))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::UNTIL_IT_FAILS;
    use crate::unixbench::tests::looping;

    #[test]
    fn a_process_with_another_status_is_found() {
        alone("unixbench::spawn::tests::a_process_with_another_status_is_found", || {
            let error =
                leaving_nothing(|| looping(UNTIL_IT_FAILS).run(|task| fork_and_wait(task, 3)).unwrap_err());
            assert!(error.to_string().contains("did not leave with status 0"), "{error}");
        });
    }
}
