//! What stands above the results in every style: what was asked, of which machine and kernels, what nobody asked
//! for, and the results in two sentences.

use crate::document::Block;
use crate::figures::{JUDGED, signed_pct, trimmed, verdict_word};
use crate::reader::NOTES;
use crate::{boots, machines};
use analysis::{Analysis, Cell, Effect, Feature, Row, State, Table, Verdict};
use experiment::{Experiment, Imported, counted};
use std::collections::BTreeMap;

/// The head of the report.
pub(crate) fn blocks(analysis: &Analysis) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(title) = &analysis.header.experiment.title {
        blocks.push(Block::Section(title.clone()));
    }
    match &analysis.header.imported {
        Some(imported) => blocks.extend(source(imported)),
        None => blocks.extend(machines::blocks(analysis)),
    }
    if !analysis.features.is_empty() {
        blocks.push(Block::Section("What was turned on, and whether it ran".into()));
        blocks.push(Block::Items(features(&analysis.features)));
    }
    let notices = notices(analysis);
    if !notices.is_empty() {
        blocks.push(Block::Section("Notices".into()));
        blocks.push(Block::Items(notices));
    }
    blocks.push(Block::Section("Summary".into()));
    blocks.push(Block::Paragraph(summary(analysis)));
    blocks.extend(parameters(&analysis.header.experiment).map(Block::Paragraph));
    blocks.extend(boots::sentence(analysis).map(Block::Paragraph));
    if let Some(sentence) = aa(analysis) {
        blocks.push(Block::Paragraph(sentence));
    }
    if let Some(sentence) = distrust(analysis) {
        blocks.push(Block::Warning(sentence));
    }
    blocks
}

fn source(imported: &Imported) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = Vec::new();
    let mut heading = NOTES;
    let mut close = |heading: &str, lines: &mut Vec<String>| {
        if !lines.is_empty() {
            blocks.push(Block::Section(heading.into()));
            blocks.push(Block::Lines(std::mem::take(lines)));
        }
    };
    for note in &imported.notes {
        match note.strip_prefix("o ") {
            Some(next) => {
                close(heading, &mut lines);
                heading = next;
            }
            None => lines.push(note.clone()),
        }
    }
    close(heading, &mut lines);
    if !imported.checks.is_empty() {
        blocks.push(Block::Section("Derived columns, recomputed".into()));
        blocks.push(Block::Items(imported.checks.clone()));
    }
    blocks
}

/// Whether features ran: `slice, global-lock: slice=on ran in 24 of 24 trials; the last one: 270 grants`. Workloads that saw the
/// same stand in one sentence.
fn features(features: &[Feature]) -> Vec<String> {
    let mut groups: Vec<Feature> = Vec::new();
    for feature in features {
        let alike = |group: &Feature| {
            let outcome = |of: &Feature| (of.ran == of.trials, of.ran == 0);
            (&group.variant, &group.feature, &group.seen, outcome(group))
                == (&feature.variant, &feature.feature, &feature.seen, outcome(feature))
        };
        match groups.iter_mut().find(|group| alike(group)) {
            Some(group) => {
                group.workload.push_str(", ");
                group.workload.push_str(&feature.workload);
                group.trials += feature.trials;
                group.ran += feature.ran;
            }
            None => groups.push(feature.clone()),
        }
    }
    groups.iter().map(sentence_on).collect()
}

fn sentence_on(feature: &Feature) -> String {
    let Feature { workload, variant, feature, trials, ran, seen } = feature;
    let (ran, last) = match ran {
        0 => ("none".to_string(), "the last one"),
        ran => (ran.to_string(), "the last of them"),
    };
    format!("{variant}, {workload}: {feature} ran in {ran} of {}; {last}: {seen}", counted(*trials, "trial"))
}

/// What readers must know: what yielded nothing, and the analysis's own notices.
pub(crate) fn notices(analysis: &Analysis) -> Vec<String> {
    let mut notices = Vec::new();
    let missing: usize = analysis.missing.iter().map(|(_, count)| count).sum();
    if missing > 0 {
        let reasons: Vec<String> =
            analysis.missing.iter().map(|(why, count)| format!("{count} x {why}")).collect();
        notices.push(format!(
            "{missing} of {} yielded nothing: {}.",
            counted(analysis.trials, "trial"),
            reasons.join("; ").trim_end_matches('.')
        ));
    }
    notices.extend(analysis.notices.iter().cloned());
    notices
}

/// What was set for all variants, which their own lines do not say.
fn parameters(experiment: &Experiment) -> Option<String> {
    let words = |set: &BTreeMap<String, String>| {
        let pairs: Vec<String> = set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(", ")
    };
    let mut parts = Vec::new();
    if !experiment.set.is_empty() {
        parts.push(words(&experiment.set));
    }
    for entry in experiment.workloads.iter().filter(|entry| !entry.set.is_empty()) {
        parts.push(format!("{} {}", entry.label, words(&entry.set)));
    }
    (!parts.is_empty()).then(|| format!("Set for all variants: {}.", parts.join("; ")))
}

/// Every cell of the analysis about which a verdict could be given, in the order of the report. Where a metric is shown and
/// not judged, nothing is said of its absence here: a single client has no spread, and that is no verdict.
pub(crate) fn judged(analysis: &Analysis) -> impl Iterator<Item = (&Table, &Row, &Cell)> {
    let imported = analysis.state == State::Imported;
    let all = analysis.tables.iter().flat_map(|table| {
        table.rows.iter().flat_map(move |row| row.cells.iter().map(move |cell| (table, row, cell)))
    });
    all.filter(move |(table, _, cell)| {
        let verdict = !matches!(cell.verdict, Verdict::Baseline | Verdict::Unjudged);
        !imported && table.metric.primary && verdict
    })
}

/// The change that an effect stands for, in percent of the baseline; none where it is a difference.
pub(crate) fn effect_pct(effect: &Effect) -> Option<(f64, f64, f64)> {
    let pct = |ratio: f64| (ratio - 1.0) * 100.0;
    (effect.scale == stats::Scale::Ratio).then(|| (pct(effect.estimate), pct(effect.low), pct(effect.high)))
}

/// The results in two sentences: how many cells are what, and the largest decided change.
pub(crate) fn summary(analysis: &Analysis) -> String {
    if analysis.state == State::Imported {
        return "These figures were measured elsewhere; nothing about them was tested, since their samples are not \
                known. Signs and sizes below are those of the source."
            .into();
    }
    let baseline =
        analysis.header.experiment.baseline().map_or("the baseline", |variant| variant.name.as_str());
    // A baseline that is missing is judged, but not compared with itself.
    let judged = |analysis| judged(analysis).filter(|(.., cell)| cell.variant != baseline);
    let mut names: Vec<&str> = Vec::new();
    for (.., cell) in judged(analysis) {
        if !names.contains(&cell.variant.as_str()) {
            names.push(&cell.variant);
        }
    }
    if names.is_empty() {
        return "Nothing is compared here: there are no cells to judge. The figures below stand for themselves."
            .into();
    }
    // The words behind "is", for one variant or, with no name, for all.
    let counts = |name: Option<&str>| {
        let words: Vec<String> = JUDGED
            .into_iter()
            .map(|verdict| {
                let of_it = judged(analysis).filter(|(.., cell)| {
                    cell.verdict == verdict && name.is_none_or(|name| cell.variant == name)
                });
                (of_it.count(), verdict)
            })
            .filter(|(count, _)| *count > 0)
            .map(|(count, verdict)| format!("{} in {count}", verdict_word(verdict)))
            .collect();
        words.join(", ")
    };
    let told = match names.len() > 3 {
        true => format!("the {} other variants are {}", names.len(), counts(None)),
        false => {
            let each: Vec<String> =
                names.iter().map(|name| format!("{name} is {}", counts(Some(name)))).collect();
            each.join("; ")
        }
    };
    let first = format!("Of {} compared with {baseline}, {told}.", counted(judged(analysis).count(), "cell"));

    let decided = judged(analysis)
        .filter(|(.., cell)| matches!(cell.verdict, Verdict::Better | Verdict::Worse))
        .filter_map(|(table, row, cell)| {
            let (estimate, ..) = effect_pct(cell.effect.as_ref().ok()?)?;
            // A halving and a doubling are equally large.
            let size = (1.0 + estimate / 100.0).ln().abs();
            Some((size, estimate, table, row, cell))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let second = match decided {
        Some((_, estimate, table, row, cell)) => format!(
            "The largest decided change is that of {} {} under {}: {} {}, {}.",
            table.workload,
            table.description.row_label(&row.point),
            cell.variant,
            table.metric.name,
            signed_pct(estimate),
            verdict_word(cell.verdict)
        ),
        None => "No difference is decided.".into(),
    };
    format!("{first} {second}")
}

/// What the two runs of the baseline say.
pub(crate) fn aa(analysis: &Analysis) -> Option<String> {
    if analysis.state == State::Imported {
        return None;
    }
    let itself = match &analysis.boots {
        Some(_) => "two boots of the same kernel",
        None => "the baseline against itself",
    };
    Some(match &analysis.aa {
        Ok(aa) if aa.identical == aa.pairs => {
            format!("A/A: {itself} at {}: the same to the digit.", counted(aa.pairs, "point"))
        }
        Ok(aa) => format!(
            "A/A: {itself} at {}: the test fired on {} (by chance it fires on {} %); the \
             largest difference is {} %.",
            counted(aa.pairs, "point"),
            aa.fired,
            trimmed(aa.stated_rate * 100.0, 1),
            trimmed(aa.largest_pct, 1)
        ),
        Err(missing) => format!("A/A: not known: {}.", missing.why.trim_end_matches('.')),
    })
}

/// The sentence that warns of the machine.
pub(crate) fn distrust(analysis: &Analysis) -> Option<String> {
    let aa = analysis.aa.as_ref().ok().filter(|aa| aa.distrust)?;
    Some(format!(
        "This machine cannot be trusted for this workload today: the baseline differs from itself at {} of {}, \
         which is more than chance explains.",
        aa.fired,
        counted(aa.pairs, "point")
    ))
}
