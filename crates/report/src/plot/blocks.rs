//! Every block's value, a small panel per point: drift, outliers and ties are seen here.

use super::axis::Axis;
use super::svg::{Anchor, Svg};
use super::{Frame, colour, legend, legend_height};
use analysis::{BlockValue, Table};

const PANEL: (f64, f64) = (276.0, 150.0);
const COLUMNS: usize = 4;
/// More panels than this are not drawn; a table of that many points is read by its figures.
const PANELS: usize = 24;
/// More dots than this of one variant in one panel cover each other.
const DOTS: usize = 200;

/// The panels, and a sentence on what was left out. None where there are no values.
pub(crate) fn blocks(table: &Table, shown: &[usize]) -> Option<(String, Option<String>)> {
    let rows: Vec<&analysis::Row> =
        table.rows.iter().filter(|row| row.cells.iter().any(|cell| !cell.values.is_empty())).collect();
    if rows.is_empty() {
        return None;
    }
    let drawn = &rows[..rows.len().min(PANELS)];
    let columns = drawn.len().min(COLUMNS);
    let names: Vec<(usize, &str)> =
        shown.iter().filter_map(|place| Some((*place, table.variants.get(*place)?.as_str()))).collect();
    let width = PANEL.0 * columns as f64;
    let top = legend_height(width, &names);
    let height = top + PANEL.1 * drawn.len().div_ceil(columns) as f64;
    let unit = if table.metric.unit.is_empty() { "relative" } else { &table.metric.unit };
    let mut svg = Svg::new(
        width,
        height,
        &format!("{} of {} in every block", table.metric.name, table.workload),
        &format!("A panel per point; a dot per block and variant; {} in {unit}.", table.metric.name),
    );
    legend(&mut svg, width, &names);
    let mut thinned = false;
    for (order, row) in drawn.iter().enumerate() {
        let corner = (PANEL.0 * (order % columns) as f64, top + PANEL.1 * (order / columns) as f64);
        let frame = Frame {
            left: corner.0 + 54.0,
            right: corner.0 + PANEL.0 - 10.0,
            top: corner.1 + 24.0,
            bottom: corner.1 + PANEL.1 - 22.0,
        };
        thinned |= panel(&mut svg, table, row, shown, &frame);
    }
    let mut left_out = Vec::new();
    if rows.len() > drawn.len() {
        left_out.push(format!("the first {} of {} points are drawn", drawn.len(), rows.len()));
    }
    if thinned {
        left_out.push(format!("of more than {DOTS} blocks, evenly spaced ones are drawn"));
    }
    let note = (!left_out.is_empty()).then(|| format!("Not all dots: {}.", left_out.join("; ")));
    Some((svg.finish(), note))
}

/// One panel; gives whether dots were left out.
fn panel(svg: &mut Svg, table: &Table, row: &analysis::Row, shown: &[usize], frame: &Frame) -> bool {
    let thin = |values: &[BlockValue]| -> Vec<BlockValue> {
        let every = values.len().div_ceil(DOTS).max(1);
        values.iter().step_by(every).copied().collect()
    };
    let cells: Vec<(usize, &[BlockValue])> =
        shown.iter().filter_map(|place| Some((*place, row.cells.get(*place)?.values.as_slice()))).collect();
    let dots: Vec<(usize, Vec<BlockValue>)> = cells.iter().map(|(place, values)| (*place, thin(values))).collect();
    let all = || dots.iter().flat_map(|(_, dots)| dots);
    let axis = Axis::linear(all().map(|dot| dot.value), frame.bottom, frame.top);
    let last = all().map(|dot| dot.block).max().unwrap_or(1).max(2);
    let label = table.description.row_label(&row.point);
    svg.text("panel", (frame.left, frame.top - 9.0), Anchor::Start, &super::clipped(&label, 30));
    for (value, label) in axis.ticks().into_iter().step_by(2) {
        let y = axis.place(value);
        svg.line("grid", (frame.left, y), (frame.right, y));
        svg.text("tick", (frame.left - 5.0, y + 3.5), Anchor::End, &label);
    }
    svg.line("axis", (frame.left, frame.bottom), (frame.right, frame.bottom));
    svg.text("tick", (frame.left + 6.0, frame.bottom + 14.0), Anchor::Middle, "1");
    svg.text("tick", (frame.right - 6.0, frame.bottom + 14.0), Anchor::Middle, &last.to_string());
    svg.text("tick", ((frame.left + frame.right) / 2.0, frame.bottom + 14.0), Anchor::Middle, "block");
    let step = (frame.right - frame.left - 12.0) / f64::from(last - 1);
    for (place, dots) in &dots {
        for dot in dots {
            let x = frame.left + 6.0 + step * f64::from(dot.block.saturating_sub(1));
            svg.dot(&format!("mark {}", colour(*place)), (x, axis.place(dot.value)));
        }
    }
    cells.iter().zip(&dots).any(|((_, values), (_, dots))| values.len() > dots.len())
}
