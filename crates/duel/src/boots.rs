//! A run on a target that boots: in every block each side gets a life of a kernel of its own, and all its points run in it.

use crate::error::LOST_IN_A_ROW;
use crate::problems::Problems;
use crate::run::{Halt, Run, Tally, halt, unix_ms};
use crate::trials::lost;
use crate::{Boot, BootStart, DuelError, Eta, Side};
use agent::{AgentError, Request, TrialRequest, modules_of};
use experiment::{BootRecord, Facts, Failure, Record, Variant};
use std::time::Instant;
use targets::{BootOrder, Booted, TargetError};

/// A trial that a boot is to run.
struct Planned {
    /// The place of its point in the plan.
    place: usize,
    side: Side,
    request: TrialRequest,
    /// Whether it has a record already, and runs again only for those behind it.
    done: bool,
}

/// A boot of one side in a block, and all that is to run in it.
struct Life {
    boot: Boot,
    /// The block, and the place in it.
    at: (u32, u32),
    trials: Vec<Planned>,
}

impl Run<'_> {
    /// Boots each variant once before the first block: asks whether every knob can be turned and all work be done there,
    /// and reads what machine and kernel come up. What can be known without booting is asked for all of them before.
    pub fn boot_each_once(&mut self, variants: &[Variant]) -> Result<(), Halt> {
        let mut problems = Problems::new(variants.len());
        for variant in variants {
            match self.target.check(&self.order(variant, Vec::new())) {
                Ok(()) => {}
                Err(TargetError::Boot(error)) => problems.add(&variant.name, error.to_string()),
                Err(error) => return Err(halt(error)),
            }
        }
        problems.none()?;
        let mut problems = Problems::new(variants.len());
        for variant in variants {
            let found = loop {
                match self.boot_and_check(variant) {
                    Err(Halt::Error(DuelError::Target(TargetError::Agent(error)))) => {
                        self.lost_agent(&error)?;
                    }
                    other => break other?,
                }
            };
            found.into_iter().for_each(|problem| problems.add(&variant.name, problem));
        }
        problems.none()?;
        self.refuse()
    }

    /// What stands against a variant in a boot of its own.
    fn boot_and_check(&mut self, variant: &Variant) -> Result<Vec<String>, Halt> {
        let boot = Boot { variant: variant.clone(), twin: false };
        let knobs = || variant.knobs.clone();
        let work = self.work_of(variant);
        let script = vec![
            Request::Check { knobs: knobs(), work: work.clone() },
            Request::Prepare { knobs: knobs() },
            Request::Facts,
        ];
        let at_unix_ms = unix_ms();
        let booted = match self.boot(&boot, 0, script, &[])? {
            Ok(booted) => booted,
            Err(error) => {
                return Err(DuelError::Unbootable { variant: variant.name.clone(), error }.into());
            }
        };
        let agent = self.target.agent(variant).map_err(halt)?;
        let problems = agent.check(&variant.knobs, work).map_err(halt)?;
        if !problems.is_empty() {
            return Ok(problems);
        }
        let refused = self.meet(&boot, 0, at_unix_ms, booted)?;
        Ok(refused.into_iter().chain(self.unheard(variant)).collect())
    }

    /// Which boot arguments of a variant its kernel has not got, as far as it tells: such a variant is not what it is called.
    fn unheard(&self, variant: &Variant) -> Option<String> {
        let line = self.facts.get(&variant.name)?.command_line.as_deref()?;
        let got: Vec<&str> = line.split_whitespace().collect();
        let mut asked = self.experiment.boot_spec(variant).append;
        asked.retain(|word| !got.contains(&word.as_str()));
        (!asked.is_empty()).then(|| {
            format!(
                "its kernel runs without the boot arguments `{}`: /proc/cmdline has others. Kernels that were built with \
                 CONFIG_CMDLINE_OVERRIDE take none, and what is behind the first 2047 bytes is cut off",
                asked.join(" ")
            )
        })
    }

    /// The blocks, each a boot per side in random order.
    pub fn blocks_of_boots(&mut self) -> Result<(), Halt> {
        for block in 1..=self.plan.cap {
            let mut tallies = vec![Tally::default(); self.plan.slots.len()];
            let mut lives: Vec<Life> = Vec::new();
            for (order, boot) in self.plan.boot_order(block).into_iter().enumerate() {
                let trials = self.trials_of(&boot, block);
                if !trials.iter().all(|trial| trial.done) {
                    lives.push(Life { boot, at: (block, order as u32), trials });
                }
            }
            let mut left = lives.as_slice();
            while let [life, next @ ..] = left {
                let next: Vec<BootOrder> = next.iter().map(|life| self.order_of(life)).collect();
                self.serve(life, &next, &mut tallies)?;
                left = &left[1..];
            }
            for (place, tally) in tallies.into_iter().enumerate() {
                if !self.closed[place] {
                    self.end_block(place, block, tally);
                }
            }
        }
        Ok(())
    }

    /// What is to run in the boot of one side of a block.
    fn trials_of(&mut self, boot: &Boot, block: u32) -> Vec<Planned> {
        let mut trials = Vec::new();
        // A trial in virtual time may find what those before it have left, and its repeats must find the same: the order is
        // always the same, and a side of which a part was done before the run was interrupted runs whole once more.
        let repeats = self.experiment.in_virtual_time(&boot.variant);
        let places = match repeats {
            true => self.plan.points_of(boot),
            false => self.plan.point_order(boot, block),
        };
        for place in places {
            let slot = self.plan.slots[place].clone();
            let Some(side) = slot.side(boot) else { continue };
            let done = self.has(block, &slot, side);
            if !self.closed[place] && (repeats || !done) {
                let request = self.request(&slot, side, block);
                trials.push(Planned { place, side: side.clone(), request, done });
            }
        }
        trials
    }

    /// Runs the trials of one side of a block, in one boot if all goes well: one that loses its agent is followed by
    /// another for the rest. `next` are the boots that follow in this block.
    fn serve(&mut self, life: &Life, next: &[BootOrder], tallies: &mut [Tally]) -> Result<(), Halt> {
        let Life { boot, at, trials } = life;
        let (at, (block, _)) = (*at, *at);
        let mut left = trials.as_slice();
        while !left.is_empty() {
            let at_unix_ms = unix_ms();
            match self.boot(boot, block, script(&boot.variant, left), next)? {
                Ok(booted) => {
                    self.boots_lost = 0;
                    self.boot_is_up = true;
                    let ran = match self.met_in_block(boot, block, at_unix_ms, booted)? {
                        true => self.run_in_boot(left, at, tallies)?,
                        false => 0,
                    };
                    self.boot_is_up = false;
                    left = &left[ran..];
                }
                Err(error) => {
                    self.boots_lost += 1;
                    let variant = &boot.variant.name;
                    if self.boots_lost >= LOST_IN_A_ROW {
                        return Err(DuelError::BootsLost { variant: variant.clone(), error }.into());
                    }
                    self.observer.notice(&format!("variant {variant} could not be booted: {error}"));
                    for Planned { place, side, .. } in left.iter().filter(|trial| !trial.done) {
                        let record =
                            self.unmeasured(*place, side, at, lost(Failure::Boot, error.to_string()));
                        self.keep(*place, record, &mut tallies[*place])?;
                    }
                    left = &[];
                }
            }
        }
        Ok(())
    }

    /// As [`Run::meet`], before the trials of a block. False if the agent was lost over it.
    fn met_in_block(
        &mut self,
        boot: &Boot,
        block: u32,
        at_unix_ms: u64,
        booted: Option<Booted>,
    ) -> Result<bool, Halt> {
        match self.meet(boot, block, at_unix_ms, booted) {
            Err(Halt::Error(DuelError::Target(TargetError::Agent(error)))) => {
                self.lost_agent(&error)?;
                Ok(false)
            }
            // A knob that could not be turned is told by each trial.
            met => met.map(|_| true),
        }
    }

    /// Runs trials in the boot that is up until they are done or their agent is lost. Tells how many have a record.
    fn run_in_boot(
        &mut self,
        trials: &[Planned],
        at: (u32, u32),
        tallies: &mut [Tally],
    ) -> Result<usize, Halt> {
        for (before, Planned { place, side, request, done }) in trials.iter().enumerate() {
            let agent_lost = match done {
                true => self.again(side, request)?,
                false => self.trial(*place, side, at, request, &mut tallies[*place])?,
            };
            if agent_lost {
                return Ok(before + 1);
            }
        }
        Ok(trials.len())
    }

    fn order(&self, variant: &Variant, script: Vec<Request>) -> BootOrder {
        BootOrder {
            variant: variant.name.clone(),
            spec: self.experiment.boot_spec(variant),
            modules: modules_of(&self.work_of(variant)),
            script,
        }
    }

    fn order_of(&self, life: &Life) -> BootOrder {
        let variant = &life.boot.variant;
        self.order(variant, script(variant, &life.trials))
    }

    /// Boots. A boot that fails is told from a run that halts.
    fn boot(
        &mut self,
        boot: &Boot,
        block: u32,
        script: Vec<Request>,
        next: &[BootOrder],
    ) -> Result<Result<Option<Booted>, TargetError>, Halt> {
        if self.stop.asked() {
            return Err(Halt::Stopped);
        }
        let variant = boot.variant.name.as_str();
        let eta = if block == 0 { Eta::default() } else { self.eta() };
        self.observer.boot(&BootStart { variant, twin: boot.twin, block, eta });
        let order = self.order(&boot.variant, script);
        let began = Instant::now();
        let booted = self.target.boot(&order, next);
        if booted.is_err() && self.stop.asked() {
            return Err(Halt::Stopped);
        }
        self.pace.add_boot(began.elapsed());
        if let Ok(Some(booted)) = &booted {
            for remark in &booted.remarks {
                if self.said.insert(remark.clone()) {
                    self.observer.notice(remark);
                }
            }
        }
        Ok(booted)
    }

    /// Turns the knobs in a boot that has come up, reads what it is, and puts both into the journal. Says why the knobs
    /// could not be turned, if they could not.
    fn meet(
        &mut self,
        boot: &Boot,
        block: u32,
        at_unix_ms: u64,
        booted: Option<Booted>,
    ) -> Result<Option<String>, Halt> {
        let agent = self.target.agent(&boot.variant).map_err(halt)?;
        let refused = match agent.prepare(&boot.variant.knobs) {
            Ok(()) => None,
            Err(AgentError::Refused(why)) => Some(why),
            Err(error) => return Err(halt(error)),
        };
        let mut facts = agent.facts().map_err(halt)?;
        self.target.complete(&mut facts);
        let variant = boot.variant.name.clone();
        let facts = self.news(&variant, facts)?;
        let record = match (booted, facts) {
            (Some(Booted { ready_s, overlapped, attempts, remarks }), facts) => {
                Record::Boot(Box::new(BootRecord {
                    block,
                    variant,
                    twin: boot.twin,
                    at_unix_ms,
                    ready_s,
                    overlapped,
                    attempts,
                    remarks,
                    facts,
                }))
            }
            (None, Some(facts)) => Record::Facts { variant, facts },
            (None, None) => return Ok(refused),
        };
        self.write_met(record)?;
        Ok(refused)
    }

    /// The facts of a boot, unless they are those of the variant's boot before. Another kernel is refused: blocks of two
    /// kernels are no blocks of one variant.
    fn news(&mut self, variant: &str, facts: Facts) -> Result<Option<Box<Facts>>, Halt> {
        if let Some(before) = self.facts.get(variant) {
            let (then, now) = (kernel(before), kernel(&facts));
            if then != now {
                return Err(DuelError::OtherKernel { variant: variant.into(), then, now }.into());
            }
            if before.rows() == facts.rows() {
                return Ok(None);
            }
        }
        Ok(Some(self.learn(variant, facts)))
    }
}

/// All that is asked of the agent of a boot that serves these trials, in order.
fn script(variant: &Variant, trials: &[Planned]) -> Vec<Request> {
    let prepare = || Request::Prepare { knobs: variant.knobs.clone() };
    let trials = trials.iter().flat_map(|trial| [prepare(), Request::Trial(Box::new(trial.request.clone()))]);
    [prepare(), Request::Facts].into_iter().chain(trials).collect()
}

/// What tells one build of a kernel from another.
fn kernel(facts: &Facts) -> String {
    let words = [&facts.kernel_release, &facts.kernel_version, &facts.kernel_build_id];
    words.into_iter().flatten().map(String::as_str).collect::<Vec<&str>>().join(" ")
}
