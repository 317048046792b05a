use crate::{Outcome, output, session};
use anyhow::Context as _;
use experiment::counted;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A text file with a table in one of the report styles, as it was published
    file: PathBuf,
    /// Keep the run in this directory instead of $KDUEL_HOME/runs
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `kduel import`.
///
/// # Errors
/// When the file holds no table that is understood; the error has its line.
pub fn import(args: &Args) -> anyhow::Result<Outcome> {
    let path = args.file.display().to_string();
    let text = std::fs::read(&args.file).with_context(|| format!("cannot read {path}"))?;
    let import = ::report::import(&String::from_utf8_lossy(&text), &path)?;
    let mut header = import.header;
    let fresh = session::header(header.experiment.clone())?;
    header.run = fresh.run;
    header.build = fresh.build;
    header.at_unix_ms = fresh.at_unix_ms;
    let home = session::home()?;
    let mut journal = match &args.out {
        Some(directory) => home.create_at(directory, &header)?,
        None => home.create(&header.run, &header)?,
    };
    for record in &import.records {
        journal.append(record)?;
    }
    journal.sync()?;
    for check in header.imported.iter().flat_map(|imported| &imported.checks) {
        output::say(&format!("kduel: {check}"));
    }
    let figures = counted(import.records.len(), "figure");
    output::say(&format!("kduel: {figures} from {path}; see them with: kduel report"));
    output::result(&session::word_for(&home, journal.directory()))?;
    Ok(Outcome::Done)
}
