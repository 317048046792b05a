use crate::eta::Pace;
use crate::{BlockDone, Eta, Observer, Plan, Side, Slot, TrialStart};
use agent::{AgentError, Done, Stop, TrialRequest, Work};
use analysis::Live;
use experiment::{
    AskError, Blocks, Ending, Facts, Failure, Header, Outcome, Record, TrialRecord, Usage, Variant,
};
use journal::{Journal, JournalError};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use targets::{Target, TargetError};
use thiserror::Error;

/// After so many trials in a row that cost their agent, the run stops: something is wrong with the machine.
const AGENTS_LOST: u32 = 3;

/// What stops a run. What was done until then is in the journal.
#[derive(Debug, Error)]
pub enum DuelError {
    /// The experiment of the header cannot be planned.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Knobs that cannot be turned and work that cannot be done, found before the first trial.
    #[error("nothing was run, because this cannot be done here:\n{}", list(problems))]
    Impossible {
        /// One sentence each.
        problems: Vec<String>,
    },
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No agent can be had.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// One agent after the other died.
    #[error("{AGENTS_LOST} agents died one after the other; the last one: {last}")]
    AgentsLost {
        /// What became of the last.
        last: String,
    },
}

fn list(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("  - {problem}")).collect::<Vec<String>>().join("\n")
}

/// Conducts a run from where `records` leave it to its end, and writes how it ended. `token` marks the processes of
/// its trials. A stop that was asked for is no error: the run is then [`Ending::Interrupted`] and can be resumed.
///
/// # Errors
/// When nothing can be run, or the journal cannot be written.
pub fn conduct(
    header: &Header,
    records: &[Record],
    journal: &mut Journal,
    target: &mut dyn Target,
    token: &str,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Ending, DuelError> {
    let plan = Plan::of(header)?;
    let mut run = Run {
        until_decided: header.experiment.blocks == Blocks::UntilDecided,
        deadline_s: header.experiment.deadline_s,
        done: BTreeSet::new(),
        live: Live::new(header),
        pace: Pace::default(),
        closed: vec![false; plan.slots.len()],
        trials_done: vec![0; plan.slots.len()],
        blocks_needed: vec![None; plan.slots.len()],
        agents_lost: 0,
        // The padding of the environment must not repeat when a run is resumed.
        padding: Xoshiro256PlusPlus::seed_from_u64(header.seed ^ unix_ms()),
        plan,
        journal,
        target,
        token,
        stop,
        observer,
    };
    run.take_up(records);
    let ended = run.all(&header.experiment.variants);
    let closed = run.target.close();
    let ending = match &ended {
        Ok(ending) => ending.clone(),
        Err(error) => Ending::Failed(error.to_string()),
    };
    let written = run
        .journal
        .append(&Record::End { at_unix_ms: unix_ms(), ending: ending.clone() })
        .and_then(|()| run.journal.sync());
    ended?;
    closed?;
    written?;
    Ok(ending)
}

type Key = (u32, String, String, String, bool);

struct Run<'a> {
    plan: Plan,
    until_decided: bool,
    deadline_s: f64,
    done: BTreeSet<Key>,
    live: Live,
    pace: Pace,
    /// By slot: whether it needs no further block.
    closed: Vec<bool>,
    /// By slot: trials, those of a block that is not complete included.
    trials_done: Vec<u32>,
    /// By slot: the blocks in all that it now seems to need.
    blocks_needed: Vec<Option<usize>>,
    agents_lost: u32,
    padding: Xoshiro256PlusPlus,
    journal: &'a mut Journal,
    target: &'a mut dyn Target,
    token: &'a str,
    stop: &'a Stop,
    observer: &'a mut dyn Observer,
}

/// Why a block was not completed.
enum Halt {
    Stopped,
    Error(DuelError),
}

impl<E: Into<DuelError>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Error(error.into())
    }
}

impl Run<'_> {
    /// Takes over what earlier sittings of the run have done.
    fn take_up(&mut self, records: &[Record]) {
        for record in records {
            if let Record::Trial(trial) = record {
                let (block, workload, point, variant, twin) = trial.key();
                self.done.insert((block, workload.into(), point.into(), variant.into(), twin));
                self.live.add(trial);
                if let Some(place) = self
                    .plan
                    .slots
                    .iter()
                    .position(|slot| slot.label == trial.workload && slot.point == trial.point)
                {
                    self.pace.add(place, Duration::from_nanos(trial.elapsed_ns));
                    self.trials_done[place] += 1;
                }
            }
        }
    }

    fn all(&mut self, variants: &[Variant]) -> Result<Ending, DuelError> {
        self.observer.begin(&self.plan, self.done.len());
        let ending = self.preflight(variants).and_then(|()| self.blocks());
        match ending {
            Ok(()) => Ok(Ending::Finished),
            Err(Halt::Stopped) => Ok(Ending::Interrupted("stopped by a signal".into())),
            Err(Halt::Error(error)) => Err(error),
        }
    }

    /// Asks before the first trial whether every knob can be turned, and reads what the machine is with each
    /// variant's knobs turned.
    fn preflight(&mut self, variants: &[Variant]) -> Result<(), Halt> {
        let facts = loop {
            match self.facts(variants) {
                Err(Halt::Error(DuelError::Target(TargetError::Agent(error)))) => self.lost_agent(&error)?,
                other => break other?,
            }
        };
        for (variant, facts) in variants.iter().zip(facts) {
            self.journal.append(&Record::Facts { variant: variant.name.clone(), facts: Box::new(facts) })?;
        }
        self.journal.sync()?;
        Ok(())
    }

    fn facts(&mut self, variants: &[Variant]) -> Result<Vec<Facts>, Halt> {
        let mut problems = Vec::new();
        for variant in variants {
            let work = self.plan.slots.iter().filter_map(|slot| {
                let side = slot.sides.iter().find(|side| side.variant.name == variant.name)?;
                Some(work(slot, side))
            });
            let work = work.collect();
            let agent = self.target.agent(variant).map_err(halt)?;
            let found = agent.check(&variant.knobs, work).map_err(halt)?;
            problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", variant.name)));
        }
        let mut facts = Vec::new();
        for variant in variants {
            if !problems.is_empty() {
                return Err(DuelError::Impossible { problems }.into());
            }
            let agent = self.target.agent(variant).map_err(halt)?;
            match agent.prepare(&variant.knobs) {
                Ok(()) => facts.push(agent.facts().map_err(halt)?),
                Err(AgentError::Refused(why)) => problems.push(format!("{}: {why}", variant.name)),
                Err(error) => return Err(halt(error)),
            }
        }
        match problems.is_empty() {
            true => Ok(facts),
            false => Err(DuelError::Impossible { problems }.into()),
        }
    }

    /// Gives up on an agent that failed, unless too many have.
    fn lost_agent(&mut self, error: &AgentError) -> Result<(), Halt> {
        self.target.abandon()?;
        self.agents_lost += 1;
        if self.agents_lost >= AGENTS_LOST {
            return Err(DuelError::AgentsLost { last: error.to_string() }.into());
        }
        self.observer.notice(&format!("{error}; a new agent is started"));
        Ok(())
    }

    fn blocks(&mut self) -> Result<(), Halt> {
        for block in 1..=self.plan.cap {
            for place in 0..self.plan.slots.len() {
                if !self.closed[place] {
                    self.block(place, block)?;
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, place: usize, block: u32) -> Result<(), Halt> {
        let slot = self.plan.slots[place].clone();
        let began = Instant::now();
        let mut ran = 0;
        let mut missing = 0;
        for (order, side_place) in self.plan.order(&slot, block).into_iter().enumerate() {
            let side = &slot.sides[side_place];
            let key = key(block, &slot, side);
            if self.done.contains(&key) {
                continue;
            }
            if self.stop.asked() {
                return Err(Halt::Stopped);
            }
            let eta = self.eta();
            let variant = side.variant.name.as_str();
            self.observer.trial(&TrialStart { slot: &slot, variant, block, eta });
            let record = self.trial(&slot, side, block, order as u32)?;
            self.journal.append(&Record::Trial(Box::new(record.clone())))?;
            self.journal.sync()?;
            self.done.insert(key);
            self.live.add(&record);
            self.pace.add(place, Duration::from_nanos(record.elapsed_ns));
            self.trials_done[place] += 1;
            ran += 1;
            missing += usize::from(matches!(record.outcome, Outcome::Missing { .. }));
        }
        if ran == 0 && !self.until_decided {
            self.closed[place] = block == self.plan.cap;
            return Ok(());
        }
        let decision = self.live.decision(&slot.label, &slot.point);
        self.blocks_needed[place] = decision.blocks_needed;
        self.closed[place] = block == self.plan.cap || (self.until_decided && decision.decided);
        if ran > 0 {
            let eta = self.eta();
            let points_done = (self.closed.iter().filter(|closed| **closed).count(), self.closed.len());
            self.observer.block(&BlockDone {
                slot: &slot,
                block,
                cap: self.plan.cap,
                elapsed: began.elapsed(),
                missing,
                so_far: &decision.words,
                decided: self.closed[place],
                points_done,
                eta,
            });
        }
        Ok(())
    }

    /// Runs one trial. Whatever goes wrong with it or its agent makes it missing; only a machine on which agents
    /// keep dying ends the run.
    fn trial(&mut self, slot: &Slot, side: &Side, block: u32, order: u32) -> Result<TrialRecord, Halt> {
        let at_unix_ms = unix_ms();
        let began = Instant::now();
        let request = TrialRequest {
            token: self.token.into(),
            work: work(slot, side),
            knobs: side.variant.knobs.clone(),
            seed: self.plan.block_seed(slot, block),
            padding_bytes: self.padding.random_range(0..4096),
            deadline_s: self.deadline_s,
        };
        let (outcome, usage, kernel_log) = match self.ask(&request, &side.variant) {
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
            Err(_) if self.stop.asked() => return Err(Halt::Stopped),
            Err(AgentError::Refused(why)) => (lost(Failure::Knob, why), Usage::default(), Vec::new()),
            Err(error) => {
                self.lost_agent(&error)?;
                (lost(Failure::Agent, error.to_string()), Usage::default(), Vec::new())
            }
        };
        Ok(TrialRecord {
            block,
            order,
            workload: slot.label.clone(),
            point: slot.point.clone(),
            variant: side.variant.name.clone(),
            twin: side.twin,
            at_unix_ms,
            elapsed_ns: began.elapsed().as_nanos() as u64,
            outcome,
            usage,
            kernel_log,
        })
    }

    fn ask(&mut self, request: &TrialRequest, variant: &Variant) -> Result<Done, AgentError> {
        let agent = self.target.agent(variant).map_err(|error| match error {
            TargetError::Agent(error) => error,
            other => AgentError::Stream(std::io::Error::other(other.to_string())),
        })?;
        agent.prepare(&variant.knobs)?;
        agent.trial(request)
    }

    fn eta(&self) -> Eta {
        let left: Vec<(u32, u32)> = self
            .plan
            .slots
            .iter()
            .enumerate()
            .map(|(place, slot)| {
                if self.closed[place] {
                    return (0, 0);
                }
                let sides = slot.sides.len() as u32;
                let done = self.trials_done[place];
                let needed = match self.blocks_needed[place] {
                    Some(needed) if self.until_decided => (needed as u32).min(self.plan.cap),
                    _ => self.plan.cap,
                };
                ((sides * needed).saturating_sub(done), (sides * self.plan.cap).saturating_sub(done))
            })
            .collect();
        self.pace.left(&self.plan, &left)
    }
}

fn key(block: u32, slot: &Slot, side: &Side) -> Key {
    (block, slot.label.clone(), slot.point.to_string(), side.variant.name.clone(), side.twin)
}

fn work(slot: &Slot, side: &Side) -> Work {
    Work { workload: slot.workload.clone(), params: side.params.clone(), point: slot.point.clone() }
}

fn lost(failure: Failure, why: String) -> Outcome {
    Outcome::Missing { failure, why }
}

fn halt(error: impl Into<TargetError>) -> Halt {
    match error.into() {
        TargetError::Agent(AgentError::Stopped) => Halt::Stopped,
        other => Halt::Error(other.into()),
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
