//! Values and changes against the axis, one line per variant.

use super::axis::Axis;
use super::svg::{Anchor, Svg};
use super::{Frame, colour, legend, legend_height};
use crate::figures::{signed_pct, significant, verdict_word};
use crate::head::effect_pct;
use analysis::{Cell, Table, Verdict};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 250.0;

/// One figure of a line: its row, the value and the ends of its interval.
struct Mark {
    row: usize,
    value: f64,
    low: f64,
    high: f64,
    tip: String,
    decided: bool,
}

struct Line<'a> {
    place: usize,
    name: &'a str,
    marks: Vec<Mark>,
}

/// The values against the axis. An interval is that of the comparison, laid on the baseline's value; where nothing
/// was compared, one standard deviation to either side. None where there are no values.
pub(crate) fn values(table: &Table, shown: &[usize]) -> Option<String> {
    let mark = |row: usize, place: usize| {
        let line = table.rows.get(row)?;
        let cell = line.cells.get(place)?;
        let value = *cell.value.as_ref().ok()?;
        let base = line.cells.first().and_then(|cell| cell.value.as_ref().ok()).copied();
        let (low, high) = match (&cell.effect, base, &cell.stddev) {
            (Ok(effect), Some(base), _) if effect.scale == stats::Scale::Ratio => {
                (base * effect.low, base * effect.high)
            }
            (Ok(effect), Some(base), _) => (base + effect.low, base + effect.high),
            (Err(_), _, Ok(stddev)) if cell.values.is_empty() => (value - stddev, value + stddev),
            _ => (value, value),
        };
        Some(Mark { row, value, low, high, tip: tip(table, row, cell), decided: true })
    };
    let lines = lines(table, shown, &mark);
    let name = format!("{} of {}", table.metric.name, table.workload);
    let unit = if table.metric.unit.is_empty() { "relative" } else { &table.metric.unit };
    draw(table, &lines, &name, &format!("{} ({unit})", table.metric.name), None)
}

/// The changes against the baseline in percent, with their intervals and the margin. Filled marks are decided. None
/// where nothing was compared.
pub(crate) fn changes(table: &Table, shown: &[usize], margin_pct: f64) -> Option<String> {
    let mark = |row: usize, place: usize| {
        let cell = table.rows.get(row)?.cells.get(place)?;
        let (value, low, high) = match (&cell.effect, &cell.change_pct) {
            (Ok(effect), _) => effect_pct(effect)?,
            (Err(_), Ok(percent)) if place > 0 => (*percent, *percent, *percent),
            _ => return None,
        };
        let decided = matches!(cell.verdict, Verdict::Better | Verdict::Worse | Verdict::Same);
        Some(Mark { row, value, low, high, tip: tip(table, row, cell), decided })
    };
    let others: Vec<usize> = shown.iter().copied().filter(|place| *place > 0).collect();
    let lines = lines(table, &others, &mark);
    let name =
        format!("change of {} of {} against {}", table.metric.name, table.workload, table.variants.first()?);
    draw(table, &lines, &name, "change (%), raw sign", Some(margin_pct))
}

fn lines<'a>(
    table: &'a Table,
    shown: &[usize],
    mark: &dyn Fn(usize, usize) -> Option<Mark>,
) -> Vec<Line<'a>> {
    let line = |place: &usize| {
        let marks: Vec<Mark> = (0..table.rows.len()).filter_map(|row| mark(row, *place)).collect();
        let finite = |mark: &Mark| [mark.value, mark.low, mark.high].iter().all(|figure| figure.is_finite());
        Some(Line {
            place: *place,
            name: table.variants.get(*place)?,
            marks: marks.into_iter().filter(finite).collect(),
        })
    };
    shown.iter().filter_map(line).filter(|line| !line.marks.is_empty()).collect()
}

fn tip(table: &Table, row: usize, cell: &Cell) -> String {
    let label = table.rows.get(row).map_or(String::new(), |row| table.description.row_label(&row.point));
    let mut tip = format!("{}, {label}", cell.variant);
    if let Ok(value) = &cell.value {
        tip += &format!(": {} {}", significant(*value, 4), table.metric.unit);
    }
    if let Some((estimate, low, high)) = cell.effect.as_ref().ok().and_then(effect_pct) {
        tip += &format!(", {} [{low:+.1}, {high:+.1}]", signed_pct(estimate));
    }
    if !matches!(cell.verdict, Verdict::Baseline | Verdict::Unjudged) {
        tip += &format!(", {}", verdict_word(cell.verdict));
    }
    tip
}

fn draw(
    table: &Table,
    lines: &[Line<'_>],
    title: &str,
    label: &str,
    margin_pct: Option<f64>,
) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let names: Vec<(usize, &str)> = lines.iter().map(|line| (line.place, line.name)).collect();
    let top = legend_height(WIDTH, &names) + 20.0;
    let frame = Frame { left: 58.0, right: WIDTH - 10.0, top, bottom: top + HEIGHT };
    let marks =
        || lines.iter().flat_map(|line| &line.marks).flat_map(|mark| [mark.value, mark.low, mark.high]);
    let axis = match margin_pct {
        // The line of no change and the margin belong to the picture.
        Some(margin) => Axis::linear(marks().chain([-margin, margin]), frame.bottom, frame.top),
        None => Axis::fitting(marks(), frame.bottom, frame.top),
    };
    let label = if axis.is_log() { format!("{label}, logarithmic") } else { label.to_string() };
    let description = format!(
        "{} against {}, for {}.",
        label,
        table.description.axis.name,
        names.iter().map(|(_, name)| *name).collect::<Vec<&str>>().join(", ")
    );
    let mut svg = Svg::new(WIDTH, frame.bottom + 42.0, title, &description);
    legend(&mut svg, WIDTH, &names);
    svg.text("label", (12.0, top - 8.0), Anchor::Start, &label);
    if let Some(margin) = margin_pct {
        let (upper, lower) = (axis.place(margin), axis.place(-margin));
        svg.rect("margin", (frame.left, upper), (frame.right - frame.left, lower - upper));
    }
    frame.grid(&mut svg, &axis);
    if margin_pct.is_some() {
        svg.line("zero", (frame.left, axis.place(0.0)), (frame.right, axis.place(0.0)));
    }
    let labels: Vec<String> = table.rows.iter().map(|row| row.point.to_string()).collect();
    frame.labels(&mut svg, &labels, &table.description.axis.name);
    // Side by side, so that the intervals of several variants do not hide each other.
    let step = (frame.right - frame.left) / table.rows.len().max(1) as f64;
    let apart = (step * 0.6 / lines.len() as f64).min(9.0);
    for (order, line) in lines.iter().enumerate() {
        let aside = (order as f64 - (lines.len() - 1) as f64 / 2.0) * apart;
        let x = |mark: &Mark| frame.column(mark.row, table.rows.len()) + aside;
        let class = colour(line.place);
        let points: Vec<(f64, f64)> =
            line.marks.iter().map(|mark| (x(mark), axis.place(mark.value))).collect();
        if margin_pct.is_none() {
            svg.path(&format!("line {class}"), &points);
        }
        for mark in &line.marks {
            let (x, low, high) = (x(mark), axis.place(mark.low), axis.place(mark.high));
            if (low - high).abs() > 0.5 {
                svg.line(&format!("whisker {class}"), (x, low), (x, high));
                svg.line(&format!("whisker {class}"), (x - 2.5, low), (x + 2.5, low));
                svg.line(&format!("whisker {class}"), (x - 2.5, high), (x + 2.5, high));
            }
            let filled = if mark.decided { "mark" } else { "open" };
            svg.mark(&format!("{filled} {class}"), line.place, (x, axis.place(mark.value)), &mark.tip);
        }
    }
    Some(svg.finish())
}
