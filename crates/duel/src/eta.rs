use crate::Plan;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a run still takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eta {
    /// If every point needs as many blocks as it now seems to.
    pub likely: Duration,
    /// If every point goes to its cap. Never exceeded by more than the trials themselves slow down.
    pub at_most: Duration,
}

/// Learns from finished trials how long each point's blocks take.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    slots: BTreeMap<usize, (Duration, u32)>,
}

impl Pace {
    /// A trial of a slot took so long.
    pub(crate) fn add(&mut self, slot: usize, elapsed: Duration) {
        let (total, trials) = self.slots.entry(slot).or_default();
        *total += elapsed;
        *trials += 1;
    }

    /// What is left, given the trials still to do per slot: the likely number and the most.
    pub(crate) fn left(&self, plan: &Plan, trials_left: &[(u32, u32)]) -> Eta {
        let (total, count) = self
            .slots
            .values()
            .fold((Duration::ZERO, 0), |(total, count), slot| (total + slot.0, count + slot.1));
        // A point that has not run yet is taken to be like the others.
        let anywhere = total.checked_div(count).unwrap_or_default();
        let mut eta = Eta { likely: Duration::ZERO, at_most: Duration::ZERO };
        for (place, (likely, at_most)) in trials_left.iter().enumerate().take(plan.slots.len()) {
            let each = match self.slots.get(&place) {
                Some((total, trials)) => total.checked_div(*trials).unwrap_or_default(),
                None => anywhere,
            };
            eta.likely += each * *likely;
            eta.at_most += each * *at_most;
        }
        eta
    }
}
