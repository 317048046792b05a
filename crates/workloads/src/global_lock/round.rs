//! One round: threads that contend for one lock, and what each of them did.

use super::contend::{Claim, Protected, Share, Until, contend, contend_uncounted};
use super::observer::{ByOwner, ByWait, Observer, Off, Owners};
use super::place::{Alone, Apart, Beside, Place};
use super::work::{Idle, Units, Work};
use crate::crew::{self, Gate};
use crate::slice::{self, Extension, Own, Protocol, Unasked, Used};
use crate::{Failure, clock};
use locks::{Guarded, Lock, Visitor};
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
    /// Whether the time covers only what all threads contend for: from when the last one has come to the lock until
    /// the total is reached.
    pub steady: bool,
    /// Where the counter stands.
    pub layout: Layout,
    /// Units of work inside a section.
    pub hold: u64,
    /// Units of work between two sections.
    pub think: u64,
    /// What is recorded.
    pub observe: Observe,
    /// When the threads ask for more time, where they do.
    pub slice: Option<Protocol>,
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

/// Where the counter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// On the cache line of the lock.
    Same,
    /// On a line of its own.
    Split,
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
    /// When the time began: as the gate opened, or when all threads had come to the lock.
    pub start_ns: u64,
    /// When it ended: as the last thread had finished, or as the first one saw that the total was reached.
    pub end_ns: u64,
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
    /// When it had done them.
    pub finished_ns: u64,
    /// The processor time that it took.
    pub cpu_ns: u64,
    /// How long it waited for its sections, where that was recorded.
    pub waits: Option<Histogram>,
    /// What became of its requests for more time.
    pub slices: Used,
}

/// Plays the round with the lock of this type.
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
        match self.layout {
            Layout::Same => self.play::<L, O, Beside<Protected<O::Shared>>>(),
            Layout::Split => self.play::<L, O, Apart<Protected<O::Shared>>>(),
        }
    }

    fn play<L: Lock, O: Observer, P: Place<Protected<O::Shared>>>(&self) -> Result<Round, Failure> {
        let shared = Guarded::new(P::put(Protected::default()));
        let scene = Scene::<L, P> {
            shared: Alone(shared.map_err(|error| Failure::Refused(error.to_string()))?),
            stop: Alone(AtomicBool::new(false)),
            arrived: Alone(AtomicUsize::new(0)),
        };
        let (opened_ns, members) = crew::run(
            self.threads,
            |index, gate| match self.slice {
                None => scene.member::<O>(self, index, gate, Unasked, None),
                Some(_) => slice::of_this_thread(|own| match own {
                    Ok(own) => scene.member::<O>(self, index, gate, own.handle(), Some(own)),
                    Err(failure) => {
                        // Others may wait for all to arrive.
                        scene.arrived.0.fetch_add(1, Ordering::Relaxed);
                        gate.wait().then_some(Err(failure))
                    }
                }),
            },
            |gate| {
                let opened_ns = clock::now_ns();
                gate.open();
                if let End::After(time) = self.end {
                    while self.steady && !scene.all_arrived(self) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    thread::sleep(time);
                    scene.stop.0.store(true, Ordering::Relaxed);
                }
                opened_ns
            },
        )?;
        let mut place = scene.shared.0.into_inner();
        let protected = place.get();
        let members = members.into_iter().flatten().collect::<Result<Vec<(u64, Member)>, Failure>>()?;
        let (began_ns, members): (Vec<u64>, Vec<Member>) = members.into_iter().unzip();
        let finished_ns = || members.iter().map(|member| member.finished_ns);
        let ended_ns = match self.end {
            End::Claim(_) if self.steady => finished_ns().min(),
            _ => finished_ns().max(),
        };
        Ok(Round {
            start_ns: began_ns.into_iter().min().filter(|_| self.steady).unwrap_or(opened_ns),
            end_ns: ended_ns.unwrap_or(opened_ns),
            count: protected.count,
            owners: O::owners(&protected.observed),
            members,
        })
    }

    /// How many of `total` sections fall to the thread `index`.
    fn share(&self, total: u64, index: usize) -> u64 {
        let threads = self.threads as u64;
        total / threads + u64::from((index as u64) < total % threads)
    }
}

/// What the threads of a round share, each part on cache lines of its own.
struct Scene<L, P> {
    shared: Alone<Guarded<L, P>>,
    stop: Alone<AtomicBool>,
    arrived: Alone<AtomicUsize>,
}

impl<L: Lock, P> Scene<L, P> {
    fn all_arrived(&self, plan: &Plan) -> bool {
        self.arrived.0.load(Ordering::Relaxed) == plan.threads
    }

    /// What one thread does, and when it began; nothing if the crew could not be completed. `own` is what counts the
    /// requests of its extension.
    fn member<O: Observer>(
        &self,
        plan: &Plan,
        index: usize,
        gate: &Gate,
        extension: impl Extension,
        own: Option<&Own>,
    ) -> Option<Result<(u64, Member), Failure>>
    where
        P: Place<Protected<O::Shared>>,
    {
        if O::IS_OFF && plan.hold == 0 && plan.think == 0 {
            self.member_with::<O>(plan, index, gate, Idle, extension, own)
        } else {
            let state = (plan.seed ^ (index as u64 + 1)) | 1 << 63;
            let units = Units { hold: plan.hold, think: plan.think, state };
            self.member_with::<O>(plan, index, gate, units, extension, own)
        }
    }

    fn member_with<O: Observer>(
        &self,
        plan: &Plan,
        index: usize,
        gate: &Gate,
        work: impl Work,
        extension: impl Extension,
        own: Option<&Own>,
    ) -> Option<Result<(u64, Member), Failure>>
    where
        P: Place<Protected<O::Shared>>,
    {
        let (shared, stop) = (&self.shared.0, &self.stop.0);
        let mut context = L::Context::default();
        let mut observer = O::new(index);
        let used = |sections: u64| own.map_or(Used::default(), |own| own.used(sections));
        if !gate.wait() {
            return None;
        }
        if plan.steady {
            self.arrived.0.fetch_add(1, Ordering::Relaxed);
            contend_uncounted(shared, &mut context, || !self.all_arrived(plan), work, extension);
        }
        let used_before = used(0);
        let cpu_before_ns = clock::thread_cpu_ns();
        let began_ns = clock::now_ns();
        let (context, watch) = (&mut context, &mut observer);
        let sections = match plan.end {
            End::Split(total) => {
                contend(shared, context, Share(plan.share(total, index)), work, watch, extension)
            }
            End::Claim(total) => contend(shared, context, Claim(total), work, watch, extension),
            End::After(_) => contend(shared, context, Until(stop), work, watch, extension),
        };
        let finished_ns = clock::now_ns();
        let cpu_ns = clock::thread_cpu_ns() - cpu_before_ns;
        // The one that found the total reached was a request, too.
        let requests = sections + u64::from(matches!(plan.end, End::Claim(_)));
        let slices = used(requests).since(used_before);
        Some(Ok((began_ns, Member { sections, finished_ns, cpu_ns, waits: observer.waits(), slices })))
    }
}
