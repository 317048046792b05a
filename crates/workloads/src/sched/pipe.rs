//! sched-pipe: two tasks pass a number to and fro over two pipes.

use super::{ORIGINALS, Plan, Span, Special, Start, description};
use crate::clock::now_ns;
use crate::processes::Children;
use crate::shared::{Mode, Semantics, mode, mode_parameter};
use crate::{Failure, Original, Trial, Workload, crew, originals, threads};
use experiment::{Description, Params};
use rustix::io::{read, write};
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, pipe};

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SchedPipe;

impl Workload for SchedPipe {
    fn describe(&self) -> Description {
        description(Special {
            name: "sched-pipe",
            summary: "rate at which two tasks wake each other over pipes",
            about: "A pair of tasks, processes or threads, has two pipes. The first writes a number of 4 bytes to one \
                    and reads it back from the other; the second reads it and writes it back. Such a round trip is \
                    an operation. It takes two switches of context where both share a CPU, and two wake-ups of \
                    another CPU where they do not. Both know which number must come.",
            source: "`perf bench sched pipe` of Linux 6.1, whose default is 1,000,000 loops",
            operation: "round trips",
            parameters: vec![mode_parameter()],
            requirements: &["up to three tasks per pair", "perf for `via`, with one pair"],
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        match originals::wanted(params, ORIGINALS)? {
            Some(_) => originals::perf_sched::check("pipe", &Plan::new(params, trial)?),
            None => Plan::new(params, trial)?.make_room(3),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        let mode = mode(params)?;
        if originals::wanted(params, ORIGINALS)?.is_some() {
            let threaded = (mode == Mode::Thread).then_some("--threaded");
            return originals::perf_sched::measure("pipe", threaded, &plan, params, trial);
        }
        plan.make_room(3)?;
        plan.measure(params, trial, |start| pair(&plan, mode, start))
    }
}

/// What the process of one pair does.
fn pair(plan: &Plan, mode: Mode, start: &Start) -> Result<Span, Failure> {
    let (first, second) = Ends::two()?;
    let early_ns = match plan.semantics {
        Semantics::Original => Some(start.wait()?),
        // The first task waits for the start itself, when it has met the second.
        Semantics::Strict => None,
    };
    let asker = move || ask(first, plan, early_ns, start);
    let answerer = move || answer(second, plan);
    let span = match mode {
        Mode::Process => by_processes(asker, answerer),
        Mode::Thread => by_threads(asker, answerer),
    }?;
    Ok(match plan.semantics {
        Semantics::Original => Span { end_ns: now_ns(), ..span },
        Semantics::Strict => span,
    })
}

/// This process is the first of the pair, and forks the second. Each drops what the other holds: the end of a task then
/// ends the other, which would wait for ever.
fn by_processes(
    asker: impl FnOnce() -> Result<Span, Failure>,
    answerer: impl FnOnce() -> Result<(), Failure>,
) -> Result<Span, Failure> {
    let (mut asker, mut children) = (Some(asker), Children::default());
    let forked = children.fork(|| {
        asker = None;
        answerer().is_err().into()
    });
    forked.map_err(|error| Failure::Spawn { nth: 2, count: 2, why: error.to_string() })?;
    // What the first met says more than the status with which the second left because of it.
    let span = asker.map_or_else(never, |asker| asker())?;
    children.wait_all().map_err(Failure::Invariant)?;
    Ok(span)
}

/// Both are threads of this process. Each drops what it holds when it leaves, also if it never started.
fn by_threads(
    asker: impl FnOnce() -> Result<Span, Failure> + Send,
    answerer: impl FnOnce() -> Result<(), Failure> + Send,
) -> Result<Span, Failure> {
    let (mut asker, mut answerer) = (Some(asker), Some(answerer));
    threads::scope(crew::STACK_BYTES, |pair| {
        let not_started =
            |nth| move |error: io::Error| Failure::Spawn { nth, count: 2, why: error.to_string() };
        let answerer = move || answerer.take().map_or_else(never, |answerer| answerer().map(|()| None));
        pair.start(answerer).map_err(not_started(1))?;
        let asker = move || asker.take().map_or_else(never, |asker| asker().map(Some));
        pair.start(asker).map_err(not_started(2))?;
        let mut span = None;
        // The last is the one that asks, and the first to know what is wrong.
        for ended in pair.join().into_iter().rev() {
            span = span.or(ended.into_result().unwrap_or_else(never)?);
        }
        span.map_or_else(never, Ok)
    })
}

fn never<T>() -> Result<T, Failure> {
    Err(Failure::Invariant("a task of the pair did not come to its end".into()))
}

/// What one task holds: the end that it reads from, and the end that it writes to.
struct Ends {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Ends {
    /// Two pipes, as the two tasks of a pair hold them.
    fn two() -> Result<(Ends, Ends), Failure> {
        let opened =
            || pipe().map_err(|error| Failure::Refused(format!("a pipe could not be opened: {error}")));
        let ((questions, asker), (answers, answerer)) = (opened()?, opened()?);
        Ok((Ends { reader: answers, writer: asker }, Ends { reader: questions, writer: answerer }))
    }

    fn write(&self, number: u32) -> Result<(), Failure> {
        match write(&self.writer, &number.to_ne_bytes()) {
            Ok(4) => Ok(()),
            Ok(_) => Err(lost(number, "it was written in part")),
            Err(error) => Err(lost(number, error)),
        }
    }

    /// Reads the number that must come.
    fn read(&self, number: u32) -> Result<(), Failure> {
        let mut bytes = [0; 4];
        match read(&self.reader, &mut bytes) {
            Ok(4) if u32::from_ne_bytes(bytes) == number => Ok(()),
            Ok(4) => Err(lost(number, format!("{} came in its place", u32::from_ne_bytes(bytes)))),
            Ok(0) => Err(lost(number, "the other task has left")),
            Ok(_) => Err(lost(number, "a part of it came")),
            Err(error) => Err(lost(number, error)),
        }
    }
}

#[cold]
fn lost(number: u32, why: impl fmt::Display) -> Failure {
    Failure::Invariant(format!("number {number} was lost between the tasks of a pair: {why}"))
}

/// What the first task does. Where the time has not begun, it begins when both have met and all pairs have.
fn ask(ends: Ends, plan: &Plan, early_ns: Option<u64>, start: &Start) -> Result<Span, Failure> {
    let start_ns = match early_ns {
        Some(start_ns) => start_ns,
        None => {
            ask_all(&ends, 1)?;
            start.wait()?
        }
    };
    ask_all(&ends, plan.loops)?;
    Ok(Span { start_ns, end_ns: now_ns() })
}

/// What the second task does.
fn answer(ends: Ends, plan: &Plan) -> Result<(), Failure> {
    if plan.semantics == Semantics::Strict {
        answer_all(&ends, 1)?;
    }
    answer_all(&ends, plan.expected_loops)
}

fn ask_all(ends: &Ends, loops: u64) -> Result<(), Failure> {
    for number in 0..loops as u32 {
        ends.write(number)?;
        ends.read(number)?;
    }
    Ok(())
}

fn answer_all(ends: &Ends, loops: u64) -> Result<(), Failure> {
    for number in 0..loops as u32 {
        ends.read(number)?;
        ends.write(number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use crate::sched::tests::run;

    fn plan(semantics: Semantics) -> Plan {
        Plan { pairs: 2, loops: 20, semantics, expected_loops: 20 }
    }

    const WAYS: [(Mode, Semantics); 4] = [
        (Mode::Process, Semantics::Original),
        (Mode::Process, Semantics::Strict),
        (Mode::Thread, Semantics::Original),
        (Mode::Thread, Semantics::Strict),
    ];

    #[test]
    fn pairs_of_every_kind_yield_their_rates_and_leave_nothing() {
        alone("sched::pipe::tests::pairs_of_every_kind_yield_their_rates_and_leave_nothing", || {
            for mode in ["process", "thread"] {
                for semantics in ["original", "strict"] {
                    let set = [("mode", mode), ("semantics", semantics), ("loops", "50")];
                    let samples = leaving_nothing(|| run(&SchedPipe, 3, &set).unwrap());
                    let (rate, us) = (samples["rate"][0], samples["time-per-op"][0]);
                    assert!((rate * us / 3e6 - 1.0).abs() < 1e-9, "{rate} {us}");
                }
            }
        });
    }

    #[test]
    fn a_task_that_leaves_early_or_waits_for_more_fails_the_trial() {
        alone("sched::pipe::tests::a_task_that_leaves_early_or_waits_for_more_fails_the_trial", || {
            for (mode, semantics) in WAYS {
                for expected_loops in [19, 21] {
                    let broken = Plan { expected_loops, ..plan(semantics) };
                    let error = leaving_nothing(|| broken.time_ns(|start| pair(&broken, mode, start)));
                    assert!(matches!(error, Err(Failure::Invariant(_))), "{mode:?} {semantics:?} {error:?}");
                }
            }
        });
    }

    #[test]
    fn a_number_out_of_turn_is_named() {
        let (first, second) = Ends::two().unwrap();
        second.write(7).unwrap();
        let error = first.read(6).unwrap_err().to_string();
        assert!(error.contains("number 6 was lost") && error.contains("7 came in its place"), "{error}");
        drop(second);
        assert!(first.read(7).unwrap_err().to_string().contains("the other task has left"));
    }

    #[test]
    fn m15_a_task_that_cannot_start_ends_the_others() {
        alone("sched::pipe::tests::m15_a_task_that_cannot_start_ends_the_others", || {
            // One process for the test and one for each of two pairs.
            if !limit_tasks(4) {
                return;
            }
            for (mode, semantics) in WAYS {
                let plan = plan(semantics);
                let error = leaving_nothing(|| plan.time_ns(|start| pair(&plan, mode, start))).unwrap_err();
                assert!(error.to_string().contains("could not start task"), "{mode:?} {semantics:?} {error}");
            }
        });
    }
}
