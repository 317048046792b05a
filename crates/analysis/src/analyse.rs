use crate::counts::Counts;
use crate::live::Live;
use crate::{Analysis, State, aa, boots, cells, facts, features, imported, notices, tables, virtual_time};
use experiment::{Ending, Missing, Record};
use journal::Run;

/// Turns a run into everything that any report prints. It makes no difference whether the run has ended.
pub fn analyse(run: &Run) -> Analysis {
    let header = &run.header;
    let state = state(run);
    let provenance = facts::of_run(&header.experiment, &run.records);
    let mut notices = boots::remarks(header, &run.records);
    notices.extend(notices::of(run));
    notices.extend(provenance.notices);

    let mut live = Live::new(header);
    let (mut trials, mut strays) = (0, 0);
    let mut missing = Counts::default();
    for record in &run.records {
        if let Record::Boot(boot) = record {
            live.add_boot(boot);
        }
        let Record::Trial(trial) = record else { continue };
        if !live.add(trial) {
            strays += 1;
            continue;
        }
        trials += 1;
        if let Err(absent) = cells::yielded(trial) {
            missing.add(&absent.why);
        }
    }
    if strays > 0 {
        notices.push(format!("trials that belong to no cell of the experiment do not count: {strays}"));
    }
    let complete = || live.cells.points.iter().map(|point| point.complete_blocks());
    let (fewest_blocks, blocks) = (complete().min().unwrap_or(0), complete().max().unwrap_or(0));
    notices.extend(notices::of_state(&state, header.experiment.blocks, fewest_blocks, blocks));

    let (tables, aa) = if header.imported.is_some() {
        (
            imported::tables(header, &run.records),
            Err(Missing::because("imported figures: samples are not known")),
        )
    } else {
        let tables = tables::tables(header, &mut live, &run.records);
        let aa = if header.experiment.aa {
            aa::summary(&tables)
        } else {
            Err(Missing::because("A/A was not asked for"))
        };
        (tables, aa)
    };
    Analysis {
        header: header.clone(),
        state,
        virtual_time: virtual_time::of(header, &run.records, &tables),
        unasked: provenance.unasked,
        refused: provenance.refused,
        facts: provenance.facts,
        features: features::of(header, &run.records),
        tables,
        boots: boots::of(header, &run.records),
        aa,
        family: if header.imported.is_some() { 0 } else { live.family_size() },
        trials,
        missing: missing.sorted(),
        blocks,
        fewest_blocks,
        notices,
    }
}

fn state(run: &Run) -> State {
    if run.header.imported.is_some() {
        return State::Imported;
    }
    run.records.iter().fold(State::Unfinished, |state, record| match record {
        Record::End { ending: Ending::Finished, .. } => State::Finished,
        Record::End { ending: Ending::Interrupted(why) | Ending::Failed(why), .. } => {
            State::Interrupted(why.clone())
        }
        Record::Resumed { .. } => State::Unfinished,
        _ => state,
    })
}
