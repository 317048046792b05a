//! The run in which every task is a process.

use super::channel::{Channel, Start};
use super::task::{Done, Fault, Receiver, Role, Sender};
use super::{Finished, Plan, TaskName};
use crate::Failure;
use crate::clock::now_ns;
use crate::processes::Children;
use crate::shared_memory::SharedWords;
use experiment::counted;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Forks all tasks, lets them go and reaps them.
pub fn run(plan: &Plan) -> Result<Finished, Failure> {
    // The first use of the clock looks for it; a task that inherits what was found need not.
    now_ns();
    let start = Start::new(plan.transport)?;
    let mut staff = Staff::new(plan.tasks())?;
    let mut receiver = Receiver::new(plan);
    for group in 0..plan.groups {
        let mut writers = Vec::with_capacity(plan.fds as usize);
        for index in 0..plan.fds {
            let Channel { reader, writer } = Channel::open(plan.transport)?;
            let mut writer = Some(writer);
            staff.fork(TaskName { group, role: Role::Receiver, index }, || {
                // A receiver must not hold its own channel open, or it would never see that its senders have
                // ended.
                writer = None;
                receiver.run(&start, &reader)
            })?;
            writers.extend(writer);
        }
        for index in 0..plan.fds {
            let mut sender = Sender::new(plan, index);
            staff.fork(TaskName { group, role: Role::Sender, index }, || sender.run(&start, &writers))?;
        }
    }
    start.wait_for_all(plan.tasks(), || staff.children.reap_ended().map_err(Failure::Invariant))?;

    let start_ns = now_ns();
    start.wake()?;
    let ended = staff.children.wait_all();
    let end_ns = now_ns();

    let tasks = staff.reports();
    if let Err(how) = ended {
        // What a task itself said is better than the status that it left with.
        plan.first_fault(&tasks)?;
        return Err(Failure::Invariant(how));
    }
    Ok(Finished { start_ns, end_ns, tasks })
}

/// The processes, and the memory in which each leaves its report.
struct Staff {
    count: usize,
    children: Children,
    names: Vec<TaskName>,
    words: SharedWords,
}

/// Words of a report: messages, end time, fault.
const WORDS: usize = 3;

impl Staff {
    fn new(count: usize) -> Result<Staff, Failure> {
        let words = SharedWords::new(count * WORDS).map_err(|error| {
            Failure::Refused(format!("no memory for the reports of {}: {error}", counted(count, "process")))
        })?;
        Ok(Staff { count, children: Children::default(), names: Vec::with_capacity(count), words })
    }

    fn fork(&mut self, name: TaskName, body: impl FnOnce() -> Done) -> Result<(), Failure> {
        let place = self.names.len();
        let report = self.words.chunks_exact(WORDS).nth(place).unwrap_or_default();
        self.names.push(name);
        let forked = self.children.fork(|| {
            let done = body();
            write_report(report, &done);
            done.fault.is_some().into()
        });
        forked.map_err(|error| Failure::Spawn { nth: place + 1, count: self.count, why: error.to_string() })
    }

    fn reports(&self) -> Vec<(TaskName, Done)> {
        self.names.iter().copied().zip(self.words.chunks_exact(WORDS).map(read_report)).collect()
    }
}

/// Above every error number; the codes of the faults that are none.
const END: u64 = 1 << 32;
const CONTENT: u64 = 1 << 33;

fn write_report(report: &[AtomicU64], done: &Done) {
    let fault = match done.fault {
        None => 0,
        Some(Fault::Call(error)) => error.raw_os_error() as u64,
        Some(Fault::End) => END,
        Some(Fault::Content) => CONTENT,
    };
    for (word, value) in report.iter().zip([done.messages, done.end_ns, fault]) {
        // The parent reads after it has reaped this process.
        word.store(value, Relaxed);
    }
}

fn read_report(report: &[AtomicU64]) -> Done {
    let word = |place: usize| report.get(place).map_or(0, |word| word.load(Relaxed));
    let fault = match word(2) {
        0 => None,
        END => Some(Fault::End),
        CONTENT => Some(Fault::Content),
        error => Some(Fault::Call(Errno::from_raw_os_error(error as i32))),
    };
    Done { messages: word(0), end_ns: word(1), fault }
}
