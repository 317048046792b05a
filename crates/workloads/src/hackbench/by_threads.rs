//! The run in which every task is a thread.

use super::channel::{Channel, Start};
use super::task::{Done, Receiver, Role, Sender};
use super::{Finished, Plan, TaskName};
use crate::Failure;
use crate::clock::now_ns;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

/// The smallest stack that the C library takes, as the original's threads have. On a larger one the C library makes
/// a system call more at the end of each thread.
const STACK: usize = 16 * 1024;

/// Starts all threads, lets them go and joins them.
pub fn run(plan: &Plan) -> Result<Finished, Failure> {
    let start = Start::new(plan.transport)?;
    thread::scope(|scope| {
        let mut staff = Staff { scope, count: plan.tasks(), members: Vec::with_capacity(plan.tasks()) };
        let started = staff.start(plan, &start);
        let ready = started.and_then(|()| start.wait_for_all(plan.tasks(), || Ok(())));
        if let Err(failure) = ready {
            start.cancel()?;
            return Err(failure);
        }

        let start_ns = now_ns();
        start.wake()?;
        let joined: Vec<_> = staff.members.into_iter().map(|(name, member)| (name, member.join())).collect();
        let end_ns = now_ns();

        let mut tasks = Vec::with_capacity(joined.len());
        for (name, result) in joined {
            let (done, _) = result.map_err(|_| Failure::Invariant("a thread panicked".into()))?;
            tasks.push((name, done));
        }
        Ok(Finished { start_ns, end_ns, tasks })
    })
}

/// What a thread ends with. A receiver that did its work hands its end of the channel back, so that it is closed
/// outside of what is measured; one that failed closes it, so that its senders cannot wait for it.
type Ended = (Done, Option<OwnedFd>);

struct Staff<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    count: usize,
    members: Vec<(TaskName, ScopedJoinHandle<'scope, Ended>)>,
}

impl<'scope> Staff<'scope, '_> {
    fn start(&mut self, plan: &Plan, start: &'scope Start) -> Result<(), Failure> {
        for group in 0..plan.groups {
            let mut writers = Vec::with_capacity(plan.fds as usize);
            for index in 0..plan.fds {
                let Channel { reader, writer } = Channel::open(plan.transport)?;
                writers.push(writer);
                let mut receiver = Receiver::new(plan);
                self.add(TaskName { group, role: Role::Receiver, index }, move || {
                    let done = receiver.run(start, &reader);
                    (done, done.fault.is_none().then_some(reader))
                })?;
            }
            // The last sender of the group closes the writing ends, so that a receiver whose messages were lost sees
            // the end instead of waiting for ever.
            let writers = Arc::new(writers);
            for index in 0..plan.fds {
                let writers = Arc::clone(&writers);
                let mut sender = Sender::new(plan, index);
                self.add(TaskName { group, role: Role::Sender, index }, move || {
                    (sender.run(start, &writers), None)
                })?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: TaskName, body: impl FnOnce() -> Ended + Send + 'scope) -> Result<(), Failure> {
        let nth = self.members.len() + 1;
        let member = thread::Builder::new().stack_size(STACK).spawn_scoped(self.scope, body);
        let member =
            member.map_err(|error| Failure::Spawn { nth, count: self.count, why: error.to_string() })?;
        self.members.push((name, member));
        Ok(())
    }
}
