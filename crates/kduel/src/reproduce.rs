use crate::target::Leave;
use crate::{Outcome, ask, report, run, session};
use anyhow::Context as _;
use std::io::Read as _;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A run, or the `kd1:...` of a report's footer; `-` reads a mail with such a footer from standard input
    #[arg(required = true)]
    what: Vec<String>,
    /// Keep the run in this directory instead of $KDUEL_HOME/runs
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    leave: Leave,
    #[command(flatten)]
    view: report::View,
}

/// `kduel reproduce`.
///
/// # Errors
/// When what is named cannot be read or run here.
pub fn reproduce(args: &Args) -> anyhow::Result<Outcome> {
    args.view.check()?;
    let mut text = args.what.join("\n");
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    }
    let experiment = if text.contains("kd1:") || args.what == ["-"] {
        experiment::unpack(&text)?
    } else {
        let run = session::read(&session::home()?, &text)?;
        if run.header.imported.is_some() {
            anyhow::bail!("run {text} was imported; kduel does not know how its figures were made");
        }
        session::from_anywhere(&run.header)
    };
    run::start(ask::checked(experiment)?, args.out.clone(), args.leave, &args.view)
}
