//! The last lines of a report: which run it is, and how to run it again.

use crate::figures::{trimmed, wrap};
use analysis::{Analysis, State};
use experiment::{Blocks, TargetKind, counted};

/// What the lines of the footer begin with.
const MARK: &str = "-- ";
/// What stands before the packed experiment.
const REPRODUCE: &str = "kduel reproduce ";

/// The footer, in lines of at most `width` columns. `packed` is the experiment as `kduel reproduce` takes it.
pub(crate) fn lines(analysis: &Analysis, packed: Option<&str>, width: usize) -> Vec<String> {
    let mut lines = wrapped(&sentence(analysis), width);
    if let Some(packed) = packed {
        lines.extend(folded(packed, width));
    }
    lines
}

/// The packed experiment, one long word, broken where each line ends.
fn folded(packed: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("{MARK}{REPRODUCE}");
    for letter in packed.chars() {
        if line.len() >= width {
            lines.push(std::mem::replace(&mut line, format!("{MARK}  ")));
        }
        line.push(letter);
    }
    lines.push(line);
    lines
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrap(text, width.saturating_sub(MARK.len()), 2).into_iter().map(|line| format!("{MARK}{line}")).collect()
}

/// The run and what its verdicts rest on, in one line.
pub(crate) fn sentence(analysis: &Analysis) -> String {
    let header = &analysis.header;
    let run = if header.run.is_empty() { "(unnamed)" } else { &header.run };
    if let (State::Imported, Some(imported)) = (&analysis.state, &header.imported) {
        return format!(
            "kduel {} run {run} imported from {}, style {}, nothing tested",
            header.version, imported.source, imported.style
        );
    }
    let aa = match &analysis.aa {
        Ok(aa) if aa.distrust => format!("A/A FIRED ({} of {})", aa.fired, aa.pairs),
        Ok(aa) => format!("A/A ok ({} %)", trimmed(aa.largest_pct, 1)),
        Err(_) if header.experiment.aa => "A/A not known".into(),
        Err(_) => "no A/A".into(),
    };
    let blocks = match header.experiment.blocks {
        Blocks::Exactly(_) if analysis.fewest_blocks == analysis.blocks => counted(analysis.blocks, "block"),
        Blocks::Exactly(_) => format!("{} to {} blocks", analysis.fewest_blocks, analysis.blocks),
        Blocks::UntilDecided => format!("at most {} until decided", counted(analysis.blocks, "block")),
    };
    let target = match &header.experiment.target {
        TargetKind::Local => String::new(),
        target => format!(" on {target}"),
    };
    format!(
        "kduel {} run {run}{target} seed {}, {blocks}, {aa}, margin {} %, alpha {} % family-wise over {}",
        header.version,
        header.seed,
        trimmed(header.experiment.margin_pct, 2),
        trimmed(analysis::LEVEL * 100.0, 1),
        counted(analysis.family, "cell")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Entry, Experiment, Variant};

    #[test]
    fn a_packed_experiment_survives_wrapping_and_quoting() {
        let variants = (0..9).map(|n| Variant::parse(&format!("v{n}:sysctl.kernel.knob{n}=1")));
        let mut experiment =
            Experiment::new(vec![Entry::of("hackbench")], variants.map(Result::unwrap).collect());
        experiment.seed = Some(42);
        let lines = folded(&experiment::pack(&experiment), 100);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= 100), "{lines:?}");
        assert_eq!(experiment::unpack(&lines.join("\n")).unwrap(), experiment);
        let quoted: Vec<String> = lines.iter().map(|line| format!("> > {line}")).collect();
        assert_eq!(experiment::unpack(&quoted.join("\n")).unwrap(), experiment);
    }
}
