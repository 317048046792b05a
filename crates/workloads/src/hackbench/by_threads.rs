//! The run in which every task is a thread.

use super::channel::{Channel, Start};
use super::task::{Done, Receiver, Role, Sender};
use super::{Finished, Plan, TaskName};
use crate::clock::now_ns;
use crate::{Failure, threads};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Starts all threads, lets them go and joins them.
pub fn run(plan: &Plan) -> Result<Finished, Failure> {
    let start = Start::new(plan.transport)?;
    threads::scope(threads::SMALLEST_STACK_BYTES, |scope| {
        let mut staff = Staff { scope, count: plan.tasks(), names: Vec::with_capacity(plan.tasks()) };
        let started = staff.start(plan, &start);
        let ready = started.and_then(|()| start.wait_for_all(plan.tasks(), || Ok(())));
        if let Err(failure) = ready {
            start.cancel()?;
            return Err(failure);
        }
        let Staff { scope, names, .. } = staff;

        let start_ns = now_ns();
        start.wake()?;
        let ended = scope.join();
        let end_ns = now_ns();

        let mut tasks = Vec::with_capacity(names.len());
        for (name, ended) in names.into_iter().zip(ended) {
            let done = ended.into_result().ok_or_else(|| Failure::Invariant("a thread panicked".into()))?;
            tasks.push((name, done));
        }
        Ok(Finished { start_ns, end_ns, tasks })
    })
}

struct Staff<'scope, 'env> {
    scope: &'scope mut threads::Scope<'env, Done>,
    count: usize,
    names: Vec<TaskName>,
}

impl<'env> Staff<'_, 'env> {
    fn start(&mut self, plan: &Plan, start: &'env Start) -> Result<(), Failure> {
        for group in 0..plan.groups {
            let mut writers = Vec::with_capacity(plan.fds as usize);
            for index in 0..plan.fds {
                let Channel { reader, writer } = Channel::open(plan.transport)?;
                writers.push(writer);
                let (mut receiver, mut reader) = (Receiver::new(plan), Some(reader));
                self.add(TaskName { group, role: Role::Receiver, index }, move || {
                    let done = match &reader {
                        Some(channel) => receiver.run(start, channel),
                        None => Done::never(Errno::BADF),
                    };
                    // Nobody may wait until a receiver that failed reads on. The end of one that did its work
                    // is closed after what is measured.
                    if done.fault.is_some() {
                        reader = None;
                    }
                    done
                })?;
            }
            let writers = Arc::new(Writers { ends: RwLock::new(writers), senders: AtomicU64::new(plan.fds) });
            for index in 0..plan.fds {
                let writers = Arc::clone(&writers);
                let mut sender = Sender::new(plan, index);
                self.add(TaskName { group, role: Role::Sender, index }, move || {
                    let done =
                        sender.run(start, &writers.ends.read().unwrap_or_else(PoisonError::into_inner));
                    writers.leave();
                    done
                })?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: TaskName, body: impl FnMut() -> Done + Send + 'env) -> Result<(), Failure> {
        self.names.push(name);
        self.scope.start(body).map_err(|error| Failure::Spawn {
            nth: self.names.len(),
            count: self.count,
            why: error.to_string(),
        })
    }
}

/// The writing ends of a group's channels. The last sender closes them, so that a receiver whose messages were lost
/// sees the end instead of waiting for ever. The list itself stays where it is: the first thing that a thread frees
/// costs it an arena of its own, and that would be measured.
struct Writers {
    ends: RwLock<Vec<OwnedFd>>,
    senders: AtomicU64,
}

impl Writers {
    fn leave(&self) {
        if self.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ends.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}
