//! How figures and words are written: everything that reaches a terminal passes through here.

use analysis::Verdict;

/// The longest line of a report, in columns.
pub const WIDTH: usize = 100;

/// `text` in printable ASCII on one line: tables hold and mails survive. What has no ASCII form becomes `?`.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            '\t' | '\n' | '\r' | '\u{a0}' | '\u{2009}' => out.push(' '),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201c}' | '\u{201d}' => out.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
            '\u{2026}' => out.push_str("..."),
            '\u{b1}' => out.push_str("+-"),
            '\u{d7}' => out.push('x'),
            '\u{b5}' | '\u{3bc}' => out.push('u'),
            _ => out.push('?'),
        }
    }
    out
}

/// `text` in ASCII and at most `longest` columns; what is cut off shows as `~`.
pub fn short(text: &str, longest: usize) -> String {
    let text = ascii(text);
    if text.len() <= longest {
        return text;
    }
    format!("{}~", &text[..longest.saturating_sub(1)])
}

/// `text` in lines of at most `width` columns, all but the first indented by `indent`. Words that are longer than
/// a line are broken.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let text = ascii(text);
    let width = width.max(indent + 10);
    // The spaces that a line begins with are its place in a table or list.
    let lead = text.len() - text.trim_start().len();
    let mut lines = vec![" ".repeat(lead.min(width / 2))];
    let mut begun = false;
    for word in words(&text) {
        let mut word = word.as_str();
        loop {
            let at = lines.len() - 1;
            let line = &mut lines[at];
            let gap = usize::from(begun);
            if line.len() + gap + word.len() <= width {
                line.push_str(if gap == 1 { " " } else { "" });
                line.push_str(word);
                begun = true;
                break;
            }
            if !begun {
                let (head, rest) = word.split_at(width - line.len());
                line.push_str(head);
                word = rest;
            }
            lines.push(" ".repeat(indent));
            begun = false;
        }
    }
    lines
}

/// The words of a text. A number and its unit stay together: `8 s`, `5 %`.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', ';', '.', ':', ')']);
        match words.last_mut() {
            Some(number)
                if ["%", "s", "ms", "ns", "min", "h"].contains(&unit)
                    && number.ends_with(|c: char| c.is_ascii_digit()) =>
            {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.into()),
        }
    }
    words
}

/// `value` with so many significant digits and no exponent as long as that is readable.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor() as i64;
    if !(-9..=15).contains(&magnitude) {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    let decimals = (digits as i64 - 1 - magnitude).clamp(0, 15) as usize;
    format!("{value:.decimals$}")
}

/// `value` with thousands separators: whole from 1000 on, with up to six significant digits below.
pub fn thousands(value: f64) -> String {
    if value.abs() >= 1e15 {
        return significant(value, 6);
    }
    if value.abs() < 999.5 {
        let text = significant(value, 6);
        return match text.contains('.') && !text.contains('e') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        };
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `value` as bc prints it: no zero before the point.
pub fn bc(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match (text.strip_prefix("0."), text.strip_prefix("-0.")) {
        (Some(rest), _) => format!(".{rest}"),
        (_, Some(rest)) => format!("-.{rest}"),
        _ => text,
    }
}

/// So many decimals that the smallest value of a table shows at least `digits` digits.
pub fn decimals(table: &analysis::Table, digits: i64) -> usize {
    let values = table.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.value.as_ref().ok());
    let least = values.map(|value| value.abs()).filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
    match least.is_finite() {
        true => (digits - 1 - least.log10().floor() as i64).clamp(0, 12) as usize,
        false => 0,
    }
}

/// A percentage with its sign and one decimal: `+3.2 %`. Large ones lose the decimal.
pub fn signed_pct(value: f64) -> String {
    match value.abs() < 1000.0 {
        true => format!("{value:+.1} %"),
        false => format!("{value:+.0} %"),
    }
}

/// A number with at most `decimals` decimals and no zeros at its end: `2`, `0.3`.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// A p value as it is written in a sentence: `0.004`, `<0.001`.
pub fn p_value(p: f64) -> String {
    match p < 0.001 {
        true => "<0.001".into(),
        false => format!("{p:.3}"),
    }
}

/// What a judged cell can be, in the order of every list of counts.
pub const JUDGED: [Verdict; 6] = [
    Verdict::Better,
    Verdict::Worse,
    Verdict::Same,
    Verdict::Undecided,
    Verdict::NotExercised,
    Verdict::Missing,
];

/// The verdict in words.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Baseline => "baseline",
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "same",
        Verdict::Undecided => "undecided",
        Verdict::NotExercised => "not exercised",
        Verdict::Missing => "missing",
        Verdict::Unjudged => "not judged",
    }
}

/// The mark after a cell, or none.
pub fn verdict_mark(verdict: Verdict) -> Option<char> {
    match verdict {
        Verdict::Better => Some('+'),
        Verdict::Worse => Some('-'),
        Verdict::Same => Some('='),
        Verdict::Undecided => Some('?'),
        Verdict::NotExercised => Some('o'),
        Verdict::Baseline | Verdict::Missing | Verdict::Unjudged => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_lists_know_them() {
        assert_eq!(bc(0.026103, 6), ".026103");
        assert_eq!(bc(-0.5, 2), "-.50");
        assert_eq!(bc(114.564142, 6), "114.564142");
        assert_eq!(thousands(8_092_486.0), "8,092,486");
        assert_eq!(thousands(-1234.0), "-1,234");
        assert_eq!(thousands(999.7), "1,000");
        assert_eq!(thousands(0.0690), "0.069");
        assert_eq!(significant(0.0690, 6), "0.0690000");
        assert_eq!(significant(123_456_789.0, 6), "123456789");
        assert_eq!(significant(1e300, 3), "1.00e300");
        assert_eq!(trimmed(2.0, 2), "2");
        assert_eq!(trimmed(0.25, 1), "0.2");
        assert_eq!(p_value(0.00001), "<0.001");
    }

    #[test]
    fn lines_hold_whatever_comes() {
        let long = "x".repeat(250);
        for text in ["", "   ", "a b c", long.as_str(), "caf\u{e9} \u{1f980} \u{1b}[31m"] {
            for line in wrap(text, 40, 4) {
                assert!(line.len() <= 40 && line.is_ascii(), "{line:?}");
            }
        }
        assert_eq!(wrap("one two three", 14, 2), ["one two three"]);
        assert_eq!(wrap("one two three", 12, 2), ["one two", "  three"]);
        assert_eq!(wrap("about 10 more blocks, 8 s", 24, 2), ["about 10 more blocks,", "  8 s"]);
        assert_eq!(wrap("a margin of 2 %; more", 14, 2), ["a margin of", "  2 %; more"]);
        assert_eq!(short("abcdef", 4), "abc~");
    }
}
