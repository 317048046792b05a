//! A small writer of SVG: shapes in the order in which they are drawn, every text escaped. Colours come from the
//! classes of the page, so that plots follow its light and dark form.

use std::fmt::Write;

/// `text` for the inside of an element or attribute of HTML or SVG. Control characters, which neither may hold,
/// become the replacement character.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A picture that grows.
pub(crate) struct Svg {
    body: String,
}

/// Where a text stands to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A picture of this size in user units. `title` and `description` are for those who cannot see it.
    pub fn new(width: f64, height: f64, title: &str, description: &str) -> Svg {
        let mut svg = Svg { body: String::new() };
        svg.put(format_args!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" style=\"max-width:{width:.0}px\">\
             <title>{}</title><desc>{}</desc>",
            escaped(title),
            escaped(description)
        ));
        svg
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(text);
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// A line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (place, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" });
        }
        self.put(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// A filled box.
    pub fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (corner, size);
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    /// A text.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let ((x, y), text) = (at, escaped(text));
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A dot without a tip, for crowds.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64)) {
        self.put(format_args!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"/>"));
    }

    /// The mark of the variant at `place`, each in a shape of its own, with a tip that shows when one points at it.
    pub fn mark(&mut self, class: &str, place: usize, (x, y): (f64, f64), tip: &str) {
        let shape = match place % 4 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"),
            1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"6.6\" height=\"6.6\"/>", x - 3.3, y - 3.3),
            2 => format!("<path d=\"M{:.1} {:.1}l4.2 7.2h-8.4z\"/>", x, y - 4.6),
            _ => format!("<path d=\"M{:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4z\"/>", x, y - 4.4),
        };
        let tip = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) };
        self.put(format_args!("<g class=\"{class}\">{tip}{shape}</g>"));
    }

    /// The picture as it stands in a page.
    pub fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}
