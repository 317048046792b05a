use crate::{Outcome, output, session};
use analysis::{Analysis, Verdict};
use anyhow::ensure;
use clap::ValueEnum;
use experiment::{Experiment, Refusal};
use journal::{Home, Run};
use report::{Format, Options, Style};
use std::path::Path;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run: its name, the start of its name, `latest`, or its directory
    #[arg(default_value = "latest")]
    run: String,
    #[command(flatten)]
    view: View,
}

/// How a report looks and what makes it fail.
#[derive(Debug, Clone, clap::Args)]
pub struct View {
    /// The style of the tables, see `kduel list styles` [default: one that fits]
    #[arg(long, value_name = "STYLE")]
    style: Option<String>,
    /// text, markdown, html, json, csv, csv-samples or benchstat
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: String,
    /// Leave out the verdict marks, as older tools print
    #[arg(long)]
    plain: bool,
    /// Print the interval of each ratio
    #[arg(long)]
    intervals: bool,
    /// Show the metrics that are not judged, too
    #[arg(long)]
    all_metrics: bool,
    /// Set the figures of another run, such as an imported one, beside these
    #[arg(long, value_name = "RUN")]
    beside: Option<String>,
    /// Compare although CPU models, preemption models or debug options differ: their names, as the refusal gives them
    #[arg(long = "accept-difference", value_name = "NAME", value_delimiter = ',')]
    pub accept_differences: Vec<Refusal>,
    /// Exit with status 1 if there is one
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A primary metric that is worse than the baseline
    Regression,
}

impl View {
    /// Checks the words, so that a slip is found before a long run and not after it.
    ///
    /// # Errors
    /// When a style or format is not known.
    pub fn check(&self) -> anyhow::Result<()> {
        self.style()?;
        self.format()?;
        if let Some(beside) = &self.beside {
            session::read(&session::home()?, beside)?;
        }
        Ok(())
    }

    /// How the command ends that has reported this.
    pub fn outcome(&self, analysis: &Analysis) -> Outcome {
        match self.fail_on {
            Some(FailOn::Regression) if has_regression(analysis) => Outcome::Regression,
            _ => Outcome::Done,
        }
    }

    fn style(&self) -> anyhow::Result<Option<Style>> {
        Ok(self.style.as_deref().map(Style::parse).transpose()?)
    }

    fn format(&self) -> anyhow::Result<Format> {
        Ok(Format::parse(&self.format)?)
    }
}

/// `kduel report`.
///
/// # Errors
/// When the run cannot be read or the style does not fit it.
pub fn report(args: &Args) -> anyhow::Result<Outcome> {
    args.view.check()?;
    Ok(args.view.outcome(&print(&session::home()?, Path::new(&args.run), &args.view)?))
}

/// Prints the report of a run, given by its directory or name, and returns what it says.
///
/// # Errors
/// When the run cannot be read or the style does not fit it.
pub fn print(home: &Home, run: &Path, view: &View) -> anyhow::Result<Analysis> {
    let mut run = session::read_at(home, run)?;
    let analysis = compared(&mut run, view)?;
    let beside = match &view.beside {
        Some(name) => Some(compared(&mut session::read(home, name)?, view)?),
        None => None,
    };
    let format = view.format()?;
    let options = Options {
        style: view.style()?,
        format,
        plain: view.plain,
        intervals: view.intervals,
        all_metrics: view.all_metrics,
        colour: format == Format::Text && output::colour(),
        beside: beside.as_ref(),
        footer: run.header.imported.is_none().then(|| experiment::pack(&session::from_anywhere(&run.header))),
        ..Options::default()
    };
    output::result(&report::render(&analysis, &options)?)?;
    Ok(analysis)
}

/// The analysis of a run whose variants may be compared.
fn compared(run: &mut Run, view: &View) -> anyhow::Result<Analysis> {
    accept(&mut run.header.experiment, view);
    let analysis = analysis::analyse(run);
    ensure!(analysis.refused.is_empty(), analysis::refusal_in_words(&analysis.refused));
    Ok(analysis)
}

/// Adds what the user accepts to what the experiment does.
pub fn accept(experiment: &mut Experiment, view: &View) {
    experiment.accept(&view.accept_differences);
}

fn has_regression(analysis: &Analysis) -> bool {
    let cells = analysis.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    cells.into_iter().any(|cell| cell.verdict == Verdict::Worse)
}
