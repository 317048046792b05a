//! A/A: the baseline against its twin at every point, with intervals. A machine that can be trusted has them all
//! around no change.

use super::axis::Axis;
use super::clipped;
use super::svg::{Anchor, Svg};
use crate::head::effect_pct;
use analysis::Analysis;

const WIDTH: f64 = 560.0;
const ROW: f64 = 20.0;
/// More pairs than this are not drawn, those that fired first.
const PAIRS: usize = 40;

/// The pairs as a forest plot, and a sentence on what was left out. None where no pair could be tested.
pub(crate) fn pairs(analysis: &Analysis) -> Option<(String, Option<String>)> {
    let mut all = Vec::new();
    for table in &analysis.tables {
        for row in &table.rows {
            let Ok(pair) = &row.aa else { continue };
            let Some((estimate, low, high)) = pair.effect.as_ref().ok().and_then(effect_pct) else {
                continue;
            };
            if [estimate, low, high].iter().all(|figure| figure.is_finite()) {
                let label = format!(
                    "{} {} {}",
                    table.workload,
                    table.description.row_label(&row.point),
                    table.metric.name
                );
                all.push((label, estimate, low, high, pair.fired));
            }
        }
    }
    if all.is_empty() {
        return None;
    }
    let total = all.len();
    if total > PAIRS {
        // A stable sort keeps the order of the report among those that fired and those that did not.
        all.sort_by_key(|pair| !pair.4);
        all.truncate(PAIRS);
    }
    let margin = analysis.header.experiment.margin_pct;
    let longest = all.iter().map(|pair| pair.0.chars().count()).max().unwrap_or(0).min(34);
    let (left, right, top) = (16.0 + longest as f64 * 6.4, WIDTH - 14.0, 10.0);
    let bottom = top + ROW * all.len() as f64;
    let ends = all.iter().flat_map(|pair| [pair.2, pair.3]).chain([-margin, margin]);
    let axis = Axis::linear(ends, left, right);
    let mut svg = Svg::new(
        WIDTH,
        bottom + 40.0,
        "A/A: the baseline against itself",
        "The difference between the two runs of the baseline at each point, in percent, with its interval.",
    );
    svg.rect("margin", (axis.place(-margin), top), (axis.place(margin) - axis.place(-margin), bottom - top));
    for (value, label) in axis.ticks() {
        let x = axis.place(value);
        svg.line("grid", (x, top), (x, bottom));
        svg.text("tick", (x, bottom + 15.0), Anchor::Middle, &label);
    }
    svg.line("zero", (axis.place(0.0), top), (axis.place(0.0), bottom));
    svg.text("label", ((left + right) / 2.0, bottom + 32.0), Anchor::Middle, "difference (%)");
    for (order, (label, estimate, low, high, fired)) in all.iter().enumerate() {
        let y = top + ROW * (order as f64 + 0.5);
        let class = if *fired { "fired" } else { "v0" };
        svg.text("tick", (left - 8.0, y + 3.5), Anchor::End, &clipped(label, 34));
        svg.line(&format!("whisker {class}"), (axis.place(*low), y), (axis.place(*high), y));
        let tip = format!(
            "{label}: {estimate:+.2} % [{low:+.2}, {high:+.2}]{}",
            if *fired { ", fired" } else { "" }
        );
        svg.mark(&format!("mark {class}"), 0, (axis.place(*estimate), y), &tip);
    }
    let note = (total > all.len())
        .then(|| format!("{} of {total} pairs are drawn, those that fired first.", all.len()));
    Some((svg.finish(), note))
}
