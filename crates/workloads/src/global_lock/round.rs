//! One round: threads that contend for one lock, and what each of them did.

use super::observer::{ByOwner, ByWait, Observer, Off, Owners};
use super::place::{Alone, Apart, Beside, Place};
use super::work::{Idle, Units, Work};
use crate::{Failure, clock, crew};
use locks::{Guarded, Lock, Visitor};
use rustix::time::{ClockId, clock_gettime};
use stats::Histogram;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What the threads of a round do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many threads.
    pub threads: usize,
    /// When the round is over.
    pub end: End,
    /// Whether a thread that is done with its share goes on contending until all are.
    pub no_tail: bool,
    /// Whether the counter stands on cache lines of its own.
    pub apart: bool,
    /// Units of work inside a section.
    pub hold: u64,
    /// Units of work between two sections.
    pub think: u64,
    /// What is recorded.
    pub observe: Observe,
    /// What the units of work begin with.
    pub seed: u64,
}

/// When a round is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// When each thread has done its equal share of so many sections.
    Split(u64),
    /// When the threads together have done so many sections, whoever did them.
    Claim(u64),
    /// After this time.
    After(Duration),
}

/// What is recorded about each section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observe {
    /// Nothing.
    Off,
    /// Who owns the lock.
    Owners,
    /// How long it was waited for.
    Waits,
}

/// What came of a round.
#[derive(Debug)]
pub struct Round {
    /// When the gate opened.
    pub opened_ns: u64,
    /// What the counter came to.
    pub count: u64,
    /// What each thread did.
    pub members: Vec<Member>,
    /// Who owned the lock, where that was recorded.
    pub owners: Option<Owners>,
}

/// What a thread did. The times are readings of the clock.
#[derive(Debug)]
pub struct Member {
    /// Its sections.
    pub sections: u64,
    /// When it had passed the gate.
    pub began_ns: u64,
    /// When it had done its share.
    pub finished_ns: u64,
    /// When it had stopped contending, which is later than its share where there is to be no tail.
    pub ended_ns: u64,
    /// The processor time that it took.
    pub cpu_ns: u64,
    /// How long it waited for its sections, where that was recorded.
    pub waits: Option<Histogram>,
}

/// What the lock protects.
#[derive(Default)]
struct Protected<S> {
    count: u64,
    observed: S,
}

/// How many sections a thread may do.
trait Quota {
    /// Whether to ask for the lock again after `done` sections.
    fn more(&self, done: u64) -> bool;
    /// Whether a section may be counted, where all threads together have done `count`.
    fn admits(&self, count: u64) -> bool;
}

struct Share(u64);

impl Quota for Share {
    #[inline(always)]
    fn more(&self, done: u64) -> bool {
        done != self.0
    }

    #[inline(always)]
    fn admits(&self, _: u64) -> bool {
        true
    }
}

struct Claim(u64);

impl Quota for Claim {
    #[inline(always)]
    fn more(&self, _: u64) -> bool {
        true
    }

    #[inline(always)]
    fn admits(&self, count: u64) -> bool {
        count < self.0
    }
}

struct Until<'a>(&'a AtomicBool);

impl Quota for Until<'_> {
    #[inline(always)]
    fn more(&self, _: u64) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn admits(&self, _: u64) -> bool {
        true
    }
}

/// The measured loop. Every kind of lock, place, quota, work and observer makes a loop of its own, in which nothing
/// is decided that was known before. Returns how many sections this thread did.
#[inline(never)]
fn contend<L: Lock, O: Observer, P: Place<Protected<O::Shared>>>(
    shared: &Guarded<L, P>,
    context: &mut L::Context,
    quota: impl Quota,
    work: &mut impl Work,
    observer: &mut O,
) -> u64 {
    let mut done = 0;
    while quota.more(done) {
        observer.wants();
        let counted = shared.with(context, |place| {
            let protected = place.get();
            if !quota.admits(protected.count) {
                return false;
            }
            observer.has(&mut protected.observed);
            protected.count += 1;
            work.hold();
            true
        });
        if !counted {
            break;
        }
        observer.left();
        work.think();
        done += 1;
    }
    done
}

/// Plays a round with the lock of this type.
impl Visitor for &Plan {
    type Output = Result<Round, Failure>;

    fn visit<L: Lock>(self) -> Result<Round, Failure> {
        match self.observe {
            Observe::Off => self.play_observed::<L, Off>(),
            Observe::Owners => self.play_observed::<L, ByOwner>(),
            Observe::Waits => self.play_observed::<L, ByWait>(),
        }
    }
}

impl Plan {
    fn play_observed<L: Lock, O: Observer>(&self) -> Result<Round, Failure> {
        if self.apart {
            self.play::<L, O, Apart<Protected<O::Shared>>>()
        } else {
            self.play::<L, O, Beside<Protected<O::Shared>>>()
        }
    }

    fn play<L: Lock, O: Observer, P: Place<Protected<O::Shared>>>(&self) -> Result<Round, Failure> {
        let shared = Guarded::<L, P>::new(P::put(Protected::default()));
        let shared = Alone(shared.map_err(|error| Failure::Refused(error.to_string()))?);
        let stop = Alone(AtomicBool::new(false));
        let shares_done = Alone(AtomicUsize::new(0));
        let (opened_ns, members) = crew::run(
            self.threads,
            |index, gate| {
                let mut context = L::Context::default();
                let mut observer = O::new(index);
                if !gate.wait() {
                    return None;
                }
                let began_ns = clock::now_ns();
                let cpu_before_ns = thread_cpu_ns();
                let mut contend =
                    |end| self.contend(index, end, &shared.0, &mut context, &mut observer, &stop.0);
                let mut sections = contend(self.end);
                let finished_ns = clock::now_ns();
                if self.no_tail && matches!(self.end, End::Split(_)) {
                    if shares_done.0.fetch_add(1, Ordering::Relaxed) + 1 == self.threads {
                        stop.0.store(true, Ordering::Relaxed);
                    }
                    sections += contend(End::After(Duration::ZERO));
                }
                let cpu_ns = thread_cpu_ns() - cpu_before_ns;
                let ended_ns = clock::now_ns();
                let waits = observer.waits();
                Some(Member { sections, began_ns, finished_ns, ended_ns, cpu_ns, waits })
            },
            |gate| {
                let opened_ns = clock::now_ns();
                gate.open();
                if let End::After(time) = self.end {
                    thread::sleep(time);
                    stop.0.store(true, Ordering::Relaxed);
                }
                opened_ns
            },
        )?;
        let mut place = shared.0.into_inner();
        let protected = place.get();
        Ok(Round {
            opened_ns,
            count: protected.count,
            members: members.into_iter().flatten().collect(),
            owners: O::owners(&protected.observed),
        })
    }

    /// One thread contends until its part is done.
    fn contend<L: Lock, O: Observer, P: Place<Protected<O::Shared>>>(
        &self,
        index: usize,
        end: End,
        shared: &Guarded<L, P>,
        context: &mut L::Context,
        observer: &mut O,
        stop: &AtomicBool,
    ) -> u64 {
        if O::IS_OFF && self.hold == 0 && self.think == 0 {
            match end {
                End::Split(total) => {
                    contend(shared, context, Share(self.share(total, index)), &mut Idle, observer)
                }
                End::Claim(total) => contend(shared, context, Claim(total), &mut Idle, observer),
                End::After(_) => contend(shared, context, Until(stop), &mut Idle, observer),
            }
        } else {
            let mut units =
                Units { hold: self.hold, think: self.think, state: self.seed ^ (index as u64 + 1) | 1 << 63 };
            let work = &mut units;
            match end {
                End::Split(total) => {
                    contend(shared, context, Share(self.share(total, index)), work, observer)
                }
                End::Claim(total) => contend(shared, context, Claim(total), work, observer),
                End::After(_) => contend(shared, context, Until(stop), work, observer),
            }
        }
    }

    /// How many of `total` sections fall to the thread `index`.
    pub fn share(&self, total: u64, index: usize) -> u64 {
        let threads = self.threads as u64;
        total / threads + u64::from((index as u64) < total % threads)
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // It counts up from the start of the thread, so neither part is negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
