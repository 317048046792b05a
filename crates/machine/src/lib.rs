//! The machine: typed readers of its state, knobs and their undo journal.
//!
//! Every reader takes a [`Root`], so that it runs on recorded and synthetic trees as on the real machine. What a
//! kernel does not have, or does not let this user see, is absent and never a made-up value.

pub mod cpus;
pub mod knobs;
mod mounts;
mod owner;
mod root;
mod scheduling;
pub mod undo;
mod value;

pub use cpus::{CpuError, CpuSet, Unusable};
pub use knobs::{KnobProblem, Why, apply_to_self};
pub use root::{ReadError, Root};
pub use scheduling::SchedulingError;
pub use undo::{Recovery, Restored, Undo, UndoError, Unrestored};
