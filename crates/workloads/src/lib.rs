//! The workloads of kduel: one file each, a registry, and the start gate and clock that they share.
//!
//! A workload's file reads from top to bottom: its description, what one thread does, the measured region. What
//! several need lives here: the parameters that all have ([`shared`]), the crew of threads behind one gate
//! ([`crew`]), the clock ([`clock`]), and the collector of what a trial yields ([`Trial`]).

pub mod clock;
pub mod crew;
mod failure;
mod futex;
mod global_lock;
mod hackbench;
mod originals;
mod processes;
mod registry;
pub mod shared;
mod shared_words;
mod trial;

pub use failure::Failure;
pub use registry::{all, find, names};
pub use trial::Trial;

use experiment::{Description, Params};

/// A named program with parameters that does work and yields metrics.
pub trait Workload: Sync {
    /// Everything there is to say about it.
    fn describe(&self) -> Description;

    /// Does the work once for the point of `trial` and leaves its samples there. Called in a process of its own,
    /// with a single thread, so it may fork.
    ///
    /// # Errors
    /// When the work could not be done, or did not add up. A failed trial is missing, never a number.
    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure>;
}
