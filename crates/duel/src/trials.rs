//! One trial, from what its agent is asked to its record.

use crate::run::{Halt, Run, Tally, unix_ms, work};
use crate::{Side, Slot, TrialStart};
use agent::{AgentError, Done, TrialRequest};
use experiment::{Failure, Outcome, Record, Scope, TrialRecord, Usage, Variant};
use rand::RngExt as _;
use std::time::{Duration, Instant};
use targets::TargetError;

/// What marks the processes of trials in virtual time: they live in a machine of their own, where no other can be.
const REPEATED: &str = "repeated";

impl Run<'_> {
    /// What an agent is asked for one trial.
    pub fn request(&mut self, slot: &Slot, side: &Side, block: u32) -> TrialRequest {
        let (token, block, padding_bytes) = match self.experiment.in_virtual_time(&side.variant) {
            // Nothing there comes about by chance, and so each repeat must be asked for in the same words.
            true => (REPEATED, 1, 0),
            false => (self.token, block, self.padding.random_range(0..4096)),
        };
        let mut knobs = self.experiment.knobs_of(&side.variant);
        // How a machine is made is not for those in it, where in virtual time each word of a request moves the figures.
        knobs.retain(|knob| !matches!(knob.scope, Scope::Vm(_)));
        TrialRequest {
            token: token.into(),
            work: work(slot, side),
            knobs,
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

    /// Runs a trial that has its record already. Tells whether its agent was lost.
    pub fn again(&mut self, side: &Side, request: &TrialRequest) -> Result<bool, Halt> {
        if self.stop.asked() {
            return Err(Halt::Stopped);
        }
        match self.ask(request, &side.variant) {
            Ok(_) | Err(AgentError::Refused(_)) => Ok(false),
            Err(AgentError::Stopped) => Err(Halt::Stopped),
            Err(error) => self.lost_agent(&error).map(|_| true),
        }
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
}

pub(crate) fn lost(failure: Failure, why: String) -> Outcome {
    Outcome::Missing { failure, why }
}
