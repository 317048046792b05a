//! How an agent is reached.

pub mod kernel;
mod local;

pub use local::Local;

use agent::{AgentError, Client};
use experiment::Variant;
use thiserror::Error;

/// Where trials run: it opens an agent for a variant and cleans up behind one that died.
pub trait Target {
    /// The agent on which trials of `variant` run, opened if it is not yet.
    ///
    /// # Errors
    /// When no agent can be had.
    fn agent(&mut self, variant: &Variant) -> Result<&mut Client, TargetError>;

    /// Gives up on an agent that failed: ends whatever it left, and puts back what it had changed. The next call of
    /// [`Target::agent`] opens a new one.
    ///
    /// # Errors
    /// When something could not be ended or put back; the text says what is left to do by hand.
    fn abandon(&mut self) -> Result<(), TargetError>;

    /// Lets the agent put everything back and leave.
    ///
    /// # Errors
    /// As [`Target::abandon`].
    fn close(&mut self) -> Result<(), TargetError>;
}

/// What can go wrong on the way to an agent.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The agent's process could not be started.
    #[error("cannot start an agent from {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// What the kernel said.
        error: std::io::Error,
    },
    /// It started but does not speak as it should.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Something it had changed could not be put back.
    #[error("{0}")]
    CleanUp(String),
}
