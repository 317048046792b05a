//! Runs trials where they have to run, and speaks the wire protocol at both ends.
//!
//! One binary plays three parts: the coordinator holds a [`Client`]; the agent on the target is [`serve`]; and each
//! trial is a fresh process of its own, [`run_trial`], so that a crash, a hang or the out-of-memory killer costs one
//! trial and nothing else. In a virtual machine it is also process 1, [`init`].

mod child;
mod client;
mod environment;
mod image;
mod init;
mod lines;
mod program;
mod requests;
mod serve;
mod trial;
mod wire;

pub use client::{AgentError, Client, Stop, script};
pub use image::loadable;
pub use init::{
    InitOrder, Line, ORDER_PATH, PORT_NAME, PROGRAM_PATH, SCRIPT_PATH, WORDS_OF_INIT, init, is_init,
};
pub use program::CAPSULE_BINARY;
pub use serve::{ServeError, serve, serve_from_capsule};
pub use trial::{modules_of, run_trial};
pub use wire::{Done, Event, Hello, PROTOCOL, Request, TrialRequest, Work, build_id};

/// The argument that makes the binary an agent.
pub const AGENT_ARGUMENT: &str = "agent";
/// The argument that makes the binary run one trial.
pub const TRIAL_ARGUMENT: &str = "trial";
/// The environment variable by which everything that a trial started can be found again.
pub const TOKEN_VARIABLE: &str = "KDUEL_TRIAL";
