//! One round: threads that take one lock, with pauses.

use super::chances::{Chances, Due, Holds, REST, Rarity, SHORT_HOLD, Spread};
use super::nest::Nest;
use crate::Failure;
use crate::clock::{now_ns, seconds_between};
use crate::crew::{self, Gate};
use crate::random::Random;
use experiment::{Knob, Scope};
use locks::{Guarded, Lock, Visitor};
use rustix::thread::futex;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{sleep, yield_now};
use std::time::Duration;

/// What the threads do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many.
    pub threads: usize,
    /// How long they run, pauses left out.
    pub time: Duration,
    /// How long they run, and then pause, by turns; zero for no pauses.
    pub stutter: Duration,
    /// Whose holds.
    pub holds: Holds,
    /// A long hold, before it is multiplied for a mutex.
    pub long_hold: Duration,
    /// Further locks.
    pub nested: usize,
    /// How rare acquisitions lie among the others.
    pub spread: Spread,
    /// Whether they have nice value 19.
    pub nice: bool,
    /// For what comes by chance.
    pub seed: u64,
}

/// What came of a round.
#[derive(Debug)]
pub struct Round {
    /// From the opening of the gate to the last thread's end, pauses left out.
    pub running_s: f64,
    /// What the counter under the lock came to.
    pub counted: u64,
    /// What each thread did.
    pub members: Vec<Member>,
}

/// What a thread did.
#[derive(Debug, Default)]
pub struct Member {
    /// How often it had the lock.
    pub acquisitions: u64,
    /// How often it held it for long.
    pub long_holds: u64,
    /// How often it held it for a short time.
    pub short_holds: u64,
    /// How often it was not alone under the lock.
    failures: u64,
    ended_ns: u64,
}

impl Round {
    /// How often all threads together had the lock.
    pub fn acquisitions(&self) -> u64 {
        self.members.iter().map(|member| member.acquisitions).sum()
    }

    /// Checks that the lock kept the threads apart.
    pub fn check(&self, lock: &str) -> Result<(), Failure> {
        let total = self.acquisitions();
        let failures: u64 = self.members.iter().map(|member| member.failures).sum();
        if failures > 0 {
            return Err(Failure::Invariant(format!(
                "the lock `{lock}` is broken: in {failures} of {total} acquisitions a thread was not alone under it"
            )));
        }
        if self.counted != total {
            return Err(Failure::Invariant(format!(
                "the lock `{lock}` is broken: of {total} acquisitions, the counter under it has {}",
                self.counted
            )));
        }
        Ok(())
    }
}

const RUN: u32 = 0;
const PAUSE: u32 = 1;
const STOP: u32 = 2;

/// What the threads share, each part on cache lines of its own.
struct Scene<L> {
    locked: Apart<Guarded<L, u64>>,
    /// The thread under the lock, from 1; 0 for none.
    inside: Apart<AtomicU32>,
    state: Apart<AtomicU32>,
    nested: Vec<Guarded<L, ()>>,
}

/// On a pair of cache lines; a pair, because some processors fetch two at a time.
#[repr(align(128))]
struct Apart<T>(T);

/// Plays a round with the lock of this type.
impl Visitor for &Plan {
    type Output = Result<Round, Failure>;

    fn visit<L: Lock>(self) -> Result<Round, Failure> {
        let refused = |error: locks::Unavailable| Failure::Refused(error.to_string());
        let scene = Scene::<L> {
            locked: Apart(Guarded::new(0).map_err(refused)?),
            inside: Apart(AtomicU32::new(0)),
            state: Apart(AtomicU32::new(RUN)),
            nested: (0..self.nested).map(|_| Guarded::new(())).collect::<Result<_, _>>().map_err(refused)?,
        };
        let ((opened_ns, paused_s), members) = crew::run(
            self.threads,
            |index, gate| scene.take_part(self, index, gate),
            |gate| {
                let opened_ns = now_ns();
                gate.open();
                (opened_ns, scene.conduct(self))
            },
        )?;
        let members: Vec<Member> = members.into_iter().flatten().collect();
        let ended_ns = members.iter().map(|member| member.ended_ns).max().unwrap_or(opened_ns);
        let running_s = seconds_between(opened_ns, ended_ns) - paused_s;
        Ok(Round { running_s, counted: scene.locked.0.into_inner(), members })
    }
}

impl<L: Lock> Scene<L> {
    /// Lets the threads run and pause until their time is over. Returns the seconds of the pauses.
    fn conduct(&self, plan: &Plan) -> f64 {
        let (mut left, mut paused_s) = (plan.time, 0.0);
        loop {
            let run = if plan.stutter.is_zero() { left } else { plan.stutter.min(left) };
            sleep(run);
            left -= run;
            if left.is_zero() {
                self.turn(STOP);
                return paused_s;
            }
            let start_ns = now_ns();
            self.turn(PAUSE);
            sleep(plan.stutter);
            self.turn(RUN);
            paused_s += seconds_between(start_ns, now_ns());
        }
    }

    fn turn(&self, state: u32) {
        self.state.0.store(state, Ordering::Release);
        // Waking cannot fail on an aligned word of our own.
        let _ = futex::wake(&self.state.0, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// What one thread does; nothing if the crew could not be completed.
    fn take_part(&self, plan: &Plan, index: usize, gate: &Gate) -> Option<Member> {
        if plan.nice {
            // Every user may be nicer, and one that already is has what was wanted.
            let _ = machine::apply_to_self(&[Knob { scope: Scope::Nice, value: "19".into() }]);
        }
        let rarity = Rarity::of(plan.holds, plan.threads, plan.long_hold);
        let chances = Chances::new(rarity, plan.spread, plan.seed, index, plan.threads);
        // Other choices than those of the chances, which are by the index too.
        let mut nest = Nest::new(&self.nested, Random::new(plan.seed, plan.threads + index));
        if !gate.wait() {
            return None;
        }
        let long_hold = match plan.holds {
            Holds::Spin => plan.long_hold,
            Holds::Mutex => 5 * plan.long_hold,
        };
        let mut member = match plan.nested {
            0 => self.torture(index, chances, long_hold, |section| section()),
            _ => self.torture(index, chances, long_hold, |section| nest.within(section)),
        };
        member.ended_ns = now_ns();
        Some(member)
    }

    /// The loop. `around` calls the section that it is given, under further locks where there are any, or not at all.
    fn torture(
        &self,
        index: usize,
        mut chances: Chances,
        long_hold: Duration,
        mut around: impl FnMut(&mut dyn FnMut()),
    ) -> Member {
        let (mut member, mut context) = (Member::default(), L::Context::default());
        let (me, mut tries) = (index as u32 + 1, 0);
        loop {
            tries += 1;
            let due = chances.due(tries);
            if due.is_some_and(|due| due.rest) {
                sleep(REST);
            }
            around(&mut || {
                self.locked.0.with(&mut context, |counter| {
                    let before = self.inside.0.load(Ordering::Relaxed);
                    self.inside.0.store(me, Ordering::Relaxed);
                    *counter += 1;
                    if let Some(due) = due {
                        hold(due, long_hold, &mut member);
                    }
                    let after = self.inside.0.load(Ordering::Relaxed);
                    self.inside.0.store(0, Ordering::Relaxed);
                    member.failures += u64::from(before != 0 || after != me);
                });
                member.acquisitions += 1;
            });
            let mut state = self.state.0.load(Ordering::Relaxed);
            while state == PAUSE {
                // Whatever it returns, the state is looked at again.
                let _ = futex::wait(&self.state.0, futex::Flags::PRIVATE, PAUSE, None);
                state = self.state.0.load(Ordering::Relaxed);
            }
            // At least one acquisition, however late this thread got a CPU.
            if state == STOP && member.acquisitions > 0 {
                return member;
            }
        }
    }
}

/// What is done under the lock when something is.
#[cold]
fn hold(due: Due, long_hold: Duration, member: &mut Member) {
    if due.short {
        member.short_holds += 1;
        turn_for(SHORT_HOLD);
    }
    if due.long {
        member.long_holds += 1;
        turn_for(long_hold);
    }
    if due.yields {
        yield_now();
    }
}

/// Keeps the CPU for so long.
fn turn_for(time: Duration) {
    let end_ns = now_ns() + time.as_nanos() as u64;
    while now_ns() < end_ns {
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_lock::NoLock;
    use locks::Ttas;

    fn plan() -> Plan {
        Plan {
            threads: 2,
            time: Duration::from_millis(40),
            stutter: Duration::ZERO,
            holds: Holds::Spin,
            // So that a thread loses its CPU inside a section even where there is only one.
            long_hold: Duration::from_millis(10),
            nested: 0,
            spread: Spread::Evenly,
            nice: false,
            seed: 1,
        }
    }

    #[test]
    fn a_broken_lock_is_an_invariant_failure_that_names_it() {
        let caught = (0..20).find_map(|_| (&plan()).visit::<NoLock>().unwrap().check("no-lock").err());
        let caught = caught.unwrap();
        assert!(matches!(caught, Failure::Invariant(_)));
        assert!(caught.to_string().contains("the lock `no-lock` is broken"), "{caught}");
    }

    #[test]
    fn a_lost_acquisition_is_an_invariant_failure() {
        let mut round = (&plan()).visit::<Ttas>().unwrap();
        round.check("ttas").unwrap();
        round.counted -= 1;
        assert!(matches!(round.check("ttas"), Err(Failure::Invariant(_))));
    }

    #[test]
    fn pauses_are_not_part_of_the_time() {
        let plan = Plan { stutter: Duration::from_millis(10), time: Duration::from_millis(20), ..plan() };
        let start_ns = now_ns();
        let round = (&plan).visit::<Ttas>().unwrap();
        let whole_s = seconds_between(start_ns, now_ns());
        assert!(
            round.running_s > 0.0 && whole_s - round.running_s >= 0.01,
            "{} of {whole_s}",
            round.running_s
        );
    }
}
