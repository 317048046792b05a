//! `lock-busy`: lock owners that are preempted. On every CPU one thread takes a lock that all share, and busy threads
//! take the CPU away from it.

use crate::crew::{self, Gate};
use crate::shared::{self, Semantics, with_shared};
use crate::{Failure, Trial, Workload, clock};
use experiment::Direction::{Higher, Lower};
use experiment::{Axis, Description, Metric, Parameter, Params, Point};
use locks::{Guarded, Lock, Visitor};
use stats::Histogram;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// A lock thread and busy threads on every CPU, for a fixed time.
pub struct LockBusy;

impl Workload for LockBusy {
    fn describe(&self) -> Description {
        Description {
            name: "lock-busy".into(),
            summary:
                "one lock thread per CPU among busy threads: how often the lock is had, how long waited for"
                    .into(),
            about: ABOUT.into(),
            source: SOURCE.into(),
            axis: Axis {
                name: "busy".into(),
                heading: "Busy".into(),
                suffix: "-per-cpu".into(),
                points: vec![Point::from(5)],
                range: Some((0, BUSY_MAX)),
            },
            parameters: with_shared(parameters(), &[]),
            metrics: metrics(),
            requirements: Vec::new(),
        }
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        let lock = params.text("lock")?;
        let plan = Plan::new(params, trial)?;
        let warmup = shared::warmup(params)?;
        if !warmup.is_zero() {
            play(lock, &Plan { time: warmup, ..plan.clone() })?;
        }
        leave(&play(lock, &plan)?, trial)
    }
}

/// More busy threads than would help anybody.
const BUSY_MAX: u64 = 10_000;

/// What the threads do.
#[derive(Debug, Clone)]
struct Plan {
    /// The CPUs, each with one lock thread and `busy` busy threads.
    cpus: Vec<u32>,
    busy: usize,
    time: Duration,
    hold_fences: u64,
    rest: Duration,
    rest_step: Duration,
    busy_fences: u64,
    busy_rest: Duration,
    /// The step of the time stamps, in nanoseconds.
    tick_ns: u64,
}

impl Plan {
    fn new(params: &Params, trial: &Trial) -> Result<Plan, Failure> {
        let busy = trial.count()?;
        if busy > BUSY_MAX {
            return Err(Failure::Refused(format!("{busy} busy threads per CPU: take from 0 to {BUSY_MAX}")));
        }
        let microseconds = |name: &str| Ok::<_, Failure>(Duration::from_micros(params.count(name)?));
        Ok(Plan {
            cpus: trial.cpus().to_vec(),
            busy: busy as usize,
            time: Duration::from_secs_f64(params.decimal("seconds")?),
            hold_fences: params.count("hold-fences")?,
            rest: microseconds("rest-us")?,
            rest_step: microseconds("rest-step-us")?,
            busy_fences: params.count("busy-fences")?,
            busy_rest: microseconds("busy-rest-us")?,
            tick_ns: if shared::semantics(params)? == Semantics::Original { 1000 } else { 1 },
        })
    }

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
struct Member {
    sections: u64,
    contended: u64,
    waits_ns: Times,
    holds_ns: Times,
    ended_ns: u64,
}

/// Times with their exact sum.
#[derive(Debug, Default)]
struct Times {
    sum_ns: u64,
    max_ns: u64,
    histogram: Histogram,
}

impl Times {
    fn record(&mut self, time_ns: u64) {
        self.sum_ns += time_ns;
        self.max_ns = self.max_ns.max(time_ns);
        self.histogram.record(time_ns);
    }

    fn merge(&mut self, other: &Times) {
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.histogram.merge(&other.histogram);
    }
}

/// What came of a round.
#[derive(Debug)]
struct Round {
    opened_ns: u64,
    count: u64,
    overlaps: u64,
    members: Vec<Member>,
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
            member.waits_ns.record(has_ns.saturating_sub(wants_ns));
            member.holds_ns.record(done_ns.saturating_sub(has_ns));
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
        let pinned = machine::cpus::pin_thread_to(plan.cpus[place]);
        if pinned.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        // Whether pinned or not: the others wait for this thread to arrive.
        let complete = gate.wait();
        pinned.map_err(|error| Failure::Refused(error.to_string()))?;
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

fn play(lock: &str, plan: &Plan) -> Result<Round, Failure> {
    let played = locks::visit(lock, plan);
    let round = played.unwrap_or_else(|| Err(Failure::Refused(format!("no lock is called `{lock}`"))))?;
    check(&round)?;
    Ok(round)
}

fn check(round: &Round) -> Result<(), Failure> {
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

fn leave(round: &Round, trial: &mut Trial) -> Result<(), Failure> {
    let (mut waits, mut holds) = (Times::default(), Times::default());
    for member in &round.members {
        waits.merge(&member.waits_ns);
        holds.merge(&member.holds_ns);
    }
    let ended_ns = round.members.iter().map(|member| member.ended_ns).max().unwrap_or(round.opened_ns);
    let elapsed_s = clock::seconds_between(round.opened_ns, ended_ns);
    if elapsed_s <= 0.0 {
        return Err(Failure::Invariant(format!("the round took {elapsed_s} s by the clock")));
    }
    let sections = round.count as f64;
    let contended: u64 = round.members.iter().map(|member| member.contended).sum();
    trial.sample("rate", sections / elapsed_s)?;
    trial.sample("wait-mean", waits.sum_ns as f64 / 1e3 / sections)?;
    trial.sample("wait-max", waits.max_ns as f64 / 1e3)?;
    trial.sample("hold-mean", holds.sum_ns as f64 / 1e3 / sections)?;
    trial.sample("hold-max", holds.max_ns as f64 / 1e3)?;
    trial.sample("contention", contended as f64 / sections)?;
    trial.histogram("wait", &waits.histogram)?;
    trial.histogram("hold", &holds.histogram)?;
    trial.counter("sections", sections);
    trial.counter("contended", contended as f64);
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

fn parameters() -> Vec<Parameter> {
    let lock = Parameter::choice("lock", &locks::names(), "which lock; `kduel list locks` says what each is");
    vec![
        Parameter { default: "ttas".into(), ..lock },
        Parameter::decimal("seconds", 5.0, 0.001, 86_400.0, "how long it runs"),
        Parameter::integer("hold-fences", 15_000, 0, 1_000_000_000, "store fences inside a section"),
        Parameter::integer(
            "rest-us",
            100,
            0,
            1_000_000_000,
            "sleep of a lock thread between two sections, in us",
        ),
        Parameter::integer(
            "rest-step-us",
            27,
            0,
            1_000_000,
            "how much longer the lock thread of each further CPU sleeps, in us",
        ),
        Parameter::integer(
            "busy-fences",
            100,
            0,
            1_000_000_000,
            "store fences of a busy thread between two sleeps",
        ),
        Parameter::integer("busy-rest-us", 10, 0, 1_000_000_000, "sleep of a busy thread, in us"),
    ]
}

fn metrics() -> Vec<Metric> {
    let us = |name: &str, units_line: &str, help: &str| Metric::new(name, "us", Lower, units_line, help);
    vec![
        Metric::new(
            "rate",
            "1/s",
            Higher,
            "acquisitions per second",
            "acquisitions of the lock per second, all CPUs together",
        ),
        us("wait-mean", "mean wait in us", "the mean wait for the lock, over all acquisitions"),
        us("wait-max", "longest wait in us", "the longest wait for the lock").secondary(),
        us("hold-mean", "mean hold in us", "the mean time in a section, time without the CPU included")
            .secondary(),
        us("hold-max", "longest hold in us", "the longest time in a section").secondary(),
        Metric::new(
            "contention",
            "",
            Lower,
            "contended acquisitions",
            "the part of the acquisitions that found the lock held",
        )
        .secondary(),
    ]
}

const SOURCE: &str = "\
extend-sched.c by Steven Rostedt, as attached to a public mail of June 2025, by its description. Its flags for the time \
slice extension have no counterpart yet.";

const ABOUT: &str = "\
On every CPU that the trial may use, one lock thread and `busy` busy threads are pinned. The lock thread takes a lock \
that all share, holds it for `hold-fences` store fences, releases it and sleeps for `rest-us` plus `rest-step-us` for \
each CPU before its own. A busy thread does `busy-fences` store fences and sleeps for `busy-rest-us`, over and over. So \
owners lose their CPU inside sections, and others spin meanwhile. All run for `seconds` after a common start.

The trial counts only if no two sections overlapped and the counter under the lock equals the number of sections.

With `semantics=original` times are taken in whole microseconds, as the original has them; with `semantics=strict` in \
nanoseconds. Both use the monotonic raw clock, which nobody sets, where the original used the time of day; and both \
use the CPUs that the trial may use, where the original used all that are configured.";

#[cfg(test)]
mod tests {
    use super::*;
    use locks::{Ttas, Unavailable};

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

    /// Lets everybody in.
    struct NoLock;

    // SAFETY: it is not safe, which is what the test is about: sections overlap, and the workload must notice.
    unsafe impl Lock for NoLock {
        const NAME: &'static str = "no-lock";
        const SUMMARY: &'static str = "none";
        type Context = ();

        fn new() -> Result<Self, Unavailable> {
            Ok(NoLock)
        }

        fn with<R>(&self, (): &mut (), section: impl FnOnce() -> R) -> R {
            section()
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
