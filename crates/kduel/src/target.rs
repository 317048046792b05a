//! Opens the target of an experiment.

use crate::session::undo_directory;
use agent::Stop;
use anyhow::ensure;
use experiment::{Header, TargetKind};
use journal::Home;
use std::path::Path;
use std::time::Duration;
use targets::ssh::{Say, Ssh, SshOptions};
use targets::{Local, Target, Vm};

/// Further arguments for ssh, separated by blanks.
const SSH_VARIABLE: &str = "KDUEL_SSH";

/// What a user lets kduel do to the machine on which trials run.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Leave {
    /// Let variants reboot the machine of --target ssh:HOST, and wait so long for it to come back [default: 900]
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "900",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    may_reboot: Option<u64>,
}

/// Where the trials of a run are done. `directory` is that of the run; `say` is told what takes its time.
///
/// # Errors
/// When this build or this machine has no such target, or the user has not given leave to do what it takes.
pub fn open(
    header: &Header,
    leave: Leave,
    home: &Home,
    directory: &Path,
    token: &str,
    stop: &Stop,
    say: Say,
) -> anyhow::Result<Box<dyn Target>> {
    let experiment = &header.experiment;
    match &experiment.target {
        TargetKind::Local => Ok(Box::new(Local::new(undo_directory(home), token.into(), stop.clone()))),
        TargetKind::Vm => Ok(Box::new(Vm::new(directory.join("consoles"), token.into(), stop.clone()))),
        TargetKind::Ssh { host } => {
            let boots = experiment.asks_of_boots();
            ensure!(
                !boots || leave.may_reboot.is_some(),
                "the variants differ in what {host} has to boot, so it is rebooted for every side of every block; if that \
                 may be done, say so with --may-reboot"
            );
            let further = std::env::var(SSH_VARIABLE).unwrap_or_default();
            let options = SshOptions {
                host: host.clone(),
                further: further.split_whitespace().map(str::to_string).collect(),
                run: header.run.clone(),
                boots,
                may_reboot: leave.may_reboot.map(Duration::from_secs),
            };
            Ok(Box::new(Ssh::new(options, stop.clone(), say)))
        }
    }
}
