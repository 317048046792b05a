//! What readers of a report must know besides its figures.

use crate::State;
use crate::counts::Counts;
use experiment::{Blocks, Header, Outcome, Record, Variant, counted};
use journal::Run;

/// More notes than this from single trials say no more than their number does.
const NOTES: usize = 12;

/// Sentences that the journal itself holds: of its reader, of the coordinator, and of trials, each once.
pub(crate) fn of(run: &Run) -> Vec<String> {
    let mut notices = run.notices.clone();
    let mut notes = Counts::default();
    let (mut logged, mut example) = (0, None);
    for record in &run.records {
        match record {
            Record::Notice { text } if !notices.contains(text) => notices.push(text.clone()),
            Record::Trial(trial) => {
                if let Outcome::Done { notes: said, .. } = &trial.outcome {
                    said.iter().for_each(|note| notes.add(note));
                }
                logged += trial.kernel_log.len();
                example = example.or(trial.kernel_log.first());
            }
            _ => {}
        }
    }
    notices.extend(of_semantics(&run.header));
    let notes = notes.sorted();
    notices.extend(notes.iter().take(NOTES).map(|(note, _)| note.clone()));
    if notes.len() > NOTES {
        notices.push(format!("trials left {} further notes, which `kduel show` prints", notes.len() - NOTES));
    }
    if let Some(example) = example {
        let logged = counted(logged, "line");
        notices.push(format!("the kernel logged {logged} while trials ran, such as: {example}"));
    }
    notices
}

/// Sentences on what cannot be set beside posted figures: those that were not measured as the originals do it.
fn of_semantics(header: &Header) -> Vec<String> {
    let experiment = &header.experiment;
    // The labels of workloads by the variants that are strict; without names where all are.
    let mut strict: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (entry, description) in experiment.workloads.iter().zip(&header.descriptions) {
        let is_strict = |variant: &&Variant| {
            let params = experiment.params(entry, variant, description);
            params.is_ok_and(|params| params.text("semantics") == Ok("strict"))
        };
        if description.is_own() {
            continue;
        }
        let mut variants: Vec<&str> =
            experiment.variants.iter().filter(is_strict).map(|variant| variant.name.as_str()).collect();
        if variants.is_empty() {
            continue;
        }
        if variants.len() == experiment.variants.len() {
            variants.clear();
        }
        match strict.iter_mut().find(|(known, _)| *known == variants) {
            Some((_, labels)) => labels.push(entry.label.as_str()),
            None => strict.push((variants, vec![entry.label.as_str()])),
        }
    }
    let sentence = |(variants, labels): (Vec<&str>, Vec<&str>)| {
        let under =
            if variants.is_empty() { String::new() } else { format!(" under {}", variants.join(", ")) };
        format!(
            "{} ran with semantics=strict{under}: these figures cannot be set beside posted ones, which have the quirks of \
             the originals",
            labels.join(", ")
        )
    };
    strict.into_iter().map(sentence).collect()
}

/// A sentence on what a run that has not ended lacks.
pub(crate) fn of_state(state: &State, asked: Blocks, fewest: u32, most: u32) -> Option<String> {
    let missing = match asked {
        Blocks::Exactly(all) if fewest == most => format!("{most} of {} complete", counted(all, "block")),
        Blocks::Exactly(all) => format!("{fewest} to {most} of {} complete", counted(all, "block")),
        Blocks::UntilDecided => {
            format!("the point with the most has {}, and open points would get more", counted(most, "block"))
        }
    };
    match state {
        State::Finished | State::Imported => None,
        State::Interrupted(why) => Some(format!("the run was interrupted ({why}): {missing}")),
        State::Unfinished => Some(format!("the run has not ended: {missing}, and verdicts can change")),
    }
}
