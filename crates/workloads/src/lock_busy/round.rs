//! One round: lock threads and busy threads, and what the lock threads did.

use crate::crew::{self, Gate};
use crate::shared::own_cpu;
use crate::times::Times;
use crate::{Failure, clock};
use locks::{Guarded, Lock, Visitor};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// What the threads do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The CPUs, each with one lock thread.
    pub cpus: Vec<u32>,
    /// Busy threads on each CPU.
    pub busy: usize,
    /// How long the round takes.
    pub time: Duration,
    /// Store fences inside a section.
    pub hold_fences: u64,
    /// The sleep of the first lock thread between two sections.
    pub rest: Duration,
    /// How much longer each further lock thread sleeps.
    pub rest_step: Duration,
    /// Store fences of a busy thread between two sleeps.
    pub busy_fences: u64,
    /// The sleep of a busy thread.
    pub busy_rest: Duration,
    /// The step of the time stamps, in nanoseconds.
    pub tick_ns: u64,
}

impl Plan {
    fn stamp_ns(&self) -> u64 {
        let now_ns = clock::now_ns();
        now_ns - now_ns % self.tick_ns
    }
}

/// What the lock protects.
#[derive(Default)]
struct Protected {
    count: u64,
    /// Sections that began while another had not ended.
    overlaps: u64,
}

/// What the threads share.
struct Scene<L> {
    shared: Guarded<L, Protected>,
    /// The lock thread that is in its section, from 1; 0 for none.
    inside: AtomicU32,
    stop: AtomicBool,
}

/// What a lock thread did.
#[derive(Debug, Default)]
pub struct Member {
    /// Its sections.
    pub sections: u64,
    /// Those before which it saw another thread in its section.
    pub contended: u64,
    /// How long it waited for the lock.
    pub waits: Times,
    /// How long it was in its sections.
    pub holds: Times,
    /// When it left the last one.
    pub ended_ns: u64,
}

/// What came of a round.
#[derive(Debug)]
pub struct Round {
    /// When the gate opened.
    pub opened_ns: u64,
    /// What the counter came to.
    pub count: u64,
    /// Sections that began while another had not ended.
    pub overlaps: u64,
    /// What each lock thread did.
    pub members: Vec<Member>,
}

impl<L: Lock> Scene<L> {
    /// A lock thread: rest, take the lock, hold it for some store fences, release it.
    fn take_and_hold(&self, plan: &Plan, place: usize) -> Member {
        let mut member = Member::default();
        let mut context = L::Context::default();
        let me = place as u32 + 1;
        let rest = plan.rest + plan.rest_step * place as u32;
        while !self.stop.load(Ordering::Relaxed) {
            let contended = self.inside.load(Ordering::Relaxed) != 0;
            let wants_ns = plan.stamp_ns();
            let (has_ns, done_ns) = self.shared.with(&mut context, |protected| {
                let has_ns = plan.stamp_ns();
                let before = self.inside.swap(me, Ordering::Relaxed);
                protected.count += 1;
                (0..plan.hold_fences).for_each(|_| store_fence());
                let after = self.inside.swap(0, Ordering::Relaxed);
                protected.overlaps += u64::from(before != 0 || after != me);
                (has_ns, plan.stamp_ns())
            });
            member.sections += 1;
            member.contended += u64::from(contended);
            member.waits.record(has_ns.saturating_sub(wants_ns));
            member.holds.record(done_ns.saturating_sub(has_ns));
            member.ended_ns = clock::now_ns();
            thread::sleep(rest);
        }
        member
    }

    /// A busy thread: it keeps the CPU for a moment, sleeps for a moment, and so wakes up into others' time slices.
    fn be_busy(&self, plan: &Plan) {
        while !self.stop.load(Ordering::Relaxed) {
            (0..plan.busy_fences).for_each(|_| store_fence());
            thread::sleep(plan.busy_rest);
        }
    }

    /// What one thread does; nothing for a busy thread.
    fn take_part(&self, plan: &Plan, index: usize, gate: &Gate) -> Result<Option<Member>, Failure> {
        let (place, role) = (index / (1 + plan.busy), index % (1 + plan.busy));
        let pinned = own_cpu(&plan.cpus, place);
        if pinned.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        // Whether pinned or not: the others wait for this thread to arrive.
        let complete = gate.wait();
        pinned?;
        Ok(match role {
            _ if !complete => None,
            0 => Some(self.take_and_hold(plan, place)),
            _ => {
                self.be_busy(plan);
                None
            }
        })
    }
}

/// Plays a round with the lock of this type.
impl Visitor for &Plan {
    type Output = Result<Round, Failure>;

    fn visit<L: Lock>(self) -> Result<Round, Failure> {
        let shared = Guarded::<L, _>::new(Protected::default());
        let scene = Scene {
            shared: shared.map_err(|error| Failure::Refused(error.to_string()))?,
            inside: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        };
        let (opened_ns, members) = crew::run(
            self.cpus.len() * (1 + self.busy),
            |index, gate| scene.take_part(self, index, gate),
            |gate| {
                let opened_ns = clock::now_ns();
                gate.open();
                if !scene.stop.load(Ordering::Relaxed) {
                    thread::sleep(self.time);
                }
                scene.stop.store(true, Ordering::Relaxed);
                opened_ns
            },
        )?;
        let members = members.into_iter().filter_map(Result::transpose).collect::<Result<_, Failure>>()?;
        let protected = scene.shared.into_inner();
        Ok(Round { opened_ns, count: protected.count, overlaps: protected.overlaps, members })
    }
}

/// Checks that the work adds up.
///
/// # Errors
/// When sections overlapped or the counter is not the number of sections; when there was no section at all.
pub fn check(round: &Round) -> Result<(), Failure> {
    let done: u64 = round.members.iter().map(|member| member.sections).sum();
    if round.overlaps > 0 {
        return Err(Failure::Invariant(format!("{} sections overlapped under the lock", round.overlaps)));
    }
    if round.count != done {
        return Err(Failure::Invariant(format!(
            "the threads did {done} sections, but the counter under the lock came to {}",
            round.count
        )));
    }
    if done == 0 {
        return Err(Failure::Refused("no thread got the lock in time; raise `seconds`".into()));
    }
    Ok(())
}

/// Lets no later store pass an earlier one: slow enough to be a unit of work, and it writes nothing.
#[inline(always)]
fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_lock::NoLock;
    use locks::Ttas;

    fn plan() -> Plan {
        Plan {
            cpus: machine::cpus::allowed().unwrap().to_vec(),
            busy: 1,
            time: Duration::from_millis(50),
            hold_fences: 2000,
            rest: Duration::ZERO,
            rest_step: Duration::ZERO,
            busy_fences: 10,
            busy_rest: Duration::from_micros(10),
            tick_ns: 1,
        }
    }

    #[test]
    fn a_lock_that_keeps_nobody_out_is_an_invariant_failure() {
        let plan = plan();
        if plan.cpus.len() < 2 {
            eprintln!("skipped: there is one lock thread per CPU, and only one CPU");
            return;
        }
        let caught =
            (0..20).any(|_| matches!(check(&(&plan).visit::<NoLock>().unwrap()), Err(Failure::Invariant(_))));
        assert!(caught);
    }

    #[test]
    fn a_lost_section_is_an_invariant_failure() {
        let mut round = (&plan()).visit::<Ttas>().unwrap();
        check(&round).unwrap();
        round.count -= 1;
        assert!(matches!(check(&round), Err(Failure::Invariant(_))));
    }

    #[test]
    fn a_cpu_that_cannot_be_had_is_named_at_once() {
        let plan = Plan { cpus: vec![60_000], time: Duration::from_secs(3600), ..plan() };
        let failure = (&plan).visit::<Ttas>().unwrap_err();
        assert!(matches!(&failure, Failure::Refused(why) if why.contains("60000")), "{failure}");
    }

    #[test]
    fn original_stamps_are_whole_microseconds() {
        let plan = Plan { tick_ns: 1000, ..plan() };
        assert_eq!(plan.stamp_ns() % 1000, 0);
    }
}
