//! What coordinators start, on this machine or on another: an agent, and before it the tidying up behind agents that were
//! lost.

use crate::{output, session};
use std::path::PathBuf;
use targets::ssh::RUN_VARIABLE;

#[derive(Debug, clap::Args)]
pub struct AgentArgs {
    /// The directory of the undo journals [default: that of this user on this machine]
    undo: Option<PathBuf>,
    /// The directory of the capsule whose loader has started this
    #[arg(long, value_name = "DIR")]
    capsule: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct RecoverArgs {
    /// End what agents of this run have started, and them: their coordinator has lost them
    #[arg(long)]
    run: Option<String>,
}

/// `kduel agent`.
///
/// # Errors
/// When its stream fails, or something cannot be put back.
pub fn agent(args: AgentArgs) -> anyhow::Result<()> {
    // A coordinator on another machine does not know where they lie here.
    let undo = match args.undo {
        Some(undo) => undo,
        None => session::undo_directory(&session::home()?),
    };
    match args.capsule {
        Some(capsule) => agent::serve_from_capsule(&undo, &capsule)?,
        None => agent::serve(&undo)?,
    }
    Ok(())
}

/// `kduel recover`.
pub fn recover(args: &RecoverArgs) {
    if let Some(run) = &args.run {
        for process in machine::kill_strays(RUN_VARIABLE, run) {
            output::say(&format!("kduel: ended {process}, which a lost connection had left"));
        }
    }
    session::put_back_what_others_left();
}
