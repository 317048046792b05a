//! What schbench prints.

use crate::originals::{decimal, unread};
use crate::schbench::latencies::{Figure, What};
use crate::{Failure, Trial};
use regex::Regex;

/// What it printed: the last table of each title, since it prints them again every ten seconds.
pub struct Page<'a> {
    text: &'a str,
    tables: Vec<(String, Table)>,
}

/// A table of percentiles.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Table {
    /// How many values went into it; older versions do not say.
    pub samples: Option<u64>,
    percentiles: Vec<(f64, u64)>,
    range: Option<(u64, u64)>,
}

impl<'a> Page<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// Never with the patterns of this build.
    pub fn read(text: &'a str) -> Result<Page<'a>, Failure> {
        let title = pattern(r"^(.*\S) percentiles \(\w+\)(?:.*\((\d+) total samples\))?")?;
        let row = pattern(r"^[\s*]*(\d+(?:\.\d+)?)th: *(\d+)")?;
        let range = pattern(r"^\s*min=(\d+), *max=(\d+)")?;
        let mut tables: Vec<(String, Table)> = Vec::new();
        for line in text.lines() {
            if let Some(found) = title.captures(line) {
                let samples = found.get(2).and_then(|samples| samples.as_str().parse().ok());
                tables.push((found[1].into(), Table { samples, ..Table::default() }));
            }
            let Some((_, table)) = tables.last_mut() else { continue };
            if let Some(found) = row.captures(line)
                && let (Some(percent), Ok(value)) = (decimal(&found[1]), found[2].parse())
            {
                table.percentiles.push((percent, value));
            } else if let Some(found) = range.captures(line)
                && let (Ok(least), Ok(most)) = (found[1].parse(), found[2].parse())
            {
                table.range = Some((least, most));
            }
        }
        Ok(Page { text, tables })
    }

    /// The last table of this title.
    pub fn table(&self, title: &str) -> Option<&Table> {
        self.tables.iter().rev().find(|(own, _)| own == title).map(|(_, table)| table)
    }

    /// As [`Page::table`], which must be there and have rows.
    ///
    /// # Errors
    /// When it is not.
    pub fn wanted(&self, title: &str) -> Result<&Table, Failure> {
        self.table(title)
            .filter(|table| !table.percentiles.is_empty())
            .ok_or_else(|| unread("schbench", title, self.text))
    }

    /// Leaves those of `figures` that the table has. The first is judged, and must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn leave(
        &self,
        title: &str,
        figures: impl IntoIterator<Item = (String, What)>,
        trial: &mut Trial,
    ) -> Result<(), Failure> {
        let table = self.wanted(title)?;
        for (place, (name, what)) in figures.into_iter().enumerate() {
            match table.value(what) {
                Some(value) => trial.sample(&name, value as f64)?,
                None if place == 0 => return Err(unread("schbench", &name, self.text)),
                None => {}
            }
        }
        Ok(())
    }

    /// The number in the last line that fits the pattern.
    ///
    /// # Errors
    /// When the pattern is none.
    pub fn number(&self, text: &str) -> Result<Option<f64>, Failure> {
        let pattern = pattern(text)?;
        Ok(self.text.lines().rev().find_map(|line| decimal(&pattern.captures(line)?[1])))
    }
}

impl Table {
    fn value(&self, what: What) -> Option<u64> {
        match what {
            What::Percentile(percent) => {
                let of = |(own, value): &(f64, u64)| ((own - percent).abs() < 1e-6).then_some(*value);
                self.percentiles.iter().find_map(of)
            }
            What::Least => Some(self.range?.0),
            What::Most => Some(self.range?.1),
        }
    }
}

/// `figures` with the names of their metrics.
pub fn named(figures: &[Figure], prefix: &str) -> impl Iterator<Item = (String, What)> {
    figures.iter().map(move |figure| (format!("{prefix}{}", figure.name), figure.what))
}

fn pattern(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| Failure::Refused(error.to_string()))
}
