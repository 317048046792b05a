use crate::{Eta, Plan, Slot};
use std::time::Duration;

/// Who watches a run while it goes on. The conductor says what happens; how it is shown is not its business.
pub trait Observer {
    /// A run begins, or goes on with `done` trials that it already has.
    fn begin(&mut self, plan: &Plan, done: usize);
    /// A kernel is booted.
    fn boot(&mut self, start: &BootStart<'_>);
    /// A trial starts.
    fn trial(&mut self, start: &TrialStart<'_>);
    /// A block of one point is complete.
    fn block(&mut self, block: &BlockDone<'_>);
    /// Something that a user must know.
    fn notice(&mut self, text: &str);
}

/// A boot that starts.
#[derive(Debug)]
pub struct BootStart<'a> {
    /// The variant.
    pub variant: &'a str,
    /// Whether it is the second boot of the baseline.
    pub twin: bool,
    /// The block, from 1; 0 before the first, where each variant is booted once to check what is asked and to read facts.
    pub block: u32,
    /// What is left, this boot included; nothing before the first block.
    pub eta: Eta,
}

/// A trial that starts.
#[derive(Debug)]
pub struct TrialStart<'a> {
    /// The workload and point.
    pub slot: &'a Slot,
    /// The variant.
    pub variant: &'a str,
    /// The block, from 1.
    pub block: u32,
    /// What is left after the trials that are done.
    pub eta: Eta,
}

/// A complete block.
#[derive(Debug)]
pub struct BlockDone<'a> {
    /// The workload and point.
    pub slot: &'a Slot,
    /// The block, from 1.
    pub block: u32,
    /// The most blocks that the point may get.
    pub cap: u32,
    /// How long it took.
    pub elapsed: Duration,
    /// How many of its trials are missing.
    pub missing: usize,
    /// What may be said of the point so far, in a few words.
    pub so_far: &'a str,
    /// Whether the point needs no further block.
    pub decided: bool,
    /// Points that need no further block, and points in all.
    pub points_done: (usize, usize),
    /// What is left.
    pub eta: Eta,
}
