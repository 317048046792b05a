//! How an agent is reached.

pub mod capsule;
pub mod kernel;
mod local;
pub mod ssh;
pub mod vm;

pub use local::Local;
pub use ssh::Ssh;
pub use vm::Vm;

use agent::{AgentError, Client, Request};
use experiment::{BootSpec, Facts, Variant};
use machine::modules::ModuleNeed;
use thiserror::Error;

/// Where trials run: it boots a kernel for a variant, if it boots at all, opens an agent, and cleans up behind one that
/// died.
///
/// Where [`Target::boots`] is false, the agent is asked for again and again, whatever the variant. Where it is true, the
/// conductor calls [`Target::check`] for each variant before anything boots, then [`Target::boot`] before the trials of one
/// side of a block and [`Target::agent`] for each of them; after an agent has failed it calls [`Target::abandon`] and boots
/// again.
pub trait Target {
    /// Whether every block of a variant is a life of a kernel of its own.
    fn boots(&self) -> bool {
        false
    }

    /// Looks, without booting, whether what is ordered can be booted: finds its kernel, and reads it for all boots that
    /// follow. The script of the order does not count.
    ///
    /// # Errors
    /// [`TargetError::Boot`] with the first thing that stands against it, as far as that is known without booting; another
    /// one where it could not be found out.
    fn check(&mut self, _order: &BootOrder) -> Result<(), TargetError> {
        Ok(())
    }

    /// Ends the boot that is up, if any, and boots what is ordered, to the point where its agent has answered. None says
    /// that there was no need to boot. Sees a stop that is asked for meanwhile, and fails. `next` is what will be ordered
    /// after it in this block: a target that is asked to overlap boots brings that up at the same time, and keeps it until it
    /// is ordered.
    ///
    /// # Errors
    /// When the kernel cannot be booted, after as many attempts as make sense, with the named failure. Nothing of the
    /// attempts is left then.
    fn boot(&mut self, _order: &BootOrder, _next: &[BootOrder]) -> Result<Option<Booted>, TargetError> {
        Ok(None)
    }

    /// The agent on which trials of `variant` run: that of the boot that is up, or else opened if it is not yet.
    ///
    /// # Errors
    /// When no agent can be had; where the target boots, also when no boot is up.
    fn agent(&mut self, variant: &Variant) -> Result<&mut Client, TargetError>;

    /// What the target itself knows of the machine that the agent sees, and the agent cannot read there: the
    /// configuration of a kernel that was given with one. `facts` are the agent's.
    fn complete(&self, _facts: &mut Facts) {}

    /// Why the agent that failed just now did so, as far as the target can tell: the panic on its kernel's console. Asked
    /// before [`Target::abandon`].
    fn last_words(&mut self) -> Option<String> {
        None
    }

    /// Gives up on an agent that failed: ends whatever it left, its boot included, and puts back what it had changed. The
    /// next call of [`Target::agent`] or [`Target::boot`] opens a new one.
    ///
    /// # Errors
    /// When something could not be ended or put back; the text says what is left to do by hand.
    fn abandon(&mut self) -> Result<(), TargetError>;

    /// Lets the agent put everything back and leave, and ends the boot that is up.
    ///
    /// # Errors
    /// As [`Target::abandon`].
    fn close(&mut self) -> Result<(), TargetError>;
}

/// One life of a kernel, to be begun.
#[derive(Debug, Clone, PartialEq)]
pub struct BootOrder {
    /// The variant, for messages and names of files.
    pub variant: String,
    /// What to boot.
    pub spec: BootSpec,
    /// The modules of the kernel that the work in this boot loads itself. A target that makes the machine has to put them
    /// there.
    pub modules: Vec<ModuleNeed>,
    /// All that the conductor will ask of the boot's agent, in order, between the greeting and the shutdown. Only a
    /// target to which nothing can be sent once it has started has a use for it.
    pub script: Vec<Request>,
}

/// A kernel that came up.
#[derive(Debug, Clone, PartialEq)]
pub struct Booted {
    /// Seconds from the start of the attempt that succeeded to the first word of its agent; those that were waited for it
    /// where it was not alone.
    pub ready_s: f64,
    /// Whether others booted at the same time.
    pub overlapped: bool,
    /// How many boots were tried, from 1.
    pub attempts: u32,
    /// What readers of the report must know, one sentence each: `emulated: timings are not the machine's`; what became
    /// of the attempts that failed.
    pub remarks: Vec<String>,
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
    /// The kernel could not be booted. The target's own error says how it failed.
    #[error(transparent)]
    Boot(Box<dyn std::error::Error + Send + Sync>),
    /// The machine could not be used over ssh.
    #[error(transparent)]
    Ssh(ssh::SshError),
    /// It started but does not speak as it should.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Something it had changed could not be put back.
    #[error("{0}")]
    CleanUp(String),
}

impl TargetError {
    /// A boot that failed, with the target's own error.
    pub fn boot(error: impl std::error::Error + Send + Sync + 'static) -> TargetError {
        TargetError::Boot(Box::new(error))
    }
}
