use crate::ask::{self, Flags};
use crate::target::Leave;
use crate::{Outcome, report, session};
use journal::JournalError;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Keep the run in this directory instead of $KDUEL_HOME/runs
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    leave: Leave,
    #[command(flatten)]
    view: report::View,
}

/// Less free space than this is not worth starting with.
const SPACE_BYTES: u64 = 64 << 10;

const EXAMPLES: &str = "Examples:
  kduel run
      Three locks against each other on this machine, in less than a minute.
  kduel run global-lock -V tas:lock=tas -V mcs:lock=mcs --points 1,2,4,8 --set seconds=1
      When does a queue lock pay? (For so many seconds: with more threads than CPUs, the usual
      total takes it hours.)
  kduel run hackbench -V base -V batch:policy=batch --points 1,2 --until-decided
      As many blocks as it takes, at most 40.
  kduel run hackbench -V on:sysctl.kernel.sched_autogroup_enabled=1 \\
                      -V off:sysctl.kernel.sched_autogroup_enabled=0
      A sysctl against itself (as root); it is put back afterwards.
  kduel run hackbench -V old:kernel=installed -V new:kernel=bzImage --target vm --set vm.cpus=4 --blocks 8
      Two kernels in virtual machines, booted afresh for every block.
  kduel run hackbench -V a -V b:append=preempt=full --target ssh:root@box --may-reboot
      A boot argument on another machine, which is rebooted by kexec for every side of every block.
  kduel run hackbench -V ours -V original:via=rt-tests --points 1,2
      kduel's hackbench against the original.";

/// `kduel run`.
///
/// # Errors
/// When the experiment cannot be meant or run.
pub fn run(args: Args) -> anyhow::Result<Outcome> {
    args.view.check()?;
    start(ask::experiment(&args.flags)?, args.out, args.leave, &args.view)
}

/// Starts a new run of a checked experiment.
///
/// # Errors
/// When it cannot be run.
pub fn start(
    mut experiment: experiment::Experiment,
    out: Option<PathBuf>,
    leave: Leave,
    view: &report::View,
) -> anyhow::Result<Outcome> {
    report::accept(&mut experiment, view);
    let home = session::home()?;
    if let Some(out) = out.as_deref().filter(|out| out.to_str().is_none()) {
        anyhow::bail!("--out {}: the name of the directory is not UTF-8; give it another", out.display());
    }
    journal::check_space(out.as_deref().unwrap_or(home.path()), SPACE_BYTES)?;
    let header = session::header(experiment)?;
    let journal = match out {
        Some(directory) => home.create_at(&directory, &header),
        None => home.create(&header.run, &header),
    };
    let mut journal = journal.map_err(|error| match error {
        JournalError::Io { .. } => anyhow::Error::new(error)
            .context("the run has no place; name one that can be written with KDUEL_HOME or --out"),
        error => error.into(),
    })?;
    let run = journal.read()?;
    session::conduct(&home, &mut journal, &run, leave, view)
}
