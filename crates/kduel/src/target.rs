//! Opens the target of an experiment.

use crate::session::undo_directory;
use agent::Stop;
use experiment::{Experiment, TargetKind};
use journal::Home;
use std::path::Path;
use targets::{Local, Target, Vm};

/// Where the trials of `experiment` run. `directory` is that of the run.
///
/// # Errors
/// When this build or this machine has no such target.
pub fn open(
    experiment: &Experiment,
    home: &Home,
    directory: &Path,
    token: &str,
    stop: &Stop,
) -> anyhow::Result<Box<dyn Target>> {
    match &experiment.target {
        TargetKind::Local => Ok(Box::new(Local::new(undo_directory(home), token.into(), stop.clone()))),
        TargetKind::Vm => Ok(Box::new(Vm::new(directory.join("consoles"), token.into(), stop.clone()))),
        TargetKind::Ssh { .. } => {
            anyhow::bail!("this build does not have target {} yet", experiment.target)
        }
    }
}
