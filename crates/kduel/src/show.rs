use crate::{Outcome, facts, output, session};
use experiment::{Description, Ending, Facts, Record};
use journal::Run;
use report::{WIDTH, wrap};
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
                Ok(run) => fitted(&output::plain(&run_in_words(&run))),
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
    put(&mut out, &format!("{} - {}", description.name, description.summary), 4);
    for paragraph in description.about.split("\n\n") {
        out.push('\n');
        put(&mut out, paragraph, 0);
    }
    if !description.is_own() {
        out.push('\n');
        put(&mut out, &format!("Original: {}", description.source), 10);
    }
    out.push('\n');
    let axis = &description.axis;
    let points: Vec<&str> = axis.points.iter().map(|point| point.as_str()).collect();
    put(&mut out, &format!("Axis: {} (--points), by default {}", axis.name, points.join(",")), 6);
    out.push('\n');
    put(&mut out, "Parameters (--set KEY=VALUE, or KEY=VALUE in a variant):", 0);
    for parameter in &description.parameters {
        let default = if parameter.default.is_empty() { "none" } else { &parameter.default };
        let line = |kind: &str| format!("  {} = {kind} [default {default}]", parameter.name);
        let kind = parameter.kind_in_words();
        match line(&kind).len() <= WIDTH {
            true => put(&mut out, &line(&kind), 6),
            // Many words are no single one, which would be broken anywhere.
            false => put(&mut out, &line(&kind.replace('|', " | ")), 6),
        }
        put(&mut out, &format!("      {}", parameter.help), 6);
    }
    out.push('\n');
    put(&mut out, "Metrics:", 0);
    for metric in &description.metrics {
        let better = match metric.direction {
            experiment::Direction::Lower => "lower is better",
            experiment::Direction::Higher => "higher is better",
        };
        let judged = if metric.primary { "judged" } else { "shown, not judged" };
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" in {}", metric.unit) };
        let name = format!("  {}{unit}, {better}, {}, {judged}", metric.name, metric.statistic.label());
        put(&mut out, &name, 6);
        put(&mut out, &format!("      {}", metric.help), 6);
    }
    if !description.requirements.is_empty() {
        out.push('\n');
        put(&mut out, &format!("Needs: {}", description.requirements.join("; ")), 7);
    }
    out
}

/// Writes `text` in lines that fit, all but the first behind `indent` spaces.
fn put(out: &mut String, text: &str, indent: usize) {
    for line in wrap(text, WIDTH, indent) {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// The lines of [`run_in_words`] with those that are too long wrapped, each under its own text.
fn fitted(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match line.split_at_checked(TEXT_COLUMN) {
            _ if line.len() <= WIDTH => {
                let _ = writeln!(out, "{line}");
            }
            Some((name, text)) if !line.starts_with(' ') => {
                for (place, line) in wrap(text, WIDTH - TEXT_COLUMN, 0).iter().enumerate() {
                    let name = if place == 0 { name } else { "" };
                    let _ = writeln!(out, "{name:TEXT_COLUMN$}{line}");
                }
            }
            _ => put(&mut out, line, 6),
        }
    }
    out
}

/// Where the texts of a run's lines begin, behind their names.
const TEXT_COLUMN: usize = 10;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_explained_in_lines_that_fit() {
        for description in workloads::all().map(|workload| workload.describe()) {
            let page = workload_in_words(&description);
            assert!(page.is_ascii(), "{page}");
            for line in page.lines() {
                assert!(line.len() <= WIDTH && line == line.trim_end(), "{}: {line:?}", description.name);
            }
            // No word was broken.
            let flat = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
            for text in description.requirements.iter().chain([&description.summary]) {
                assert!(flat(&page).contains(&flat(text)), "{}: {text}", description.name);
            }
        }
    }

    #[test]
    fn long_lines_of_a_run_go_on_under_their_own_text() {
        let long = "word ".repeat(30);
        let text = fitted(&format!("run       short\nvariant   {long}\n  12 x {long}\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(lines[0], "run       short");
        assert!(lines[1].starts_with("variant   word") && lines[2].starts_with("          word"), "{text}");
        assert!(lines[3].starts_with("  12 x word") && lines[4].starts_with("      word"), "{text}");
    }
}
