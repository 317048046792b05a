//! What a run knows whichever way its target goes: what is done, what was read of machines, when a point is decided, what is
//! left.

use crate::error::LOST_IN_A_ROW;
use crate::eta::{Left, Pace};
use crate::{BlockDone, DuelError, Eta, Observer, Plan, Side, Slot};
use agent::{AgentError, Stop, Work};
use analysis::Live;
use experiment::{Experiment, Facts, Outcome, Record, TrialRecord, Variant};
use journal::Journal;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use targets::{Target, TargetError};

/// A trial's block, label, point, variant and twin.
type Key = (u32, String, String, String, bool);

pub(crate) struct Run<'a> {
    pub experiment: &'a Experiment,
    pub plan: Plan,
    pub until_decided: bool,
    pub done: BTreeSet<Key>,
    pub live: Live,
    pub pace: Pace,
    /// By slot: whether it needs no further block.
    pub closed: Vec<bool>,
    /// By slot: trials, those of a block that is not complete included.
    pub trials_done: Vec<u32>,
    /// By slot: the blocks in all that it now seems to need.
    pub blocks_needed: Vec<Option<usize>>,
    /// Agents in a row that died.
    pub agents_lost: u32,
    /// Boots in a row that failed.
    pub boots_lost: u32,
    /// How many boots a block takes; 0 where the target does not boot.
    pub boots_per_block: u32,
    /// Whether a boot is up and has trials left: then it is no longer one of those to come.
    pub boot_is_up: bool,
    /// By variant, what its machine and kernel were when they were read last.
    pub facts: BTreeMap<String, Facts>,
    /// The records that hold what was read of machines and kernels, of all sittings, each followed by a trial that
    /// measured on it, if one has.
    pub met: Vec<Record>,
    /// What was said of boots already.
    pub said: BTreeSet<String>,
    pub padding: Xoshiro256PlusPlus,
    pub journal: &'a mut Journal,
    pub target: &'a mut dyn Target,
    pub token: &'a str,
    pub stop: &'a Stop,
    pub observer: &'a mut dyn Observer,
}

/// Why a block was not completed.
pub(crate) enum Halt {
    Stopped,
    Error(DuelError),
}

impl<E: Into<DuelError>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Error(error.into())
    }
}

/// What one point did in one block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub ran: usize,
    pub missing: usize,
    pub elapsed: Duration,
}

impl Run<'_> {
    /// Takes over what earlier sittings of the run have done.
    pub fn take_up(&mut self, records: &[Record]) {
        // Variants on whose machine, as it was read last, nothing has been measured yet.
        let mut unmeasured = BTreeSet::new();
        for record in records {
            match record {
                Record::Trial(trial) => {
                    let is_done = matches!(trial.outcome, Outcome::Done { .. });
                    if is_done && unmeasured.remove(&trial.variant) {
                        self.met.push(record.clone());
                    }
                    let place = self
                        .plan
                        .slots
                        .iter()
                        .position(|slot| slot.label == trial.workload && slot.point == trial.point);
                    self.count(trial, place);
                }
                Record::Boot(boot) => {
                    self.pace.add_boot(Duration::try_from_secs_f64(boot.ready_s).unwrap_or_default());
                    if let Some(facts) = &boot.facts {
                        self.facts.insert(boot.variant.clone(), (**facts).clone());
                        self.met.push(record.clone());
                        unmeasured.insert(&boot.variant);
                    }
                }
                Record::Facts { variant, facts } => {
                    self.facts.insert(variant.clone(), (**facts).clone());
                    self.met.push(record.clone());
                    unmeasured.insert(variant);
                }
                _ => {}
            }
        }
    }

    /// Takes over what was read of a variant, and gives it as the journal takes it: without the options of a kernel that
    /// stand in it already.
    pub fn learn(&mut self, variant: &str, facts: Facts) -> Box<Facts> {
        let mut told = Box::new(facts.clone());
        self.facts.values().for_each(|earlier| told.leave_out_config_of(earlier));
        self.facts.insert(variant.into(), facts);
        told
    }

    /// Puts a record of what was read of a machine into the journal.
    pub fn write_met(&mut self, record: Record) -> Result<(), Halt> {
        self.journal.append(&record)?;
        self.journal.sync()?;
        self.met.push(record);
        Ok(())
    }

    /// Stops before the first trial where machines or kernels differ in what alone may make a difference.
    pub fn refuse(&self) -> Result<(), Halt> {
        let refused = analysis::refused(self.experiment, &self.met);
        match refused.is_empty() {
            true => Ok(()),
            false => Err(DuelError::Refused { why: analysis::refusal_in_words(&refused) }.into()),
        }
    }

    /// Counts a trial that has ended, in this sitting or an earlier one.
    pub fn count(&mut self, trial: &TrialRecord, place: Option<usize>) {
        let (block, workload, point, variant, twin) = trial.key();
        self.done.insert((block, workload.into(), point.into(), variant.into(), twin));
        self.live.add(trial);
        if let Some(place) = place {
            // A trial whose boot failed took no time, and says nothing of those that run.
            if trial.elapsed_ns > 0 {
                self.pace.add(place, Duration::from_nanos(trial.elapsed_ns));
            }
            self.trials_done[place] += 1;
        }
    }

    /// Whether an earlier sitting has done a trial.
    pub fn has(&self, block: u32, slot: &Slot, side: &Side) -> bool {
        let name = side.variant.name.clone();
        self.done.contains(&(block, slot.label.clone(), slot.point.to_string(), name, side.twin))
    }

    /// All work of a variant.
    pub fn work_of(&self, variant: &Variant) -> Vec<Work> {
        let of_it = self.plan.slots.iter().filter_map(|slot| {
            let side = slot.sides.iter().find(|side| side.variant.name == variant.name)?;
            Some(work(slot, side))
        });
        of_it.collect()
    }

    /// Gives up on an agent that failed, unless too many have. Says why it failed, as far as that is known.
    pub fn lost_agent(&mut self, error: &AgentError) -> Result<String, Halt> {
        if self.stop.asked() {
            return Err(Halt::Stopped);
        }
        let why = match self.target.last_words() {
            Some(words) => format!("{error}: {words}"),
            None => error.to_string(),
        };
        self.target.abandon()?;
        self.agents_lost += 1;
        if self.agents_lost >= LOST_IN_A_ROW {
            return Err(DuelError::AgentsLost { last: why }.into());
        }
        let next = if self.target.boots() { "a new boot follows" } else { "a new agent is started" };
        self.observer.notice(&format!("{why}; {next}"));
        Ok(why)
    }

    /// Asks whether a point that has completed a block needs another.
    pub fn end_block(&mut self, place: usize, block: u32, tally: Tally) {
        if tally.ran == 0 && !self.until_decided {
            self.closed[place] = block == self.plan.cap;
            return;
        }
        let slot = &self.plan.slots[place];
        let decision = self.live.decision(&slot.label, &slot.point);
        self.blocks_needed[place] = decision.blocks_needed;
        self.closed[place] = block == self.plan.cap || (self.until_decided && decision.decided);
        if tally.ran == 0 {
            return;
        }
        let eta = self.eta();
        let points_done = (self.closed.iter().filter(|closed| **closed).count(), self.closed.len());
        self.observer.block(&BlockDone {
            slot: &self.plan.slots[place],
            block,
            cap: self.plan.cap,
            elapsed: tally.elapsed,
            missing: tally.missing,
            so_far: &decision.words,
            decided: self.closed[place],
            points_done,
            eta,
        });
    }

    /// How long the rest will take.
    pub fn eta(&self) -> Eta {
        let mut left = Left::default();
        for (place, slot) in self.plan.slots.iter().enumerate() {
            let sides = slot.sides.len() as u32;
            let done = self.trials_done[place];
            let needed = match self.blocks_needed[place] {
                Some(needed) if self.until_decided => (needed as u32).min(self.plan.cap),
                _ => self.plan.cap,
            };
            let trials = match self.closed[place] {
                true => (0, 0),
                false => {
                    ((sides * needed).saturating_sub(done), (sides * self.plan.cap).saturating_sub(done))
                }
            };
            // A boot serves every point that is open, so the point that needs most of them says how many there are.
            let boots = |trials: u32| (trials * self.boots_per_block).div_ceil(sides.max(1));
            left.boots.0 = left.boots.0.max(boots(trials.0));
            left.boots.1 = left.boots.1.max(boots(trials.1));
            left.trials.push(trials);
        }
        let up = u32::from(self.boot_is_up);
        left.boots = (left.boots.0.saturating_sub(up), left.boots.1.saturating_sub(up));
        self.pace.time_for(&left)
    }
}

pub(crate) fn work(slot: &Slot, side: &Side) -> Work {
    Work { workload: slot.workload.clone(), params: side.params.clone(), point: slot.point.clone() }
}

pub(crate) fn halt(error: impl Into<TargetError>) -> Halt {
    match error.into() {
        TargetError::Agent(AgentError::Stopped) => Halt::Stopped,
        other => Halt::Error(other.into()),
    }
}

pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
