//! What a run knows and does whichever way its target goes: trials, records, the end of a block, what is left.

use crate::error::LOST_IN_A_ROW;
use crate::eta::{Left, Pace};
use crate::{BlockDone, DuelError, Eta, Observer, Plan, Side, Slot, TrialStart};
use agent::{AgentError, Done, Stop, TrialRequest, Work};
use analysis::Live;
use experiment::{Experiment, Facts, Failure, Outcome, Record, TrialRecord, Usage, Variant};
use journal::Journal;
use rand::RngExt as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
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
    ran: usize,
    missing: usize,
    elapsed: Duration,
}

/// What marks the processes of trials in virtual time: they live in a machine of their own, where no other can be.
const REPEATED: &str = "repeated";

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

    fn count(&mut self, trial: &TrialRecord, place: Option<usize>) {
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

    /// What an agent is asked for one trial.
    pub fn request(&mut self, slot: &Slot, side: &Side, block: u32) -> TrialRequest {
        let (token, block, padding_bytes) = match self.experiment.in_virtual_time(&side.variant) {
            // Nothing there comes about by chance, and so each repeat must be asked for in the same words.
            true => (REPEATED, 1, 0),
            false => (self.token, block, self.padding.random_range(0..4096)),
        };
        TrialRequest {
            token: token.into(),
            work: work(slot, side),
            knobs: side.variant.knobs.clone(),
            seed: self.plan.block_seed(slot, block),
            padding_bytes,
            deadline_s: self.experiment.deadline_s,
        }
    }

    /// Runs one trial and keeps its record. Whatever goes wrong with it or its agent makes it missing; only a machine on
    /// which agents keep dying ends the run. Tells whether its agent was lost.
    pub fn trial(
        &mut self,
        place: usize,
        side: &Side,
        (block, order): (u32, u32),
        request: &TrialRequest,
        tally: &mut Tally,
    ) -> Result<bool, Halt> {
        if self.stop.asked() {
            return Err(Halt::Stopped);
        }
        let slot = &self.plan.slots[place];
        let eta = self.eta();
        self.observer.trial(&TrialStart { slot, variant: &side.variant.name, block, eta });
        let at_unix_ms = unix_ms();
        let began = Instant::now();
        let mut agent_lost = false;
        let (outcome, usage, kernel_log) = match self.ask(request, &side.variant) {
            Ok(done) => {
                self.agents_lost = 0;
                // A machine that shuts down tells every process to leave, the trial, too. It has not failed: a run that is
                // resumed does it again.
                if self.stop.asked() && matches!(done.outcome, Outcome::Missing { .. }) {
                    return Err(Halt::Stopped);
                }
                (done.outcome, done.usage, done.kernel_log)
            }
            Err(AgentError::Stopped) => return Err(Halt::Stopped),
            Err(AgentError::Refused(why)) => (lost(Failure::Knob, why), Usage::default(), Vec::new()),
            Err(error) => {
                agent_lost = true;
                let why = self.lost_agent(&error)?;
                (lost(Failure::Agent, why), Usage::default(), Vec::new())
            }
        };
        let record = TrialRecord {
            at_unix_ms,
            elapsed_ns: began.elapsed().as_nanos() as u64,
            usage,
            kernel_log,
            ..self.unmeasured(place, side, (block, order), outcome)
        };
        self.keep(place, record, tally)?;
        Ok(agent_lost)
    }

    /// A record of a trial that came to this without having run.
    pub fn unmeasured(
        &self,
        place: usize,
        side: &Side,
        (block, order): (u32, u32),
        outcome: Outcome,
    ) -> TrialRecord {
        let slot = &self.plan.slots[place];
        TrialRecord {
            block,
            order,
            workload: slot.label.clone(),
            point: slot.point.clone(),
            variant: side.variant.name.clone(),
            twin: side.twin,
            at_unix_ms: unix_ms(),
            elapsed_ns: 0,
            outcome,
            usage: Usage::default(),
            kernel_log: Vec::new(),
        }
    }

    /// Puts a trial into the journal, whole, before anything follows from it.
    pub fn keep(&mut self, place: usize, record: TrialRecord, tally: &mut Tally) -> Result<(), Halt> {
        tally.ran += 1;
        tally.missing += usize::from(matches!(record.outcome, Outcome::Missing { .. }));
        tally.elapsed += Duration::from_nanos(record.elapsed_ns);
        self.count(&record, Some(place));
        self.journal.append(&Record::Trial(Box::new(record)))?;
        self.journal.sync()?;
        Ok(())
    }

    fn ask(&mut self, request: &TrialRequest, variant: &Variant) -> Result<Done, AgentError> {
        let agent = self.target.agent(variant).map_err(|error| match error {
            TargetError::Agent(error) => error,
            other => AgentError::Stream(std::io::Error::other(other.to_string())),
        })?;
        agent.prepare(&variant.knobs)?;
        agent.trial(request)
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

fn work(slot: &Slot, side: &Side) -> Work {
    Work { workload: slot.workload.clone(), params: side.params.clone(), point: slot.point.clone() }
}

pub(crate) fn lost(failure: Failure, why: String) -> Outcome {
    Outcome::Missing { failure, why }
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
