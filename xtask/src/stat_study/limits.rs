//! What the study must not exceed. `docs/statistics.md` lists the limits.
use super::simulate::standard_error;
use std::fmt::Display;

/// The most false positives, as a share.
pub const FALSE_POSITIVES: f64 = 0.06;

/// Where the coverage of 95 % intervals must lie.
pub const COVERAGE: (f64, f64) = (0.93, 0.97);

/// Power may fall short of what is stated by this many standard errors.
pub const ERRORS_ALLOWED: f64 = 3.0;

/// The limits checked so far.
#[derive(Debug, Default)]
pub struct Limits {
    pub held: usize,
    /// A sentence for each that did not hold.
    pub broken: Vec<String>,
}

impl Limits {
    /// False positives of at most 6 %.
    pub fn false_positives(&mut self, what: impl Display, share: f64) {
        self.check(
            share <= FALSE_POSITIVES,
            format!("{what}: {:.2} % false positives, above 6 %", 100.0 * share),
        );
    }

    /// Coverage between 93 and 97 %.
    pub fn coverage(&mut self, what: impl Display, share: f64) {
        let held = (COVERAGE.0..=COVERAGE.1).contains(&share);
        self.check(held, format!("{what}: {:.2} % coverage, outside 93-97 %", 100.0 * share));
    }

    /// Power in `repeats` not below `stated`, itself found in `stated_in` repeats (or exact), but for sampling error.
    pub fn power(
        &mut self,
        what: impl Display,
        share: f64,
        repeats: u32,
        stated: f64,
        stated_in: Option<u32>,
    ) {
        // A share of 100 % in so many repeats is not known better than to one of them.
        let theirs = stated_in.map_or(0.0, |n| standard_error(stated.min(1.0 - 1.0 / f64::from(n)), n));
        let least = stated - ERRORS_ALLOWED * standard_error(stated, repeats).hypot(theirs);
        let text = format!("{what}: {:.2} % power, below {:.2} %", 100.0 * share, 100.0 * least);
        self.check(share >= least, text);
    }

    fn check(&mut self, held: bool, broken: String) {
        if held {
            self.held += 1;
        } else {
            self.broken.push(broken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_limit_is_named_with_its_figures() {
        let mut limits = Limits::default();
        limits.false_positives("good", 0.06);
        limits.false_positives("eager", 0.0601);
        limits.coverage("good", 0.95);
        limits.coverage("narrow", 0.92);
        limits.coverage("wide", 0.98);
        // The standard error is 2 %, and with the other side's 2.8 %.
        limits.power("good", 0.75, 400, 0.8, None);
        limits.power("blind", 0.73, 400, 0.8, None);
        limits.power("good", 0.73, 400, 0.8, Some(400));
        assert_eq!(limits.held, 4);
        let names: Vec<&str> = limits.broken.iter().filter_map(|text| text.split(':').next()).collect();
        assert_eq!(names, ["eager", "narrow", "wide", "blind"]);
        assert_eq!(limits.broken[3], "blind: 73.00 % power, below 74.00 %");
    }
}
