use serde::{Deserialize, Serialize};
use std::fmt;

/// One value of a workload's axis: a number of threads, groups or clients, or a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(String);

impl Point {
    /// The point with this label.
    pub fn new(label: impl Into<String>) -> Point {
        Point(label.into())
    }

    /// The label as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The point as a whole number, where it is one.
    pub fn number(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Reads `1,2,4` and ranges `1-4`; everything else between commas is a name.
    pub fn list(text: &str) -> Vec<Point> {
        let mut points = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item.split_once('-').map(|(a, b)| (a.parse::<u64>(), b.parse::<u64>())) {
                Some((Ok(first), Ok(last))) if first <= last && last - first < 10_000 => {
                    points.extend((first..=last).map(|n| Point(n.to_string())));
                }
                _ => points.push(Point::new(item)),
            }
        }
        points
    }
}

impl From<u64> for Point {
    fn from(number: u64) -> Point {
        Point(number.to_string())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_numbers_ranges_and_names() {
        let labels: Vec<String> = Point::list("1,2-4, 16,Copy").iter().map(Point::to_string).collect();
        assert_eq!(labels, ["1", "2", "3", "4", "16", "Copy"]);
    }
}
