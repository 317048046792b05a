use crate::eta::Pace;
use crate::problems::Problems;
use crate::run::{Halt, Run, Tally, halt, unix_ms};
use crate::{DuelError, Observer, Plan};
use agent::{AgentError, Stop};
use analysis::Live;
use experiment::{Blocks, Ending, Facts, Header, Record, Variant};
use journal::Journal;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BTreeSet};
use targets::{Target, TargetError};

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
        experiment: &header.experiment,
        until_decided: header.experiment.blocks == Blocks::UntilDecided,
        done: BTreeSet::new(),
        live: Live::new(header),
        pace: Pace::default(),
        closed: vec![false; plan.slots.len()],
        trials_done: vec![0; plan.slots.len()],
        blocks_needed: vec![None; plan.slots.len()],
        agents_lost: 0,
        boots_lost: 0,
        boots_per_block: if target.boots() { plan.boots().len() as u32 } else { 0 },
        boot_is_up: false,
        facts: BTreeMap::new(),
        met: Vec::new(),
        said: BTreeSet::new(),
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
    if let (Err(_), Err(left)) = (&ended, &closed) {
        // The run fails for another reason, which must not hide what is left to do by hand.
        run.observer.notice(&left.to_string());
    }
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

impl Run<'_> {
    fn all(&mut self, variants: &[Variant]) -> Result<Ending, DuelError> {
        self.observer.begin(&self.plan, self.done.len());
        let ending = match self.target.boots() {
            true => self.boot_each_once(variants).and_then(|()| self.blocks_of_boots()),
            false => self.preflight(variants).and_then(|()| self.blocks()),
        };
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
            match self.check_and_read(variants) {
                Err(Halt::Error(DuelError::Target(TargetError::Agent(error)))) => {
                    self.lost_agent(&error)?;
                }
                other => break other?,
            }
        };
        for (variant, facts) in variants.iter().zip(facts) {
            let facts = self.learn(&variant.name, facts);
            self.write_met(Record::Facts { variant: variant.name.clone(), facts })?;
        }
        self.refuse()
    }

    fn check_and_read(&mut self, variants: &[Variant]) -> Result<Vec<Facts>, Halt> {
        let mut problems = Problems::new(variants.len());
        for variant in variants {
            let work = self.work_of(variant);
            let agent = self.target.agent(variant).map_err(halt)?;
            let found = agent.check(&variant.knobs, work).map_err(halt)?;
            found.into_iter().for_each(|problem| problems.add(&variant.name, problem));
        }
        problems.none()?;
        let mut facts = Vec::new();
        for variant in variants {
            let agent = self.target.agent(variant).map_err(halt)?;
            match agent.prepare(&variant.knobs) {
                Ok(()) => {
                    let mut of_it = agent.facts().map_err(halt)?;
                    self.target.complete(&mut of_it);
                    facts.push(of_it);
                }
                Err(AgentError::Refused(why)) => {
                    let problems = vec![format!("{}: {why}", variant.name)];
                    return Err(DuelError::Impossible { problems }.into());
                }
                Err(error) => return Err(halt(error)),
            }
        }
        Ok(facts)
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
        let mut tally = Tally::default();
        for (order, side_place) in self.plan.order(&slot, block).into_iter().enumerate() {
            let side = &slot.sides[side_place];
            if !self.has(block, &slot, side) {
                let request = self.request(&slot, side, block);
                self.trial(place, side, (block, order as u32), &request, &mut tally)?;
            }
        }
        self.end_block(place, block, tally);
        Ok(())
    }
}
