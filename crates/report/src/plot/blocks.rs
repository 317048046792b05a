//! Every block's value, a small panel per point: drift, outliers and ties are seen here.

use super::axis::Axis;
use super::svg::{Anchor, Svg};
use super::{Frame, colour};
use analysis::{BlockValue, Table};

const PANEL: (f64, f64) = (276.0, 150.0);
/// More panels than this are not drawn; a table of that many points is read by its figures.
const PANELS: usize = 24;
/// More dots than this in one panel cover each other.
const DOTS: usize = 600;

/// Every block of a table.
pub(crate) struct Blocks {
    /// A picture per point.
    pub panels: Vec<String>,
    /// What was left out, in a sentence.
    pub left_out: Option<String>,
}

/// The panels of a table. None where there are no values.
pub(crate) fn blocks(table: &Table, shown: &[usize]) -> Option<Blocks> {
    let rows: Vec<&analysis::Row> =
        table.rows.iter().filter(|row| row.cells.iter().any(|cell| !cell.values.is_empty())).collect();
    if rows.is_empty() {
        return None;
    }
    let drawn = &rows[..rows.len().min(PANELS)];
    let most = (DOTS / shown.len().max(1)).max(50);
    let mut thinned = false;
    let mut panels = Vec::new();
    for row in drawn {
        let (picture, thin) = panel(table, row, shown, most);
        panels.push(picture);
        thinned |= thin;
    }
    let mut left_out = Vec::new();
    if rows.len() > drawn.len() {
        left_out.push(format!("the first {} of {} points are drawn", drawn.len(), rows.len()));
    }
    if thinned {
        left_out.push(format!("of more than {most} blocks, evenly spaced ones are drawn"));
    }
    let left_out = (!left_out.is_empty()).then(|| format!("Not all dots: {}.", left_out.join("; ")));
    Some(Blocks { panels, left_out })
}

/// One panel with at most so many dots of a variant, and whether dots were left out.
fn panel(table: &Table, row: &analysis::Row, shown: &[usize], most: usize) -> (String, bool) {
    let thin = |values: &[BlockValue]| -> Vec<BlockValue> {
        let every = values.len().div_ceil(most).max(1);
        values.iter().step_by(every).copied().collect()
    };
    let cells: Vec<(usize, &[BlockValue])> =
        shown.iter().filter_map(|place| Some((*place, row.cells.get(*place)?.values.as_slice()))).collect();
    let dots: Vec<(usize, Vec<BlockValue>)> =
        cells.iter().map(|(place, values)| (*place, thin(values))).collect();
    let all = || dots.iter().flat_map(|(_, dots)| dots);
    let frame = Frame { left: 54.0, right: PANEL.0 - 10.0, top: 24.0, bottom: PANEL.1 - 22.0 };
    let axis = Axis::linear(all().map(|dot| dot.value), frame.bottom, frame.top);
    let last = all().map(|dot| dot.block).max().unwrap_or(1).max(2);
    let label = table.description.row_label(&row.point);
    let unit = if table.metric.unit.is_empty() { "relative" } else { &table.metric.unit };
    let mut svg = Svg::new(
        PANEL.0,
        PANEL.1,
        &format!("{} {label}: {} in every block", table.workload, table.metric.name),
        &format!("A dot per block and variant; {} in {unit}.", table.metric.name),
    );
    svg.text("panel", (frame.left, frame.top - 9.0), Anchor::Start, &super::clipped(&label, 30));
    for (value, label) in axis.ticks().into_iter().step_by(2) {
        let y = axis.place(value);
        svg.line("grid", (frame.left, y), (frame.right, y));
        svg.text("tick", (frame.left - 5.0, y + 3.5), Anchor::End, &label);
    }
    svg.line("axis", (frame.left, frame.bottom), (frame.right, frame.bottom));
    svg.text("tick", (frame.left + 8.0, frame.bottom + 14.0), Anchor::Middle, "1");
    svg.text("tick", (frame.right - 8.0, frame.bottom + 14.0), Anchor::Middle, &last.to_string());
    svg.text("tick", ((frame.left + frame.right) / 2.0, frame.bottom + 14.0), Anchor::Middle, "block");
    let step = (frame.right - frame.left - 16.0) / f64::from(last - 1);
    let apart = (14.0 / dots.len().max(1) as f64).min(2.4);
    for (order, (place, dots)) in dots.iter().enumerate() {
        // A little aside, so that equal values of two variants are both seen.
        let aside = (order as f64 - (cells.len() - 1) as f64 / 2.0) * apart;
        for dot in dots {
            let x = frame.left + 8.0 + aside + step * f64::from(dot.block.saturating_sub(1));
            svg.dot(&format!("mark {}", colour(*place)), (x, axis.place(dot.value)));
        }
    }
    let thinned = cells.iter().zip(&dots).any(|((_, values), (_, dots))| values.len() > dots.len());
    (svg.finish(), thinned)
}
