use super::number;

/// A derived column of a source, recomputed and compared with what was printed.
#[derive(Debug)]
pub(crate) struct Check {
    what: String,
    agree: usize,
    near: Vec<String>,
    off: Vec<String>,
}

impl Check {
    /// A check of `what`.
    pub fn of(what: impl Into<String>) -> Check {
        Check { what: what.into(), agree: 0, near: Vec::new(), off: Vec::new() }
    }

    /// Compares the `printed` figure (without its unit) at `place` with `recomputed`, to the last printed digit.
    pub fn compare(&mut self, place: &str, printed: &str, recomputed: f64) {
        let printed = printed.trim().trim_start_matches('+');
        let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let ours = format!("{recomputed:.decimals$}");
        let (Some(theirs), Some(rounded)) = (number(printed), number(&ours)) else {
            self.off.push(format!("{place} printed {printed}, recomputed {ours}"));
            return;
        };
        let unit = 10f64.powi(-(decimals.min(300) as i32));
        let words = || format!("{place} printed {printed}, recomputed {ours}");
        match (theirs - rounded).abs() / unit {
            apart if apart < 0.5 => self.agree += 1,
            apart if apart < 1.5 => self.near.push(words()),
            _ => self.off.push(words()),
        }
    }

    /// Counts an agreement that was found in another way than by digits.
    pub fn agreed(&mut self) {
        self.agree += 1;
    }

    /// Notes a disagreement that was found in another way than by digits.
    pub fn disagreed(&mut self, words: String) {
        self.off.push(words);
    }

    /// The outcome in a sentence; none when there was nothing to compare.
    pub fn sentence(self) -> Option<String> {
        let all = self.agree + self.near.len() + self.off.len();
        if all == 0 {
            return None;
        }
        let mut text =
            format!("{}: {} of {all} recomputed as printed, to the last digit", self.what, self.agree);
        if !self.near.is_empty() {
            text += &format!(
                "; {} by one unit in the last digit beside it, as figures are that were computed from unrounded \
                 values ({})",
                self.near.len(),
                listed(&self.near)
            );
        }
        if !self.off.is_empty() {
            text += &format!("; {} DIFFER ({})", self.off.len(), listed(&self.off));
        }
        Some(text + ".")
    }
}

/// The first items of a list, and how many more there are.
fn listed(items: &[String]) -> String {
    const SHOWN: usize = 6;
    let mut text = items.iter().take(SHOWN).cloned().collect::<Vec<String>>().join("; ");
    if items.len() > SHOWN {
        text += &format!("; and {} more", items.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_is_told_from_more() {
        let mut check = Check::of("overhead");
        check.compare("512", "+191.58", 191.5821);
        check.compare("256", "+153.04", 153.04505);
        check.compare("128", "+151.03", 152.0);
        check.compare("64", "-0", -0.3);
        let text = check.sentence().unwrap();
        assert!(text.starts_with("overhead: 2 of 4 recomputed as printed"), "{text}");
        assert!(text.contains("1 by one unit in the last digit"), "{text}");
        assert!(text.contains("256 printed 153.04, recomputed 153.05"), "{text}");
        assert!(text.contains("1 DIFFER (128 printed 151.03, recomputed 152.00)"), "{text}");
        assert_eq!(Check::of("nothing").sentence(), None);
    }
}
