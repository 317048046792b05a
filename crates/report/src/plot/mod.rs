//! The plots of the HTML page, each an SVG picture.

mod axis;
mod blocks;
mod pairs;
mod series;
mod svg;

pub(crate) use blocks::blocks;
pub(crate) use pairs::pairs;
pub(crate) use series::{changes, values};
pub(crate) use svg::escaped;

use svg::{Anchor, Svg};

/// The class that gives the variant at `place` its colour.
fn colour(place: usize) -> String {
    format!("v{}", place % 8)
}

/// Where the figures of a plot stand: between these coordinates.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// The place of row `row` of `rows` on the horizontal axis.
    fn column(&self, row: usize, rows: usize) -> f64 {
        let step = (self.right - self.left) / rows.max(1) as f64;
        self.left + step * (row as f64 + 0.5)
    }

    /// Horizontal lines with their labels to the left.
    fn grid(&self, svg: &mut Svg, axis: &axis::Axis) {
        for (value, label) in axis.ticks() {
            let y = axis.place(value);
            if y < self.top - 0.5 || y > self.bottom + 0.5 {
                continue;
            }
            svg.line("grid", (self.left, y), (self.right, y));
            svg.text("tick", (self.left - 6.0, y + 3.5), Anchor::End, &label);
        }
        svg.line("axis", (self.left, self.bottom), (self.right, self.bottom));
    }

    /// Labels below, as many as there is room for.
    fn labels(&self, svg: &mut Svg, labels: &[String], name: &str) {
        let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(1).min(14);
        let room = (self.right - self.left) / labels.len().max(1) as f64;
        let every = ((longest as f64 * 6.4 + 6.0) / room).ceil().max(1.0) as usize;
        for (row, label) in labels.iter().enumerate().step_by(every) {
            let x = self.column(row, labels.len());
            svg.line("axis", (x, self.bottom), (x, self.bottom + 4.0));
            svg.text("tick", (x, self.bottom + 16.0), Anchor::Middle, &clipped(label, 14));
        }
        svg.text("label", ((self.left + self.right) / 2.0, self.bottom + 33.0), Anchor::Middle, name);
    }
}

/// The names of the variants with their marks, in rows as wide as the plot. Gives the height that they take.
fn legend(svg: &mut Svg, width: f64, names: &[(usize, &str)]) -> f64 {
    let (mut x, mut y) = (12.0, 16.0);
    for (place, name) in names {
        let name = clipped(name, 40);
        let wide = 26.0 + name.chars().count() as f64 * 6.7;
        if x + wide > width && x > 12.0 {
            (x, y) = (12.0, y + 18.0);
        }
        svg.mark(&format!("mark {}", colour(*place)), *place, (x + 4.0, y - 4.0), "");
        svg.text("legend", (x + 13.0, y), Anchor::Start, &name);
        x += wide;
    }
    y + 8.0
}

/// How high the legend of these names will be.
fn legend_height(width: f64, names: &[(usize, &str)]) -> f64 {
    legend(&mut Svg::new(width, 1.0, "", ""), width, names)
}

fn clipped(text: &str, longest: usize) -> String {
    match text.chars().count() > longest {
        true => text.chars().take(longest - 1).chain(['\u{2026}']).collect(),
        false => text.to_string(),
    }
}
