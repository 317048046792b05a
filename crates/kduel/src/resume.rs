use crate::target::Leave;
use crate::{Outcome, output, report, session};
use anyhow::Context as _;
use experiment::{Ending, Record};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run: its name, the start of its name, `latest`, or its directory
    #[arg(default_value = "latest")]
    run: String,
    #[command(flatten)]
    leave: Leave,
    #[command(flatten)]
    view: report::View,
}

/// `kduel resume`.
///
/// # Errors
/// When the run cannot be read or go on.
pub fn resume(args: &Args) -> anyhow::Result<Outcome> {
    args.view.check()?;
    let home = session::home()?;
    let mut journal = home.open(&args.run).with_context(|| format!("run {} cannot be resumed", args.run))?;
    let mut run = journal.read()?;
    report::accept(&mut run.header.experiment, &args.view);
    if run.header.imported.is_some() {
        anyhow::bail!("run {} was imported; there is nothing to resume", run.header.run);
    }
    let finished = run.records.iter().rev().find_map(|record| match record {
        Record::End { ending, .. } => Some(*ending == Ending::Finished),
        _ => None,
    });
    if finished == Some(true) {
        output::say(&format!("kduel: run {} is finished; this is its report.", run.header.run));
        return Ok(args.view.outcome(&report::print(&home, journal.directory(), &args.view)?));
    }
    if run.header.build != agent::build_id() {
        let notice = format!(
            "resumed by build {}, begun by build {}: trials of two builds of kduel are mixed",
            agent::build_id(),
            run.header.build
        );
        output::say(&format!("kduel: {notice}"));
        journal.append(&Record::Notice { text: notice })?;
    }
    let accepted = args.view.accept_differences.clone();
    journal.append(&Record::Resumed { at_unix_ms: session::unix_ms(), accepted })?;
    run.header.experiment = session::from_anywhere(&run.header);
    session::conduct(&home, &mut journal, &run, args.leave, &args.view)
}
