//! What stands around the tables: state, notices, and figures of others.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use analysis::{State, Verdict};
use common::{Lab, done, lost, trial, twin};
use experiment::{
    Blocks, Direction, Ending, Failure, Imported, Outcome, Parameter, Point, Record, Statistic, Summary,
};

fn end(ending: Ending) -> Record {
    Record::End { at_unix_ms: 1, ending }
}

#[test]
fn p1_the_state_follows_the_last_word_of_the_journal() {
    let mut lab = Lab::duel(&[1.0; 6], &[1.0; 6]);
    assert_eq!(lab.analyse().state, State::Unfinished);
    lab.run.records.push(end(Ending::Interrupted("SIGINT".into())));
    let analysis = lab.analyse();
    assert_eq!(analysis.state, State::Interrupted("SIGINT".into()));
    assert_eq!(analysis.notices, ["the run was interrupted (SIGINT): 6 of 6 blocks complete"]);
    assert_eq!(analysis.tables[0].rows[0].cells[1].verdict, Verdict::Same, "what is there is kept");
    lab.run.records.push(Record::Resumed { at_unix_ms: 2, accepted: Vec::new() });
    assert_eq!(lab.analyse().state, State::Unfinished);
    lab.run.records.push(end(Ending::Finished));
    let analysis = lab.analyse();
    assert_eq!((analysis.state, analysis.notices.len(), analysis.blocks), (State::Finished, 0, 6));
}

#[test]
fn p1_a_block_that_was_stopped_in_its_middle_does_not_count() {
    let mut lab = Lab::new(2, &["base", "new", "idle:nothing=1"], Blocks::Exactly(6));
    lab.run.header.experiment.aa = true;
    for point in [1, 2] {
        for variant in ["base", "new"] {
            lab.series(point, variant, &[1.0; 5]);
        }
        for block in 1..=5 {
            lab.push(twin(trial(block, point, "base", done(&[("time", &[1.0])]))));
        }
    }
    let stopped = |lab: &Lab| {
        let mut lab = lab.clone();
        lab.run.records.push(end(Ending::Interrupted("SIGINT".into())));
        let analysis = lab.analyse();
        (analysis.notices, analysis.fewest_blocks, analysis.blocks)
    };
    let said = |words: &str| vec![format!("the run was interrupted (SIGINT): {words} complete")];
    assert_eq!(stopped(&lab), (said("5 of 6 blocks"), 5, 5), "`idle` is not waited for: it is not run");
    lab.push(trial(6, 1, "base", done(&[("time", &[1.0])])));
    lab.push(trial(6, 1, "new", done(&[("time", &[1.0])])));
    assert_eq!(stopped(&lab), (said("5 of 6 blocks"), 5, 5), "the twin is not there");
    lab.push(twin(trial(6, 1, "base", lost(Failure::Hang, "it hung"))));
    assert_eq!(stopped(&lab), (said("5 to 6 of 6 blocks"), 5, 6), "a missing trial has ended");
}

#[test]
fn notices_of_journal_trials_and_kernel_come_once_each() {
    let mut lab = Lab::new(1, &["base"], Blocks::Exactly(3));
    lab.run.notices.push("the last record was torn and has been dropped (7 bytes)".into());
    lab.run.records.push(Record::Notice { text: "no cgroup: throttling is not seen".into() });
    for block in 1..=3 {
        let mut outcome = done(&[("time", &[1.0])]);
        if let Outcome::Done { notes, .. } = &mut outcome {
            notes.push("threads were not pinned".into());
        }
        let mut one = trial(block, 1, "base", outcome);
        one.kernel_log = vec!["BUG: soft lockup".into()];
        lab.push(one);
    }
    lab.push(trial(1, 77, "base", done(&[])));
    lab.run.records.push(end(Ending::Finished));
    assert_eq!(
        lab.analyse().notices,
        [
            "the last record was torn and has been dropped (7 bytes)",
            "no cgroup: throttling is not seen",
            "threads were not pinned",
            "the kernel logged 3 lines while trials ran, such as: BUG: soft lockup",
            "trials that belong to no cell of the experiment do not count: 1",
        ]
    );
}

#[test]
fn figures_that_are_not_those_of_an_original_are_told() {
    let mut lab = Lab::new(1, &["base", "new:semantics=strict"], Blocks::Exactly(3));
    lab.run.records.push(end(Ending::Finished));
    let description = &mut lab.run.header.descriptions[0];
    description.parameters.push(Parameter::choice("semantics", &["original", "strict"], ""));
    assert_eq!(lab.analyse().notices, Vec::<String>::new(), "it has no original");
    lab.run.header.descriptions[0].source = "somebody's benchmark".into();
    let [told]: [String; 1] = lab.analyse().notices.try_into().unwrap();
    assert!(told.starts_with("work ran with semantics=strict under new: "), "{told}");
    lab.run.header.experiment.set.insert("semantics".into(), "strict".into());
    let [told]: [String; 1] = lab.analyse().notices.try_into().unwrap();
    assert!(told.starts_with("work ran with semantics=strict: "), "{told}");
}

fn figure(point: &str, variant: &str, value: Option<f64>) -> Summary {
    Summary {
        workload: "work".into(),
        point: Point::new(point),
        variant: variant.into(),
        metric: "time".into(),
        value,
        stddev: None,
        cv_pct: None,
        improvement_pct: None,
    }
}

fn imported(variants: &[&str], figures: Vec<Summary>) -> Lab {
    let mut lab = Lab::new(1, variants, Blocks::Exactly(1));
    lab.run.header.imported = Some(Imported {
        source: "mail".into(),
        style: "scaling".into(),
        notes: Vec::new(),
        checks: Vec::new(),
    });
    let mut points: Vec<Point> = figures.iter().map(|figure| figure.point.clone()).collect();
    points.dedup();
    lab.run.header.experiment.workloads[0].points = points;
    lab.run.records = figures.into_iter().map(Record::Summary).collect();
    lab
}

#[test]
fn published_percentages_come_out_of_the_published_values() {
    // Rows of the slice extension report, with the percentage printed there.
    let rows = [
        ("1", 0.026103, 0.036438, "40"),
        ("64", 14.360199, 14.590723, "2"),
        ("512", 114.564142, 82.005069, "-28"),
    ];
    for (point, base, new, printed) in rows {
        let lab = imported(
            &["base", "slice"],
            vec![figure(point, "base", Some(base)), figure(point, "slice", Some(new))],
        );
        let analysis = lab.analyse();
        assert_eq!((analysis.state.clone(), analysis.family), (State::Imported, 0));
        let cell = &analysis.tables[0].rows[0].cells[1];
        assert_eq!(format!("{:.0}", cell.change_pct.as_ref().unwrap()), printed);
        assert_eq!(cell.verdict, Verdict::Undecided);
        assert_eq!(cell.reason, "imported figures: samples are not known");
        assert_eq!(analysis.tables[0].rows[0].cells[0].verdict, Verdict::Baseline);
    }
}

#[test]
fn percentages_that_were_printed_stand_where_values_are_rounded_or_absent() {
    let mut base = figure("1-groups", "tip", Some(1.0));
    let mut new = figure("1-groups", "proxy", Some(1.03));
    (base.cv_pct, new.cv_pct) = (Some(13.74), Some(8.8));
    (base.improvement_pct, new.improvement_pct) = (Some(-0.0), Some(-3.2));
    let mut only = figure("ycsb", "proxy", None);
    only.improvement_pct = Some(0.18);
    let lab = imported(&["tip", "proxy"], vec![base, new, only]);
    let rows = lab.analyse().tables[0].rows.clone();
    assert_eq!(format!("{:.2}", rows[0].cells[0].improvement_pct.as_ref().unwrap()), "-0.00");
    let cell = &rows[0].cells[1];
    assert_eq!((&cell.improvement_pct, &cell.change_pct, &cell.cv_pct), (&Ok(-3.2), &Ok(3.2), &Ok(8.8)));
    assert_eq!(cell.ratio, Ok(1.03));
    let cell = &rows[1].cells[1];
    assert_eq!((&cell.improvement_pct, cell.verdict), (&Ok(0.18), Verdict::Undecided));
    assert!(cell.value.is_err() && cell.ratio.is_err());
}

#[test]
fn a_deviation_becomes_a_cv_where_the_mean_is_known() {
    let mut new = figure("512", "barrier", Some(4.0));
    new.stddev = Some(1.0);
    let mut lab = imported(&["base", "barrier"], vec![figure("512", "base", Some(2.0)), new]);
    assert_eq!(lab.last_cell().cv_pct, Ok(25.0));
    lab.metric(0).statistic = Statistic::Median;
    assert!(lab.last_cell().cv_pct.is_err(), "a median is no mean");
    lab.metric(0).direction = Direction::Higher;
    assert_eq!(lab.last_cell().improvement_pct, Ok(100.0));
}
