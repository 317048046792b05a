//! Comma-separated values as RFC 4180 has them: lines end with CR LF, fields are quoted where they must be. A
//! figure that is not there is an empty field.

use crate::figures::verdict_word;
use analysis::{Analysis, Table};
use experiment::{Direction, Known};

/// A row per cell.
pub(crate) fn cells(analysis: &Analysis) -> String {
    let mut out = Csv::default();
    out.row(
        &[
            "workload",
            "axis",
            "point",
            "metric",
            "unit",
            "better",
            "statistic",
            "variant",
            "n",
            "value",
            "stddev",
            "cv_pct",
            "ratio",
            "change_pct",
            "improvement_pct",
            "estimate",
            "low",
            "high",
            "scale",
            "confidence",
            "p",
            "verdict",
            "reason",
        ]
        .map(String::from),
    );
    for table in tables(analysis) {
        for row in &table.rows {
            for cell in &row.cells {
                let effect = cell.effect.as_ref().ok();
                let of =
                    |figure: fn(&analysis::Effect) -> f64| effect.map(figure).map_or(String::new(), number);
                // What is exact was not tested.
                let tested = |figure: fn(&analysis::Effect) -> f64| match effect {
                    Some(effect) if effect.exact => String::new(),
                    _ => of(figure),
                };
                out.row(&[
                    table.workload.clone(),
                    table.description.axis.name.clone(),
                    row.point.to_string(),
                    table.metric.name.clone(),
                    table.metric.unit.clone(),
                    better(table.metric.direction).into(),
                    table.metric.statistic.label().to_lowercase(),
                    cell.variant.clone(),
                    cell.values.len().to_string(),
                    known(&cell.value),
                    known(&cell.stddev),
                    known(&cell.cv_pct),
                    known(&cell.ratio),
                    known(&cell.change_pct),
                    known(&cell.improvement_pct),
                    of(|effect| effect.estimate),
                    tested(|effect| effect.low),
                    tested(|effect| effect.high),
                    effect.map_or(String::new(), |effect| match effect.scale {
                        stats::Scale::Ratio => "ratio".into(),
                        stats::Scale::Difference => "difference".into(),
                    }),
                    tested(|effect| effect.confidence),
                    tested(|effect| effect.p),
                    verdict_word(cell.verdict).replace(' ', "-"),
                    cell.reason.clone(),
                ]);
            }
        }
    }
    out.0
}

/// A row per sample: the value of one block. The twin of the baseline, of which A/A is made, is marked.
pub(crate) fn samples(analysis: &Analysis) -> String {
    let mut out = Csv::default();
    out.row(
        &["workload", "axis", "point", "metric", "unit", "variant", "twin", "block", "value"]
            .map(String::from),
    );
    for table in tables(analysis) {
        for row in &table.rows {
            let twin = row.aa.iter().flat_map(|aa| row.cells.first().map(|cell| (cell, &aa.values, "yes")));
            for (cell, values, twin) in row.cells.iter().map(|cell| (cell, &cell.values, "no")).chain(twin) {
                // What does not change from one block to the next is quoted once.
                let head = Csv::fields(&[
                    table.workload.clone(),
                    table.description.axis.name.clone(),
                    row.point.to_string(),
                    table.metric.name.clone(),
                    table.metric.unit.clone(),
                    cell.variant.clone(),
                    twin.into(),
                ]);
                for value in values {
                    out.0.push_str(&head);
                    out.0.push(',');
                    out.0.push_str(&value.block.to_string());
                    out.0.push(',');
                    out.0.push_str(&number(value.value));
                    out.0.push_str("\r\n");
                }
            }
        }
    }
    out.0
}

/// All tables, that of the boots at the end.
fn tables(analysis: &Analysis) -> impl Iterator<Item = &Table> {
    analysis.tables.iter().chain(analysis.boots.as_ref().map(|boots| &boots.ready))
}

fn better(direction: Direction) -> &'static str {
    match direction {
        Direction::Lower => "lower",
        Direction::Higher => "higher",
    }
}

fn known(value: &Known<f64>) -> String {
    value.as_ref().map_or(String::new(), |value| number(*value))
}

/// The shortest digits that read back as the same number; nothing where it is none.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

#[derive(Default)]
struct Csv(String);

impl Csv {
    fn row(&mut self, fields: &[String]) {
        self.0.push_str(&Csv::fields(fields));
        self.0.push_str("\r\n");
    }

    fn fields(fields: &[String]) -> String {
        let quoted = |field: &String| match field.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field.clone(),
        };
        fields.iter().map(quoted).collect::<Vec<String>>().join(",")
    }
}
