use std::collections::BTreeMap;
use std::time::Duration;

/// How long a run still takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Eta {
    /// If every point needs as many blocks as it now seems to.
    pub likely: Duration,
    /// If every point goes to its cap. Never exceeded by more than the trials themselves slow down.
    pub at_most: Duration,
}

/// What a run still has to do, in trials by slot and in boots: the likely number and the most.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left {
    pub trials: Vec<(u32, u32)>,
    pub boots: (u32, u32),
}

/// Learns from finished trials and boots how long each takes.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    slots: BTreeMap<usize, (Duration, u32)>,
    boots: (Duration, u32),
}

impl Pace {
    /// A trial of a slot took so long.
    pub(crate) fn add(&mut self, slot: usize, elapsed: Duration) {
        let (total, trials) = self.slots.entry(slot).or_default();
        *total += elapsed;
        *trials += 1;
    }

    /// A boot took so long, from the order to its first trial or to its failure.
    pub(crate) fn add_boot(&mut self, elapsed: Duration) {
        self.boots.0 += elapsed;
        self.boots.1 += 1;
    }

    /// How long what is left will take.
    pub(crate) fn time_for(&self, left: &Left) -> Eta {
        let (total, count) = self
            .slots
            .values()
            .fold((Duration::ZERO, 0), |(total, count), slot| (total + slot.0, count + slot.1));
        // A point that has not run yet is taken to be like the others.
        let anywhere = total.checked_div(count).unwrap_or_default();
        let boot = self.boots.0.checked_div(self.boots.1).unwrap_or_default();
        let mut eta = Eta { likely: boot * left.boots.0, at_most: boot * left.boots.1 };
        for (place, (likely, at_most)) in left.trials.iter().enumerate() {
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
