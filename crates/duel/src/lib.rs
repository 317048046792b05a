//! Conducts a run: plans blocks, has an agent run their trials, feeds the journal, and asks between blocks whether a
//! point is decided. A run that was interrupted is taken up where it stopped.

mod boots;
mod conduct;
mod error;
mod eta;
mod observer;
mod plan;
mod problems;
mod run;
mod trials;

pub use conduct::conduct;
pub use error::DuelError;
pub use eta::Eta;
pub use observer::{BlockDone, BootStart, Observer, TrialStart};
pub use plan::{Boot, Plan, Side, Slot};
