//! Tables of figures that somebody else measured.

use crate::tables::relative;
use crate::{Cell, Row, Table, Verdict};
use experiment::{Description, Direction, Entry, Header, Metric, Missing, Record, Statistic, Summary};
use std::collections::HashMap;

const UNKNOWN: &str = "imported figures: samples are not known";

type Place<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The tables of an imported run.
pub(crate) fn tables(header: &Header, records: &[Record]) -> Vec<Table> {
    let mut figures: HashMap<Place<'_>, &Summary> = HashMap::new();
    for record in records {
        if let Record::Summary(figure) = record {
            let place = (&*figure.workload, figure.point.as_str(), &*figure.variant, &*figure.metric);
            figures.entry(place).or_insert(figure);
        }
    }
    let entries = header.experiment.workloads.iter().zip(&header.descriptions);
    entries
        .flat_map(|(entry, description)| {
            description.metrics.iter().map(move |metric| (entry, description, metric))
        })
        .map(|(entry, description, metric)| table(header, entry, description, metric, &figures))
        .filter(|table| table.rows.iter().any(|row| row.cells.iter().any(has_figure)))
        .collect()
}

fn has_figure(cell: &Cell) -> bool {
    cell.value.is_ok() || cell.improvement_pct.is_ok()
}

fn table(
    header: &Header,
    entry: &Entry,
    description: &Description,
    metric: &Metric,
    figures: &HashMap<Place<'_>, &Summary>,
) -> Table {
    let variants = header.experiment.variants.iter().map(|variant| variant.name.clone());
    let rows = entry.points.iter().map(|point| {
        let find =
            |variant: &str| figures.get(&(&*entry.label, point.as_str(), variant, &*metric.name)).copied();
        let base = header.experiment.baseline().and_then(|variant| find(&variant.name));
        let cells = header.experiment.variants.iter().enumerate();
        Row {
            point: point.clone(),
            cells: cells
                .map(|(place, variant)| cell(&variant.name, place == 0, metric, find(&variant.name), base))
                .collect(),
            aa: Err(Missing::because(UNKNOWN)),
        }
    });
    Table {
        workload: entry.label.clone(),
        description: description.clone(),
        metric: metric.clone(),
        variants: variants.collect(),
        rows: rows.collect(),
        tick: None,
    }
}

fn cell(
    name: &str,
    is_base: bool,
    metric: &Metric,
    figure: Option<&Summary>,
    base: Option<&Summary>,
) -> Cell {
    let given = |number: Option<f64>| number.ok_or_else(|| Missing::because("the source does not give it"));
    let value = given(figure.and_then(|figure| figure.value));
    let stddev = given(figure.and_then(|figure| figure.stddev));
    let printed_cv = given(figure.and_then(|figure| figure.cv_pct));
    // Only an arithmetic mean is the mean that a coefficient of variation is about.
    let cv_pct = printed_cv.or_else(|absent| match (&value, &stddev, metric.statistic) {
        (Ok(mean), Ok(stddev), Statistic::Amean) if *mean != 0.0 => Ok(stddev / mean.abs() * 100.0),
        _ => Err(absent),
    });
    let of_base = given(base.and_then(|base| base.value));
    let mut relative = relative(metric, &value, &of_base);
    // What the source computed from values that it does not show is better than what its rounded values give.
    if let Some(printed) = figure.and_then(|figure| figure.improvement_pct) {
        relative.improvement_pct = Ok(printed);
        relative.change_pct = Ok(if metric.direction == Direction::Lower { -printed } else { printed });
    }
    let absent = figure.is_none_or(|figure| figure.value.is_none() && figure.improvement_pct.is_none());
    let unknown = || Missing::because(UNKNOWN);
    let (verdict, reason) = match (absent, is_base) {
        (true, _) => (Verdict::Missing, "the source has no such figure"),
        (false, true) => (Verdict::Baseline, "the others are compared with it"),
        (false, false) if metric.primary => (Verdict::Undecided, UNKNOWN),
        (false, false) => (Verdict::Unjudged, "the metric is shown, not judged"),
    };
    Cell {
        variant: name.into(),
        values: Vec::new(),
        value,
        stddev,
        cv_pct,
        ratio: relative.ratio,
        change_pct: relative.change_pct,
        improvement_pct: relative.improvement_pct,
        effect: Err(unknown()),
        icc: Err(unknown()),
        verdict,
        reason: reason.into(),
    }
}
