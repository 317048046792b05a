use crate::{Outcome, output, session};
use clap::ValueEnum;
use experiment::{Ending, cost_of, costly_options, when_of};
use journal::RunInfo;
use report::{Format, Style, WIDTH, wrap};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    /// What to list
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// What can duel
    Workloads,
    /// The values of global-lock's parameter `lock`
    Locks,
    /// Kernel options that cost time, with what each does; variants that differ in one are not compared
    DebugOptions,
    /// What was run and imported, newest first
    Runs,
    /// How a report can look, and in which formats
    Styles,
}

/// `kduel list`.
///
/// # Errors
/// When the runs cannot be read.
pub fn list(args: &Args) -> anyhow::Result<Outcome> {
    let rows: Vec<(String, String)> = match args.what {
        What::Workloads => workloads::all()
            .map(|workload| workload.describe())
            .map(|description| (description.name, description.summary))
            .collect(),
        What::Locks => {
            locks::all().into_iter().map(|(name, summary)| (name.into(), summary.into())).collect()
        }
        What::Styles => {
            let styles = Style::all().map(|style| (style.name().into(), style.summary().into()));
            let formats =
                Format::all().map(|format| (format!("--format {}", format.name()), format.summary().into()));
            styles.chain(formats).collect()
        }
        What::DebugOptions => costly_options().map(debug_option).collect(),
        What::Runs => {
            let home = session::home()?;
            let runs = home.list()?;
            if runs.is_empty() {
                output::say(&format!(
                    "kduel: no runs in {} yet; `kduel run` makes one",
                    home.path().display()
                ));
                return Ok(Outcome::Done);
            }
            runs.iter().rev().map(|run| (run.name.clone(), in_words(run))).collect()
        }
    };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().flat_map(|(name, text)| fitted(name, text, width)).collect();
    output::result(&lines.join("\n"))?;
    Ok(Outcome::Done)
}

fn debug_option(name: &str) -> (String, String) {
    let when = when_of(name).map_or(String::new(), |when| format!(" ({when})"));
    (name.into(), format!("{}{when}", cost_of(name).unwrap_or_default()))
}

/// A name in `width` columns and its text behind it, in lines that fit. Only the first begins with a name.
fn fitted(name: &str, text: &str, width: usize) -> Vec<String> {
    let begin = width + 2;
    let lines = wrap(text, WIDTH.saturating_sub(begin), 0).into_iter().enumerate();
    lines.map(|(place, line)| format!("{:begin$}{line}", if place == 0 { name } else { "" })).collect()
}

/// What a run asked and how it ended, in one line.
fn in_words(run: &RunInfo) -> String {
    let header = match &run.header {
        Ok(header) => header,
        Err(missing) => return missing.to_string(),
    };
    let ending = match (&header.imported, &run.ending) {
        (Some(imported), _) => format!("imported from {}", imported.source),
        (None, Some(Ending::Finished)) => "finished".into(),
        (None, Some(Ending::Interrupted(_))) => "interrupted".into(),
        (None, Some(Ending::Failed(_))) => "failed".into(),
        (None, None) => "unfinished".into(),
    };
    let experiment = &header.experiment;
    let labels: Vec<&str> = experiment.workloads.iter().map(|entry| entry.label.as_str()).collect();
    let variants: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    format!("{ending:<12} {}: {}", labels.join(", "), variants.join(" / "))
}
