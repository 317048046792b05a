//! Whether this kernel lends the turn of a waiter to the owner of a mutex. The answer is which of two things came first, and
//! no time, so that it is the same on a machine that is emulated.

use super::kernel_paths::Position;
use super::path::Path;
use super::priority::{Priorities, Role};
use crate::Failure;
use crate::clock::thread_cpu_ns;
use crate::crew::{self, Gate};
use crate::processes::Children;
use crate::shared::pin;
use experiment::{Knob, Scope};
use machine::CpuSet;
use std::hint::spin_loop;
use std::io::{self, Read as _, Write as _};
use std::iter::repeat_with;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::thread::{self, Thread, sleep};
use std::time::Duration;

/// As often is tried what comes first.
const ROUNDS: u32 = 5;
/// What the owner reads in one call, so that it has the mutex most of the time.
const BYTES: usize = 1 << 20;
/// For how long the hog leaves the CPU to the owner, in front of every look at it.
const PAUSE: Duration = Duration::from_millis(3);
/// As often the hog looks for an owner that has the mutex. A machine that is emulated beside other work may need many.
const LOOKS: u32 = 200;
/// For how long the hog wants the CPU, in nanoseconds of its own processor time. Where the turn is lent, it has none before the
/// waiter has had the mutex. It is short, since the kernel gives ordinary threads a twentieth of each second whatever the
/// real-time threads want, and that must not pass for a turn that is lent.
const PATIENCE_NS: u64 = 5_000_000;

/// What came first, by rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lending {
    /// The waiter had the mutex while a hog kept its owner from the CPU.
    pub lent: u32,
    /// The hog gave up first.
    pub not_lent: u32,
}

/// Plays the rounds on the first of `cpus`, in a process of its own, so that the calling one keeps its single thread, its
/// memory and its priority.
///
/// # Errors
/// Why it could not be seen, in one clause: this user may have no real-time priorities, or the kernel does not preempt.
pub fn lending(cpus: &[u32]) -> Result<Lending, String> {
    let cpu = *cpus.first().ok_or("the trial may use no CPU")?;
    let (lent, not_lent) = in_a_process(|| play(cpu)).map_err(|error| error.to_string())??;
    Ok(Lending { lent, not_lent })
}

/// What `body` counts in a child of this process, which must have a single thread; or why it could not.
fn in_a_process(
    body: impl FnOnce() -> Result<(u32, u32), Failure>,
) -> io::Result<Result<(u32, u32), String>> {
    let (mut reader, mut writer) = io::pipe()?;
    let mut child = Children::default();
    child.fork(|| {
        let said = serde_json::to_vec(&body().map_err(|failure| failure.to_string()));
        let written = said.map_err(io::Error::from).and_then(|said| writer.write_all(&said));
        u8::from(written.is_err())
    })?;
    drop(writer);
    let mut said = Vec::new();
    reader.read_to_end(&mut said)?;
    child.wait_all().map_err(io::Error::other)?;
    Ok(serde_json::from_slice(&said)?)
}

/// What the three threads know of each other.
struct Scene {
    path: Position,
    /// Where the owner reads to: while only the first bytes have come, it has the mutex.
    buffer: Vec<AtomicU8>,
    /// A thread could not be placed, so nothing is played.
    misplaced: AtomicBool,
    /// How often the waiter was to take the mutex.
    wanted: AtomicU32,
    /// How often it had it.
    had: AtomicU32,
    /// All is over.
    over: AtomicBool,
    waiter: OnceLock<Thread>,
}

/// In how many rounds the waiter came first, and in how many the hog.
fn play(cpu: u32) -> Result<(u32, u32), Failure> {
    let scene = Scene {
        path: Position::new(BYTES)?,
        buffer: repeat_with(|| AtomicU8::new(0)).take(BYTES).collect(),
        misplaced: AtomicBool::new(false),
        wanted: AtomicU32::new(0),
        had: AtomicU32::new(0),
        over: AtomicBool::new(false),
        waiter: OnceLock::new(),
    };
    let ((), found) = crew::run(3, |index, gate| scene.take_part(index, cpu, gate), Gate::open)?;
    let found = found.into_iter().collect::<Result<Vec<Option<Lending>>, Failure>>()?;
    match found.into_iter().flatten().next() {
        Some(Lending { lent, not_lent }) if lent + not_lent > 0 => Ok((lent, not_lent)),
        _ => Err(Failure::Refused(
            "the owner of the mutex was never preempted while it had it; boot with append=preempt=full"
                .into(),
        )),
    }
}

impl Scene {
    fn take_part(&self, index: usize, cpu: u32, gate: &Gate) -> Result<Option<Lending>, Failure> {
        let role = [Role::Owner, Role::Waiter, Role::Hog][index];
        let placed = place(role, cpu);
        if placed.is_err() {
            self.misplaced.store(true, Ordering::Release);
        }
        if role == Role::Waiter {
            // It is the only one, so there was none before.
            let _ = self.waiter.set(thread::current());
        }
        // Whether placed or not: the others wait for this thread to arrive.
        let complete = gate.wait();
        placed?;
        if !complete || self.misplaced.load(Ordering::Acquire) {
            return Ok(None);
        }
        let done = match role {
            Role::Owner => self.own().map(|()| None),
            Role::Waiter => self.want().map(|()| None),
            Role::Hog => Ok(Some(self.hog())),
        };
        // Whoever fails must not let the others wait for it.
        self.end();
        done
    }

    /// The owner, which marks both ends of its buffer before each read.
    fn own(&self) -> Result<(), Failure> {
        while !self.over.load(Ordering::Acquire) {
            self.ends().into_iter().flatten().for_each(|end| end.store(0, Ordering::Release));
            self.path.read_to(&self.buffer)?;
        }
        Ok(())
    }

    /// The first and the last byte of what the owner reads.
    fn ends(&self) -> [Option<&AtomicU8>; 2] {
        [self.buffer.first(), self.buffer.last()]
    }

    /// Whether the owner has the mutex, if it does not run.
    fn is_held(&self) -> bool {
        self.ends().map(|end| end.is_some_and(|end| end.load(Ordering::Acquire) != 0)) == [true, false]
    }

    /// The waiter, which sleeps until it is to take the mutex.
    fn want(&self) -> Result<(), Failure> {
        let mut wait = self.path.waiter();
        while !self.over.load(Ordering::Acquire) {
            match self.is_waiting() {
                true => {
                    wait()?;
                    self.had.fetch_add(1, Ordering::AcqRel);
                }
                false => thread::park(),
            }
        }
        Ok(())
    }

    /// The hog, which decides when a round begins and what came first.
    fn hog(&self) -> Lending {
        let mut found = Lending { lent: 0, not_lent: 0 };
        for _ in 0..LOOKS {
            sleep(PAUSE);
            if self.over.load(Ordering::Acquire) || found.lent + found.not_lent == ROUNDS {
                break;
            }
            // The owner is on this CPU, so it does not run.
            if !self.is_held() || self.is_waiting() {
                continue;
            }
            self.wanted.fetch_add(1, Ordering::AcqRel);
            // The waiter takes the CPU at once, and comes to wait for the mutex.
            self.wake_waiter();
            let until_ns = thread_cpu_ns() + PATIENCE_NS;
            while self.is_waiting() && thread_cpu_ns() < until_ns {
                spin_loop();
            }
            match self.is_waiting() {
                true => found.not_lent += 1,
                false => found.lent += 1,
            }
        }
        found
    }

    /// Whether the waiter was to take the mutex and has not had it.
    fn is_waiting(&self) -> bool {
        self.had.load(Ordering::Acquire) < self.wanted.load(Ordering::Acquire)
    }

    fn wake_waiter(&self) {
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_waiter();
    }
}

/// Puts the calling thread on the CPU, with the priority of its role.
fn place(role: Role, cpu: u32) -> Result<(), Failure> {
    pin(&CpuSet::one(cpu))?;
    if role == Role::Owner {
        // Whatever kduel was started with: the hog must be more important.
        let ordinary = Knob { scope: Scope::Policy, value: "other".into() };
        return machine::apply_to_self(&[ordinary]).map_err(|problem| Failure::Refused(problem.to_string()));
    }
    Priorities::Fifo.take(role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::{alone, leaving_nothing};

    #[test]
    fn the_rounds_end_with_an_answer_or_a_reason_and_leave_nothing() {
        alone(
            "inversion::lending::tests::the_rounds_end_with_an_answer_or_a_reason_and_leave_nothing",
            || {
                let cpus = machine::cpus::allowed().unwrap().to_vec();
                match leaving_nothing(|| lending(&cpus)) {
                    Ok(Lending { lent, not_lent }) => assert!((1..=ROUNDS).contains(&(lent + not_lent))),
                    Err(why) => assert!(why.contains("priority") || why.contains("preempt=full"), "{why}"),
                }
                assert!(lending(&[]).unwrap_err().contains("no CPU"));
            },
        );
    }

    #[test]
    fn a_process_that_dies_over_it_is_told() {
        alone("inversion::lending::tests::a_process_that_dies_over_it_is_told", || {
            let died = leaving_nothing(|| in_a_process(|| panic!("on purpose")));
            assert!(died.unwrap_err().to_string().contains("status 101"));
        });
    }
}
