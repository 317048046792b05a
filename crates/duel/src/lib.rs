//! Conducts a run: plans blocks, has an agent run their trials, feeds the journal, and asks between blocks whether a
//! point is decided. A run that was interrupted is taken up where it stopped.

mod conduct;
mod eta;
mod observer;
mod plan;

pub use conduct::{DuelError, conduct};
pub use eta::Eta;
pub use observer::{BlockDone, Observer, TrialStart};
pub use plan::{Plan, Side, Slot};
