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
    /// A command that the workload ran did not leave with status 0.
    #[error("`{line}` {how}; it said: {said}")]
    Command {
        /// The command with its arguments.
        line: String,
        /// How it ended, as a clause with the status or the signal.
        how: String,
        /// What it printed about it.
        said: String,
        /// Whether a signal killed it.
        by_signal: bool,
    },
    /// What a process of the workload failed with, as it told it.
    #[error("{why}")]
    Told {
        /// The kind of its failure.
        kind: experiment::Failure,
        /// What it said.
        why: String,
    },
    /// A part of the trial, which is a workload itself, failed.
    #[error("{part}: {why}")]
    Part {
        /// Which part.
        part: String,
        /// The kind of its failure.
        kind: experiment::Failure,
        /// What it said.
        why: String,
    },
    /// A parameter that the description does not have, or whose value is not of its kind.
    #[error(transparent)]
    Param(#[from] ParamError),
}

impl Failure {
    /// The same failure as that of this part of the trial.
    pub(crate) fn of(self, part: &str) -> Failure {
        Failure::Part { part: part.into(), kind: self.kind(), why: self.to_string() }
    }

    /// The kind that the journal records.
    pub fn kind(&self) -> experiment::Failure {
        match self {
            Failure::Invariant(_) => experiment::Failure::Invariant,
            Failure::Refused(_) | Failure::Param(_) => experiment::Failure::Refused,
            Failure::Part { kind, .. } | Failure::Told { kind, .. } => *kind,
            Failure::Spawn { .. } => experiment::Failure::Spawn,
            Failure::Command { by_signal: true, .. } => experiment::Failure::Signal,
            Failure::Command { by_signal: false, .. } => experiment::Failure::Exit,
        }
    }
}
