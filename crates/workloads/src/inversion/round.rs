//! One round: owner, waiter and hogs, for a fixed time.

use super::path::Path;
use super::priority::{Priorities, Role};
use crate::Failure;
use crate::clock::{now_ns, seconds_between, thread_cpu_ns};
use crate::crew::{self, Gate};
use crate::shared::pin;
use crate::times::Times;
use machine::CpuSet;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// What the threads do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The CPUs, each with its hogs; owner and waiter are on any of them.
    pub cpus: Vec<u32>,
    /// Hogs on each CPU.
    pub hogs: usize,
    /// How long the round takes.
    pub time: Duration,
    /// The sleep of the waiter between two acquisitions.
    pub interval: Duration,
    /// The sleep of the owner between two holds.
    pub rest: Duration,
    /// The processor time of a real-time hog between two sleeps.
    pub hog_run: Duration,
    /// How important the threads are.
    pub priorities: Priorities,
}

/// What came of a round.
#[derive(Debug)]
pub struct Round {
    /// How long the waiter waited for the lock each time.
    pub waits: Times,
    /// How long the owner held it each time.
    pub holds: Times,
    /// From the opening of the gate to the end of the last wait or hold.
    pub elapsed_s: f64,
}

/// What one thread found out.
enum Found {
    Holds(Times, u64),
    Waits(Times, u64),
    Nothing,
}

impl Plan {
    /// Owner, waiter and hogs.
    pub fn threads(&self) -> usize {
        2 + self.hogs * self.cpus.len()
    }

    /// Plays the round over this path.
    pub fn play<P: Path>(&self, path: P) -> Result<Round, Failure> {
        let (end_ns, misplaced) = (AtomicU64::new(0), AtomicBool::new(false));
        let (opened_ns, found) = crew::run(
            self.threads(),
            |index, gate| self.take_part(index, gate, &path, &end_ns, &misplaced),
            |gate| {
                let opened_ns = now_ns();
                // Each thread ends by itself: the one that waits for them might not get a CPU while the hogs run.
                if !misplaced.load(Ordering::Acquire) {
                    end_ns.store(opened_ns + self.time.as_nanos() as u64, Ordering::Release);
                }
                gate.open();
                opened_ns
            },
        )?;
        let (mut waits, mut holds, mut ended_ns) = (Times::default(), Times::default(), opened_ns);
        for found in found {
            match found? {
                Found::Holds(times, at_ns) => (holds, ended_ns) = (times, ended_ns.max(at_ns)),
                Found::Waits(times, at_ns) => (waits, ended_ns) = (times, ended_ns.max(at_ns)),
                Found::Nothing => {}
            }
        }
        path.check(holds.count(), waits.count())?;
        Ok(Round { waits, holds, elapsed_s: seconds_between(opened_ns, ended_ns) })
    }

    fn take_part(
        &self,
        index: usize,
        gate: &Gate,
        path: &impl Path,
        end_ns: &AtomicU64,
        misplaced: &AtomicBool,
    ) -> Result<Found, Failure> {
        let role = match index {
            0 => Role::Owner,
            1 => Role::Waiter,
            _ => Role::Hog,
        };
        let placed = self.place(index, role);
        if placed.is_err() {
            misplaced.store(true, Ordering::Release);
        }
        // Whether placed or not: the others wait for this thread to arrive.
        let complete = gate.wait();
        placed?;
        if !complete {
            return Ok(Found::Nothing);
        }
        let end_ns = end_ns.load(Ordering::Acquire);
        match role {
            Role::Owner => self.own(path, end_ns),
            Role::Waiter => self.want(path, end_ns),
            Role::Hog => {
                self.hog(end_ns);
                Ok(Found::Nothing)
            }
        }
    }

    fn place(&self, index: usize, role: Role) -> Result<(), Failure> {
        let one = match (role, self.cpus.as_slice()) {
            (Role::Hog, cpus) => cpus.get(index % cpus.len().max(1)),
            (_, [cpu]) => Some(cpu),
            _ => None,
        };
        if let Some(cpu) = one {
            pin(&CpuSet::one(*cpu))?;
        }
        self.priorities.take(role)
    }

    /// The owner, which has the lock at least once.
    fn own(&self, path: &impl Path, end_ns: u64) -> Result<Found, Failure> {
        let (mut hold, mut holds) = (path.owner(), Times::default());
        loop {
            hold(&mut holds)?;
            if now_ns() >= end_ns {
                return Ok(Found::Holds(holds, now_ns()));
            }
            if !self.rest.is_zero() {
                rest(self.rest, end_ns);
            }
        }
    }

    /// The waiter, which gets the lock at least once.
    fn want(&self, path: &impl Path, end_ns: u64) -> Result<Found, Failure> {
        let (mut wait, mut waits) = (path.waiter(), Times::default());
        loop {
            rest(self.interval, end_ns);
            waits.record(wait()?);
            if now_ns() >= end_ns {
                return Ok(Found::Waits(waits, now_ns()));
            }
        }
    }

    /// A hog. One with real-time priority sleeps in between, all hogs of a CPU together at least for an n + 1-th of the
    /// time if there are n.
    fn hog(&self, end_ns: u64) {
        let others_turn = self.hog_run * self.hogs as u32;
        while now_ns() < end_ns {
            if self.priorities == Priorities::Fifo {
                burn(self.hog_run, end_ns);
                rest(others_turn, end_ns);
            } else {
                (0..100).for_each(|_| spin_loop());
            }
        }
    }
}

/// Sleeps for so long, but not beyond `end_ns`.
fn rest(time: Duration, end_ns: u64) {
    sleep(time.min(Duration::from_nanos(end_ns.saturating_sub(now_ns()))));
}

/// Uses up so much processor time, but not beyond `end_ns`.
pub fn burn(time: Duration, end_ns: u64) {
    let until_ns = thread_cpu_ns() + time.as_nanos() as u64;
    while thread_cpu_ns() < until_ns && now_ns() < end_ns {
        (0..10).for_each(|_| spin_loop());
    }
}
