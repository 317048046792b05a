//! hackbench: groups of senders and receivers, where every sender writes to every receiver of its group.

mod by_processes;
mod by_threads;
mod channel;
mod task;

use crate::clock::elapsed_ns;
use crate::shared::{Mode, Semantics, mode, mode_parameter, room_for, semantics, warm_up, with_shared};
use crate::{Failure, Original, Trial, Workload, originals};
pub use channel::Transport;
use experiment::{Axis, Description, Direction, Metric, Parameter, Params, Point};
use task::{Done, Fault, Role};

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Hackbench;

impl Workload for Hackbench {
    fn describe(&self) -> Description {
        Description {
            name: "hackbench".into(),
            summary: "time until groups of senders and receivers have passed all their messages".into(),
            about: "Each group has `fds` senders, `fds` receivers and `fds` channels. Every sender writes \
                    `loops` messages of `datasize` bytes to each channel of its group, and receiver j reads \
                    channel j, so that a group passes fds x fds x loops messages. The tasks are processes or \
                    threads, the channels stream socket pairs or pipes.\n\n\
                    Every task reports that it is there and then polls one common channel. The clock starts \
                    just before a single byte is written to it, so that waking all tasks at once is part of \
                    what is measured. With original semantics it stops when the last task is reaped or \
                    joined, so that the end of all tasks is part of it too. With strict semantics it stops \
                    when the last receiver has its last message, and every message carries its sender and \
                    number, which the receiver checks."
                .into(),
            source: "hackbench of rt-tests 2.4 and `perf bench sched messaging`. The time is not cut off to \
                     milliseconds as both originals do, and the buffers are always initialised."
                .into(),
            axis: Axis {
                name: "groups".into(),
                heading: "Case".into(),
                suffix: "-groups".into(),
                points: [1, 2, 4, 8, 16].map(Point::from).to_vec(),
                range: Some((1, 10_000)),
            },
            parameters: with_shared(
                vec![
                    Parameter::integer(
                        "fds",
                        20,
                        1,
                        10_000,
                        "senders, and as many receivers and channels, per group",
                    ),
                    Parameter::integer(
                        "loops",
                        100,
                        1,
                        1_000_000_000,
                        "messages that each sender writes to each channel",
                    ),
                    Parameter::integer("datasize", 100, 1, 1 << 20, "bytes per message"),
                    Parameter::choice("transport", &["socket", "pipe"], "what a channel is"),
                    mode_parameter(),
                    Parameter::integer(
                        "repeat",
                        5,
                        1,
                        1_000_000,
                        "how often the whole is done in a trial; each time is a sample. Times of one run vary by a \
                         tenth and more from run to run",
                    ),
                ],
                self.originals(),
            ),
            metrics: vec![
                Metric::new(
                    "time",
                    "s",
                    Direction::Lower,
                    "time in seconds",
                    "from the wake-up byte to the end of the last task",
                ),
                Metric::new(
                    "rate",
                    "messages/s",
                    Direction::Higher,
                    "messages per second",
                    "messages of all groups over that time",
                )
                .secondary(),
            ],
            requirements: vec![
                "2 x fds x groups tasks, and in thread mode as many open files".into(),
                "rt-tests or perf for `via`".into(),
            ],
        }
    }

    fn originals(&self) -> &'static [Original] {
        &[Original::HACKBENCH, Original::PERF]
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        let mut once: Box<dyn FnMut() -> Result<f64, Failure>> =
            match originals::wanted(params, self.originals())? {
                Some(original) => originals::hackbench::prepare(original, &plan, trial)?,
                None => Box::new(|| plan.run()),
            };
        warm_up(params, || once().map(drop))?;
        for _ in 0..params.count("repeat")? {
            let time_s = once()?;
            trial.sample("time", time_s)?;
            // An original that prints whole milliseconds can print 0.
            if time_s > 0.0 {
                trial.sample("rate", plan.messages() as f64 / time_s)?;
            }
        }
        Ok(())
    }
}

/// What is to be done, as numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Groups.
    pub groups: u64,
    /// Senders, receivers and channels of a group.
    pub fds: u64,
    /// Messages from each sender to each channel.
    pub loops: u64,
    /// Bytes of a message.
    pub datasize: usize,
    /// What a channel is.
    pub transport: Transport,
    /// What a task is.
    pub mode: Mode,
    /// Which traits of the original are kept.
    pub semantics: Semantics,
    /// Messages that each receiver waits for from each sender: `loops`, except in tests that break the work.
    expected_loops: u64,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let (groups, fds, loops) = (trial.count()?, params.count("fds")?, params.count("loops")?);
        if [fds, fds, loops].iter().try_fold(groups, |product, factor| product.checked_mul(*factor)).is_none()
        {
            return Err(Failure::Refused(
                "so many messages cannot be counted; take fewer loops, fds or groups".into(),
            ));
        }
        Ok(Plan {
            groups,
            fds,
            loops,
            datasize: params.count("datasize")? as usize,
            transport: if params.text("transport")? == "pipe" { Transport::Pipe } else { Transport::Socket },
            mode: mode(params)?,
            semantics: semantics(params)?,
            expected_loops: loops,
        })
    }

    /// Senders and receivers of all groups.
    fn tasks(&self) -> usize {
        (2 * self.fds * self.groups) as usize
    }

    /// Messages of all groups.
    fn messages(&self) -> u64 {
        self.groups * self.fds * self.fds * self.loops
    }

    /// Does the work once and returns the seconds that it took.
    fn run(&self) -> Result<f64, Failure> {
        let tasks = self.tasks() as u64;
        let finished = match self.mode {
            Mode::Process => room_for(0, tasks, 2 * self.fds + 4).and_then(|()| by_processes::run(self)),
            Mode::Thread => room_for(tasks, 0, tasks + 4).and_then(|()| by_threads::run(self)),
        }?;
        self.check(&finished.tasks)?;
        let receivers = finished.tasks.iter().filter(|(name, _)| name.role == Role::Receiver);
        let end_ns = match self.semantics {
            Semantics::Original => finished.end_ns,
            Semantics::Strict => receivers.map(|(_, done)| done.end_ns).max().unwrap_or(finished.end_ns),
        };
        Ok(elapsed_ns(finished.start_ns, end_ns)? as f64 / 1e9)
    }

    /// The invariant: no task met a fault, and every message that was sent was received.
    fn check(&self, tasks: &[(TaskName, Done)]) -> Result<(), Failure> {
        self.first_fault(tasks)?;
        let total = |role| -> u64 {
            tasks.iter().filter(|(name, _)| name.role == role).map(|(_, done)| done.messages).sum()
        };
        let (sent, received) = (total(Role::Sender), total(Role::Receiver));
        if sent != self.messages() || received != self.messages() {
            return Err(Failure::Invariant(format!(
                "{sent} messages were sent and {received} received, of {}",
                self.messages()
            )));
        }
        Ok(())
    }

    /// The fault that came first, if there is one: the others may follow from it.
    fn first_fault(&self, tasks: &[(TaskName, Done)]) -> Result<(), Failure> {
        let faults = tasks.iter().filter_map(|(name, done)| Some((name, done, done.fault?)));
        match faults.min_by_key(|(_, done, _)| done.end_ns) {
            Some((name, done, fault)) => Err(Failure::Invariant(self.explain(name, done.messages, fault))),
            None => Ok(()),
        }
    }

    fn explain(&self, name: &TaskName, messages: u64, fault: Fault) -> String {
        let TaskName { group, role, index } = name;
        match role {
            Role::Sender => format!(
                "sender {index} of group {group} stopped after {messages} of {} messages: {fault}",
                self.fds * self.loops
            ),
            Role::Receiver => format!(
                "receiver {index} of group {group} got {messages} of {} messages: {fault}",
                self.fds * self.expected_loops
            ),
        }
    }
}

/// Which task of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TaskName {
    group: u64,
    role: Role,
    index: u64,
}

/// A run that came to its end.
#[derive(Debug)]
struct Finished {
    start_ns: u64,
    /// When all tasks had been reaped or joined.
    end_ns: u64,
    tasks: Vec<(TaskName, Done)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing, limit_tasks};
    use experiment::Outcome;
    use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
    use std::collections::BTreeMap;
    use std::fs;

    fn run(groups: u64, set: &[(&str, &str)]) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
        let set = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let params = Hackbench.describe().params(&set)?;
        let mut trial = Trial::new(Point::from(groups), vec![0], 1);
        Hackbench.run(&params, &mut trial)?;
        match trial.into_outcome() {
            Outcome::Done { samples, .. } => Ok(samples),
            missing => panic!("{missing:?}"),
        }
    }

    fn small(mode: Mode) -> Plan {
        Plan {
            groups: 2,
            fds: 3,
            loops: 5,
            datasize: 100,
            transport: Transport::Socket,
            mode,
            semantics: Semantics::Strict,
            expected_loops: 5,
        }
    }

    #[test]
    fn every_transport_mode_and_semantics_passes_all_messages_and_leaves_nothing() {
        alone(
            "hackbench::tests::every_transport_mode_and_semantics_passes_all_messages_and_leaves_nothing",
            || {
                for transport in ["socket", "pipe"] {
                    for mode in ["process", "thread"] {
                        for semantics in ["original", "strict"] {
                            for datasize in ["1", "100", "9000"] {
                                let set = [
                                    ("fds", "3"),
                                    ("loops", "5"),
                                    ("datasize", datasize),
                                    ("transport", transport),
                                    ("mode", mode),
                                    ("semantics", semantics),
                                ];
                                let samples = leaving_nothing(|| run(2, &set).unwrap());
                                let (time_s, rate) = (samples["time"][0], samples["rate"][0]);
                                assert!(time_s > 0.0);
                                assert!((rate * time_s - 90.0).abs() < 1e-6, "{rate} x {time_s} s");
                            }
                        }
                    }
                }
            },
        );
    }

    #[test]
    fn a_lost_message_is_found_and_ends_the_run() {
        alone("hackbench::tests::a_lost_message_is_found_and_ends_the_run", || {
            for mode in [Mode::Process, Mode::Thread] {
                let plan = Plan { expected_loops: 6, ..small(mode) };
                let error = leaving_nothing(|| plan.run()).unwrap_err();
                assert!(matches!(error, Failure::Invariant(_)));
                let error = error.to_string();
                assert!(error.contains("got 15 of 18 messages: all senders have ended"), "{error}");
            }
        });
    }

    #[test]
    fn a_message_too_many_is_found() {
        alone("hackbench::tests::a_message_too_many_is_found", || {
            for mode in [Mode::Process, Mode::Thread] {
                let plan = Plan { expected_loops: 4, ..small(mode) };
                assert!(matches!(leaving_nothing(|| plan.run()), Err(Failure::Invariant(_))));
            }
        });
    }

    #[test]
    fn a_killed_process_fails_the_trial_and_takes_the_others_with_it() {
        alone("hackbench::tests::a_killed_process_fails_the_trial_and_takes_the_others_with_it", || {
            let plan = Plan { loops: 1_000_000, expected_loops: 1_000_000, ..small(Mode::Process) };
            let list = format!("/proc/self/task/{}/children", rustix::thread::gettid());
            let error = leaving_nothing(|| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let children = || fs::read_to_string(&list).unwrap();
                        while children().split_whitespace().count() < plan.tasks() {
                            std::thread::yield_now();
                        }
                        let first = children().split_whitespace().next().unwrap().parse().unwrap();
                        kill_process(Pid::from_raw(first).unwrap(), Signal::KILL).unwrap();
                    });
                    plan.run().unwrap_err()
                })
            });
            // Either the death itself is seen first, or what a sender met because of it.
            assert!(matches!(error, Failure::Invariant(_)), "{error}");
        });
    }

    #[test]
    fn points_and_sizes_that_cannot_be_are_refused() {
        for groups in [0, 1_000_000_000] {
            assert!(run(groups, &[]).unwrap_err().to_string().contains("from 1 to 10000"));
        }
        let huge = [("fds", "10000"), ("loops", "1000000000")];
        assert!(run(10_000, &huge).unwrap_err().to_string().contains("cannot be counted"));
        assert!(run(1, &[("fds", "0")]).is_err());
        let strict_original = [("via", "perf"), ("semantics", "strict")];
        assert!(matches!(run(1, &strict_original), Err(Failure::Refused(_))));
        let fixed = [("via", "perf"), ("fds", "21")];
        assert!(matches!(run(1, &fixed), Err(Failure::Refused(_))));
    }

    #[test]
    fn m15_too_few_open_files_are_named_before_anything_starts() {
        alone("hackbench::tests::m15_too_few_open_files_are_named_before_anything_starts", || {
            let limit = Rlimit { current: Some(64), maximum: Some(64) };
            setrlimit(Resource::Nofile, limit).unwrap();
            let error = leaving_nothing(|| run(4, &[("mode", "thread")])).unwrap_err().to_string();
            assert!(error.contains("RLIMIT_NOFILE is 64"), "{error}");
        });
    }

    #[test]
    fn m15_a_task_that_cannot_start_ends_the_others() {
        alone("hackbench::tests::m15_a_task_that_cannot_start_ends_the_others", || {
            if !limit_tasks(8) {
                return;
            }
            for run in [by_processes::run, by_threads::run] {
                let plan = small(Mode::Thread);
                let result = leaving_nothing(|| run(&plan).unwrap_err());
                assert!(matches!(result, Failure::Spawn { nth: 2..=8, count: 12, .. }), "{result:?}");
            }
        });
    }
}
