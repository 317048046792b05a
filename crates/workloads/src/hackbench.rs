//! hackbench: groups of senders and receivers, where every sender writes to every receiver of its group.

mod by_processes;
mod by_threads;
mod channel;
mod task;

use crate::clock::seconds_between;
use crate::shared::{Semantics, semantics, warm_up, with_shared};
use crate::{Failure, Trial, Workload, originals};
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
            about: "Each group has `fds` senders, `fds` receivers and `fds` channels. Every sender writes `loops` \
                    messages of `datasize` bytes to each channel of its group, and receiver j reads channel j, so \
                    that a group passes fds x fds x loops messages. The tasks are processes or threads, the \
                    channels stream socket pairs or pipes.\n\n\
                    Every task reports that it is there and then polls one common channel. The clock starts \
                    just before a single byte is written to it, so that waking all tasks at once is part of what \
                    is measured. With original semantics it stops when the last task is reaped or joined, so that \
                    the end of all tasks is part of it too. With strict semantics it stops when the last receiver has \
                    its last message, and every message carries its sender and number, which the receiver \
                    checks."
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
                    Parameter::choice("mode", &["process", "thread"], "what a task is"),
                ],
                &["rt-tests", "perf"],
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

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        let plan = Plan::new(params, trial)?;
        let time_s = match originals::wanted(params)? {
            Some(original) => originals::hackbench::run(original, &plan, params, trial)?,
            None => {
                warm_up(params, || plan.run().map(drop))?;
                plan.run()?
            }
        };
        trial.sample("time", time_s)?;
        // An original that prints whole milliseconds can print 0.
        if time_s > 0.0 {
            trial.sample("rate", plan.messages() as f64 / time_s)?;
        }
        Ok(())
    }
}

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A forked process.
    Process,
    /// A thread.
    Thread,
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
        let loops = params.count("loops")?;
        Ok(Plan {
            groups: trial.count()?,
            fds: params.count("fds")?,
            loops,
            datasize: params.count("datasize")? as usize,
            transport: if params.text("transport")? == "pipe" { Transport::Pipe } else { Transport::Socket },
            mode: if params.text("mode")? == "thread" { Mode::Thread } else { Mode::Process },
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
        let finished = match self.mode {
            Mode::Process => by_processes::run(self),
            Mode::Thread => by_threads::run(self),
        }?;
        self.check(&finished.tasks)?;
        let receivers = finished.tasks.iter().filter(|(name, _)| name.role == Role::Receiver);
        let end_ns = match self.semantics {
            Semantics::Original => finished.end_ns,
            Semantics::Strict => receivers.map(|(_, done)| done.end_ns).max().unwrap_or(finished.end_ns),
        };
        Ok(seconds_between(finished.start_ns, end_ns))
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
