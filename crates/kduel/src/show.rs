use crate::{Outcome, facts, output, session};
use experiment::{Description, Ending, Facts, Record};
use journal::Run;
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A workload or a run
    #[arg(default_value = "latest")]
    what: String,
}

/// `kduel show`.
///
/// # Errors
/// When there is neither workload nor run of this name.
pub fn show(args: &Args) -> anyhow::Result<Outcome> {
    let text = match workloads::find(&args.what) {
        Some(workload) => workload_in_words(&workload.describe()),
        None => {
            let home = session::home()?;
            match home.read(&args.what) {
                Ok(run) => run_in_words(&run),
                Err(error) => {
                    let names = workloads::names();
                    let hint = experiment::did_you_mean(&args.what, names.iter().map(String::as_str));
                    return Err(anyhow::Error::new(error).context(format!(
                        "`{}` is neither a workload ({hint}) nor a readable run",
                        args.what
                    )));
                }
            }
        }
    };
    output::result(&text)?;
    Ok(Outcome::Done)
}

// Writing to a String cannot fail, so the results of `write!` are dropped throughout.

fn workload_in_words(description: &Description) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} - {}\n", description.name, description.summary);
    let _ = writeln!(out, "{}\n", wrapped(&description.about, 0));
    let _ = writeln!(out, "Original: {}\n", wrapped(&description.source, 10).trim_start());
    let axis = &description.axis;
    let points: Vec<&str> = axis.points.iter().map(|point| point.as_str()).collect();
    let _ = writeln!(out, "Axis: {} (--points), by default {}\n", axis.name, points.join(","));
    let _ = writeln!(out, "Parameters (--set KEY=VALUE, or KEY=VALUE in a variant):");
    for parameter in &description.parameters {
        let default = if parameter.default.is_empty() { "none" } else { &parameter.default };
        let _ = writeln!(out, "  {} = {}   [default {default}]", parameter.name, parameter.kind_in_words());
        let _ = writeln!(out, "{}", wrapped(&parameter.help, 6));
    }
    let _ = writeln!(out, "\nMetrics:");
    for metric in &description.metrics {
        let better = match metric.direction {
            experiment::Direction::Lower => "lower is better",
            experiment::Direction::Higher => "higher is better",
        };
        let judged = if metric.primary { "judged" } else { "shown, not judged" };
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" in {}", metric.unit) };
        let _ = writeln!(out, "  {}{unit}, {better}, {}, {judged}", metric.name, metric.statistic.label());
        let _ = writeln!(out, "{}", wrapped(&metric.help, 6));
    }
    if !description.requirements.is_empty() {
        let _ = writeln!(out, "\nNeeds: {}", description.requirements.join("; "));
    }
    out
}

fn run_in_words(run: &Run) -> String {
    let header = &run.header;
    let mut out = String::new();
    let _ = writeln!(out, "run       {}", header.run);
    if let Some(title) = &header.experiment.title {
        let _ = writeln!(out, "title     {title}");
    }
    if let Some(imported) = &header.imported {
        let _ = writeln!(out, "imported  from {} ({})", imported.source, imported.style);
    }
    let _ = writeln!(out, "kduel     {} (build {})", header.version, header.build);
    let _ = writeln!(out, "state     {}", state(run));
    let experiment = &header.experiment;
    let _ = writeln!(out, "target    {}", experiment.target);
    let _ = writeln!(
        out,
        "blocks    {}, margin {} %, seed {}, A/A {}",
        experiment.blocks,
        experiment.margin_pct,
        header.seed,
        if experiment.aa { "on" } else { "off" }
    );
    for entry in &experiment.workloads {
        let points: Vec<&str> = entry.points.iter().map(|point| point.as_str()).collect();
        let name = match entry.label == entry.workload {
            true => entry.label.clone(),
            false => format!("{} ({})", entry.label, entry.workload),
        };
        let set: Vec<String> =
            experiment.set.iter().chain(&entry.set).map(|(name, value)| format!(" {name}={value}")).collect();
        let _ = writeln!(out, "workload  {name} at {}{}", points.join(","), set.concat());
    }
    for variant in &experiment.variants {
        let _ = writeln!(out, "variant   {}: {}", variant.name, variant.knobs_in_words());
    }
    let mut trials = 0;
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    for record in &run.records {
        if let Record::Trial(trial) = record {
            trials += 1;
            if let experiment::Outcome::Missing { why, .. } = &trial.outcome {
                *missing
                    .entry(format!("{} {} {}: {why}", trial.workload, trial.point, trial.variant))
                    .or_default() += 1;
            }
        }
    }
    let _ = writeln!(out, "trials    {trials}, of which {} missing", missing.values().sum::<usize>());
    for (why, count) in missing {
        let _ = writeln!(out, "  {count} x {why}");
    }
    out.push_str(&boots_in_words(run));
    for notice in &run.notices {
        let _ = writeln!(out, "notice    {notice}");
    }
    for record in &run.records {
        match record {
            Record::Notice { text } => {
                let _ = writeln!(out, "notice    {text}");
            }
            Record::Facts { variant, facts } => out.push_str(&facts_in_words(variant, facts)),
            Record::Boot(boot) => {
                out.extend(boot.facts.as_ref().map(|facts| facts_in_words(&boot.variant, facts)));
            }
            _ => {}
        }
    }
    out
}

fn facts_in_words(variant: &str, facts: &Facts) -> String {
    let mut out = format!("machine under {variant}:\n");
    for line in facts::in_words(facts).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// The boots of a run with all that was remarked of them; nothing where none were.
fn boots_in_words(run: &Run) -> String {
    let mut count = 0;
    let mut remarks: BTreeMap<String, usize> = BTreeMap::new();
    for record in &run.records {
        if let Record::Boot(boot) = record {
            count += 1;
            for remark in &boot.remarks {
                *remarks.entry(format!("{}: {remark}", boot.variant)).or_default() += 1;
            }
        }
    }
    let mut out = if count == 0 { String::new() } else { format!("boots     {count}\n") };
    for (remark, count) in remarks {
        let _ = writeln!(out, "  {count} x {remark}");
    }
    out
}

fn state(run: &Run) -> String {
    if run.header.imported.is_some() {
        return "imported".into();
    }
    let last =
        run.records.iter().rev().find(|record| matches!(record, Record::End { .. } | Record::Resumed { .. }));
    match last {
        Some(Record::End { ending: Ending::Finished, .. }) => "finished".into(),
        Some(Record::End { ending: Ending::Interrupted(why), .. }) => format!("interrupted: {why}"),
        Some(Record::End { ending: Ending::Failed(why), .. }) => format!("failed: {why}"),
        _ => "unfinished: it runs, or was killed".into(),
    }
}

/// Text in lines of at most 96 columns behind `indent` spaces.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut line = " ".repeat(indent);
        for word in paragraph.split_whitespace() {
            if line.len() + word.len() + 1 > 96 && line.len() > indent {
                lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            }
            if line.len() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
        lines.push(String::new());
    }
    lines.pop();
    lines.join("\n")
}
