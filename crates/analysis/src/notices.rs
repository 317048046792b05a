//! What readers of a report must know besides its figures.

use crate::State;
use crate::counts::Counts;
use experiment::{Blocks, Outcome, Record};
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
    let notes = notes.sorted();
    notices.extend(notes.iter().take(NOTES).map(|(note, _)| note.clone()));
    if notes.len() > NOTES {
        notices.push(format!("trials left {} further notes, which `kduel show` prints", notes.len() - NOTES));
    }
    if let Some(example) = example {
        notices.push(format!("the kernel logged {logged} lines while trials ran, such as: {example}"));
    }
    notices
}

/// A sentence on what a run that has not ended lacks.
pub(crate) fn of_state(state: &State, asked: Blocks, blocks: u32) -> Option<String> {
    let missing = match asked {
        Blocks::Exactly(all) if blocks == 1 => format!("1 of {all} blocks is there"),
        Blocks::Exactly(all) => format!("{blocks} of {all} blocks are there"),
        Blocks::UntilDecided if blocks == 1 => "1 block is there, and open points would get more".into(),
        Blocks::UntilDecided => format!("{blocks} blocks are there, and open points would get more"),
    };
    match state {
        State::Finished | State::Imported => None,
        State::Interrupted(why) => Some(format!("the run was interrupted ({why}): {missing}")),
        State::Unfinished => Some(format!("the run has not ended: {missing}, and verdicts can change")),
    }
}
