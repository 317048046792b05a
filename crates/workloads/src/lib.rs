//! The workloads of kduel: one file each, a registry, and the start gate and clock that they share.
//!
//! A workload's file reads from top to bottom: its description, what one thread does, the measured region. What
//! several need lives here: the parameters that all have ([`shared`]), the crew of threads behind one gate
//! ([`crew`]), child processes, the clock ([`clock`]), the original programs that can do the work instead, and
//! the collector of what a trial yields ([`Trial`]).

#[cfg(test)]
mod alone;
mod barrier;
mod buckets;
pub mod clock;
mod complaint;
mod counting;
pub mod crew;
mod descendants;
mod exec;
mod failure;
mod fairness;
mod futex;
mod gate;
mod global_lock;
mod hackbench;
mod inversion;
mod io_uring;
mod jobmix;
mod lock_busy;
mod mapping;
mod mixed;
mod netperf;
#[cfg(test)]
mod no_lock;
mod originals;
pub mod process_crew;
mod processes;
mod proxy;
mod random;
mod registry;
mod rseq;
mod scale;
mod schbench;
mod sched;
pub mod shared;
mod shared_memory;
mod slice;
mod sole_writer;
mod stream;
mod sys;
mod tbench;
mod threads;
mod times;
mod torture;
mod trial;
mod unixbench;
mod wakeup_timer;
mod words;

pub use failure::Failure;
pub use originals::Original;
pub use proxy::check_proxy;
pub use registry::{all, find, names};
pub use rseq::check_rseq;
pub use trial::Trial;

use experiment::{Description, Knob, Params};
use machine::modules::ModuleNeed;
use std::collections::BTreeMap;

/// A named program with parameters that does work and yields metrics.
pub trait Workload: Sync {
    /// Everything there is to say about it.
    fn describe(&self) -> Description;

    /// Everything there is to say about it when these parameters are set; the others have their defaults.
    /// Differs from [`Workload::describe`] only where the metrics depend on a parameter.
    fn describe_for(&self, _set: &BTreeMap<String, String>) -> Description {
        self.describe()
    }

    /// The original programs that can do the work instead, which `via` takes.
    fn originals(&self) -> &'static [Original] {
        &[]
    }

    /// Whether the work could be done for the point of `trial`, as far as that can be known without doing it: so that a
    /// missing program or parameter is told before the first trial, and not by every one of them.
    ///
    /// # Errors
    /// What stands against it, and what would change that.
    fn check(&self, params: &Params, _trial: &Trial) -> Result<(), Failure> {
        originals::check(params, self.originals())
    }

    /// The settings of the machine that these parameters need, to be turned for the trial and put back behind it.
    ///
    /// # Errors
    /// When a value cannot be meant.
    fn knobs(&self, _params: &Params) -> Result<Vec<Knob>, Failure> {
        Ok(Vec::new())
    }

    /// The modules of the kernel that these parameters make it load itself. A target that makes the machine puts them
    /// there, in [`machine::modules::CARRIED_MODULES`], and leaves them unloaded; those that a trial has loaded are removed
    /// behind it.
    fn modules(&self, _params: &Params) -> Vec<ModuleNeed> {
        Vec::new()
    }

    /// Does the work once for the point of `trial` and leaves its samples there. Called in a process of its
    /// own, with a single thread, so it may fork.
    ///
    /// # Errors
    /// When the work could not be done, or did not add up. A failed trial is missing, never a number.
    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure>;
}
