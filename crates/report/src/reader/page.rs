use super::ImportError;
use experiment::Direction;

/// A text as numbered lines, without the marks of a quoted mail and without spaces at the ends.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// The name of the file.
    pub source: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Page<'a> {
    /// The page of `text`, which came from the file `source`.
    pub fn new(text: &'a str, source: &'a str) -> Page<'a> {
        let unquoted = |line: &'a str| match line.trim_start_matches(['>', ' ']) {
            // Indentation means something, unless it is that of a quotation.
            inner if line.starts_with('>') => inner,
            _ => line,
        };
        Page { source, lines: text.lines().map(|line| unquoted(line).trim_end()).collect() }
    }

    /// The lines with their numbers, from 1.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = (usize, &'a str)> {
        self.lines.iter().enumerate().map(|(place, line)| (place + 1, *line))
    }

    /// The text of a line, empty beyond the end.
    pub fn line(&self, number: usize) -> &'a str {
        number.checked_sub(1).and_then(|place| self.lines.get(place)).copied().unwrap_or("")
    }

    /// The error that something else was expected at `line`.
    pub fn expected(&self, line: usize, expected: impl Into<String>) -> ImportError {
        let found: String = self.line(line).trim().chars().take(80).collect();
        ImportError::Line { file: self.source.into(), line, expected: expected.into(), found }
    }

    /// The name of the file without folders and extension: what figures are called that have no name.
    pub fn stem(&self) -> String {
        let name = self.source.rsplit('/').next().unwrap_or(self.source);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        if stem.trim().is_empty() { "imported".into() } else { stem.trim().to_string() }
    }
}

/// A finite number in plain digits, with a sign, a point and an exponent where they stand.
pub(crate) fn number(text: &str) -> Option<f64> {
    let legal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(legal) || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The words between the borders of a table's row, where `line` is one.
pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Which way a metric is good whose source does not say: times and latencies are better when lower.
pub(crate) fn direction_of(name: &str, unit: &str) -> Direction {
    let time = matches!(unit, "s" | "sec" | "ms" | "us" | "ns" | "seconds") || unit.ends_with("/op");
    let words = name.to_lowercase();
    match time || ["time", "latency", "delay"].iter().any(|word| words.contains(word)) {
        true => Direction::Lower,
        false => Direction::Higher,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_finite_numbers_are_numbers() {
        assert_eq!(number(".026103"), Some(0.026103));
        assert_eq!(number("-0.00").map(f64::is_sign_negative), Some(true));
        for text in ["nan", "inf", "-inf", "infinity", "", "-", "1e999", "0x10", "1_0", "e"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn quotations_lose_their_marks_and_indentation_stays() {
        let page = Page::new("> > | a |\n  | b |  \n", "x/y.txt");
        assert_eq!(page.line(1), "| a |");
        assert_eq!(page.line(2), "  | b |");
        assert_eq!(page.line(9), "");
        assert_eq!(page.stem(), "y");
    }
}
