//! context: how fast two processes pass a number to and fro.

use super::{Needs, Special, description, measure};
use crate::counting::Task;
use crate::processes::Children;
use crate::shared::pin;
use crate::shared_memory::SharedValue;
use crate::{Failure, Trial, Workload};
use experiment::{Description, Parameter, Params};
use machine::CpuSet;
use rustix::io::{read, write};
use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const NEEDS: Needs = Needs { processes: 2, files: 16 };

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Context;

impl Workload for Context {
    fn describe(&self) -> Description {
        description(Special {
            name: "context",
            summary: "rate at which two processes pass a number to and fro over pipes",
            about: "A copy is a pair of processes with two pipes. The first writes a number of 8 bytes to one pipe and \
                    reads the answer from the other; the second reads the number and writes it back. Both know which \
                    number must come. A round trip is one loop and takes two switches of context where both run on \
                    the same CPU, and two wake-ups of an idle CPU where they do not: `place` says which. At the end \
                    the second process must have answered as often as the first has counted.",
            source: "`context1`, where the scheduler decides whether both share a CPU (`place=free`)",
            parameters: vec![Parameter::choice(
                "place",
                &["free", "same", "apart"],
                "where a pair runs: where the scheduler puts it, both on the same CPU, or on two CPUs",
            )],
            runtime_s: 2.0,
            originals: &[],
            requirement: "two processes per copy",
        })
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        NEEDS.check(trial)?;
        Place::new(params, trial).map(drop)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let place = Place::new(params, trial)?;
        measure(params, trial, NEEDS, |task| {
            let (first, second) = place.of(task.index());
            // The second process is born where this one is.
            pin_to(second)?;
            ask(task, |number| number, || pin_to(first))
        })
    }
}

/// Where pairs run.
enum Place {
    Free,
    Same(Vec<u32>),
    Apart(Vec<u32>),
}

impl Place {
    fn new(params: &Params, trial: &Trial) -> Result<Place, Failure> {
        let cpus = trial.cpus().to_vec();
        match params.text("place")? {
            "same" => Ok(Place::Same(cpus)),
            "apart" if cpus.len() < 2 => {
                Err(Failure::Refused("place=apart needs two CPUs, and the trial may use one".into()))
            }
            "apart" => Ok(Place::Apart(cpus)),
            _ => Ok(Place::Free),
        }
    }

    /// The CPUs of the `index`-th pair.
    fn of(&self, index: usize) -> (Option<u32>, Option<u32>) {
        let nth = |cpus: &[u32], n: usize| cpus.get(n % cpus.len().max(1)).copied();
        match self {
            Place::Free => (None, None),
            Place::Same(cpus) => (nth(cpus, index), nth(cpus, index)),
            Place::Apart(cpus) => (nth(cpus, 2 * index), nth(cpus, 2 * index + 1)),
        }
    }
}

fn pin_to(cpu: Option<u32>) -> Result<(), Failure> {
    cpu.map_or(Ok(()), |cpu| pin(&CpuSet::one(cpu)))
}

/// What the first process does: it forks the second, which answers a number with `answer` of it, and begins with
/// `prepare`.
fn ask(
    task: &Task,
    answer: impl Fn(u64) -> u64,
    prepare: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let made = |error| Failure::Refused(format!("pipes and memory for a pair cannot be had: {error}"));
    let ((questions, asker), (answers, answerer)) = (pipe().map_err(made)?, pipe().map_err(made)?);
    let answered = SharedValue::new(AtomicU64::default).map_err(made)?;
    let mut asker = Some(asker);
    let mut second = Children::default();
    let forked = second.fork(|| {
        // It must not hold open the pipe whose end tells it to leave.
        asker = None;
        answer_all(&questions, &answerer, answer, &answered).is_err().into()
    });
    forked.map_err(|error| Failure::Spawn { nth: 2, count: 2, why: error.to_string() })?;
    drop((questions, answerer));
    prepare()?;

    let mut number = 0_u64;
    task.repeat(1, || {
        let mut back = [0; 8];
        let sent = asker.as_ref().map(|asker| write(asker, &number.to_ne_bytes()));
        if sent != Some(Ok(8)) || read(&answers, &mut back) != Ok(8) || u64::from_ne_bytes(back) != number {
            return Err(lost(number));
        }
        number += 1;
        Ok(())
    })?;
    asker = None;
    drop(asker);
    second.wait_all().map_err(Failure::Invariant)?;
    let answered = answered.load(Relaxed);
    if answered != task.counted() {
        return Err(Failure::Invariant(format!(
            "{} round trips were counted, and {answered} answered",
            task.counted()
        )));
    }
    Ok(())
}

/// What the second process does, until the first has closed its pipe.
fn answer_all(
    questions: &PipeReader,
    answerer: &PipeWriter,
    answer: impl Fn(u64) -> u64,
    answered: &AtomicU64,
) -> Result<(), Failure> {
    let mut expected = 0_u64;
    let mut number = [0; 8];
    while read(questions, &mut number) == Ok(8) {
        let number = u64::from_ne_bytes(number);
        if number != expected || write(answerer, &answer(number).to_ne_bytes()) != Ok(8) {
            return Err(lost(number));
        }
        expected += 1;
    }
    answered.store(expected, Relaxed);
    Ok(())
}

#[cold]
fn lost(number: u64) -> Failure {
    Failure::Invariant(format!("number {number} was lost between two processes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};
    use crate::counting::UNTIL_IT_FAILS;
    use crate::unixbench::tests::looping;

    #[test]
    fn a_wrong_answer_and_a_partner_that_leaves_are_found() {
        alone("unixbench::context::tests::a_wrong_answer_and_a_partner_that_leaves_are_found", || {
            let wrong = |task: &Task| ask(task, |number| number + u64::from(number == 5), || Ok(()));
            let error = leaving_nothing(|| looping(UNTIL_IT_FAILS).run(wrong)).unwrap_err().to_string();
            assert!(error.contains("number 5 was lost"), "{error}");
            let gone = |task: &Task| ask(task, |_| panic!("on purpose"), || Ok(()));
            let error = leaving_nothing(|| looping(UNTIL_IT_FAILS).run(gone)).unwrap_err().to_string();
            assert!(error.contains("number 0 was lost"), "{error}");
            let nowhere = |task: &Task| ask(task, |number| number, || pin_to(Some(100_000)));
            let error = leaving_nothing(|| looping(UNTIL_IT_FAILS).run(nowhere)).unwrap_err();
            assert!(matches!(error, Failure::Refused(_)), "{error}");
        });
    }

    #[test]
    fn pairs_are_placed_as_asked() {
        let cpus = vec![0, 2, 5];
        assert_eq!(Place::Free.of(1), (None, None));
        assert_eq!(Place::Same(cpus.clone()).of(4), (Some(2), Some(2)));
        assert_eq!(Place::Apart(cpus).of(1), (Some(5), Some(0)));
    }
}
