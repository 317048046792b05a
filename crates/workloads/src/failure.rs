use experiment::ParamError;
use thiserror::Error;

/// Why a trial yielded nothing.
#[derive(Debug, Error)]
pub enum Failure {
    /// The work did not add up: a lost message, a counter that is not the number of operations.
    #[error("the work did not add up: {0}")]
    Invariant(String),
    /// The workload cannot run as asked on this machine; the text says what would change that.
    #[error("{0}")]
    Refused(String),
    /// A thread or process could not be started; those that were have been released and are gone.
    #[error("could not start task {nth} of {count}: {why}")]
    Spawn {
        /// Which one, from 1.
        nth: usize,
        /// How many were wanted.
        count: usize,
        /// What the kernel said.
        why: String,
    },
    /// A parameter that the description does not have, or whose value is not of its kind.
    #[error(transparent)]
    Param(#[from] ParamError),
}

impl Failure {
    /// The kind that the journal records.
    pub fn kind(&self) -> experiment::Failure {
        match self {
            Failure::Invariant(_) => experiment::Failure::Invariant,
            Failure::Refused(_) | Failure::Param(_) => experiment::Failure::Refused,
            Failure::Spawn { .. } => experiment::Failure::Spawn,
        }
    }
}
