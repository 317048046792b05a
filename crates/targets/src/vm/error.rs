//! What can go wrong with a virtual machine, each kind under a name.

use super::console::{Fault, Tail, Trouble};
use crate::capsule::CapsuleError;
use crate::kernel::KernelError;
use agent::AgentError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no virtual machine, or none any more.
#[derive(Debug, Error)]
pub enum VmError {
    /// A setting that cannot be.
    #[error("vm.{name}={value} cannot be: {why}")]
    Setting {
        /// Its name without `vm.`.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no kernel to boot.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A module that the work loads is not among those of the kernel, or cannot be taken from there.
    #[error(
        "{error}. The work of this variant loads it; {option}=m in the kernel's configuration builds it{built}"
    )]
    Module {
        /// What is the matter.
        error: Box<KernelError>,
        /// The option that builds it.
        option: &'static str,
        /// What the configuration of the kernel says of that, as far as it is known: nothing, or a clause.
        built: &'static str,
    },
    /// This program cannot be taken into the machine.
    #[error("kduel cannot be taken into a virtual machine: {0}")]
    Capsule(#[from] CapsuleError),
    /// QEMU is not installed.
    #[error(
        "{program} is not in PATH; install QEMU for x86 (Debian: apt install qemu-system-x86, Fedora: dnf install \
         qemu-system-x86-core)"
    )]
    NoQemu {
        /// The program.
        program: &'static str,
    },
    /// QEMU cannot be started, or a file for it cannot be made.
    #[error("cannot {action}: {error}")]
    Io {
        /// What was tried.
        action: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// QEMU ended by itself before the machine did anything.
    #[error("QEMU does not take what it is asked ({status}): {said}")]
    Qemu {
        /// How it ended.
        status: String,
        /// What it said.
        said: String,
    },
    /// KVM was asked for and does not work.
    #[error("vm.accel=kvm, and KVM does not work here: {why}; leave vm.accel out, and QEMU emulates")]
    NoKvm {
        /// What became of the attempt.
        why: String,
    },
    /// The machine came to grief.
    #[error(transparent)]
    Guest(#[from] Box<GuestError>),
    /// Its agent does not speak as it should.
    #[error("the agent in the virtual machine failed: {0}")]
    Agent(AgentError),
    /// No machine is up.
    #[error("no virtual machine is up")]
    Down,
    /// The coordinator was told to stop.
    #[error("stopped")]
    Stopped,
}

/// What became of a machine that failed, as far as its console tells.
#[derive(Debug, Error)]
#[error("{}; its console: {}", trouble, log.display())]
pub struct GuestError {
    /// What it was.
    pub trouble: Trouble,
    /// The file with all that its console said.
    pub log: PathBuf,
    /// The end of it.
    #[source]
    pub tail: Tail,
}

impl GuestError {
    /// Whether the emulator is to blame, and another boot may go well.
    pub fn is_of_emulator(&self) -> bool {
        self.trouble.fault == Fault::JumpLabel
    }
}
