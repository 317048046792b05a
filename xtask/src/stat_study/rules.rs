//! The rules by which benchmark reports claim a difference: those of others, and ours.
use super::noise::Random;
use rand::RngExt;

/// A rule that calls two sets of runs different, at 5 %, or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    WelchT,
    MannWhitney,
    PairedT,
    Bootstrap,
    /// The intervals of this many standard deviations around the means do not overlap.
    Deviations(f64),
    /// The slowest of one side is faster than the fastest of the other.
    Ranges,
    AlignedRank,
}

impl Rule {
    pub const ALL: [Rule; 8] = [
        Rule::WelchT,
        Rule::MannWhitney,
        Rule::PairedT,
        Rule::Bootstrap,
        Rule::Deviations(1.96),
        Rule::Deviations(1.0),
        Rule::Ranges,
        Rule::AlignedRank,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Rule::WelchT => "Welch t",
            Rule::MannWhitney => "Mann-Whitney",
            Rule::PairedT => "paired t",
            Rule::Bootstrap => "paired percentile bootstrap",
            Rule::Deviations(1.0) => "mean +- sd do not overlap",
            Rule::Deviations(_) => "mean +- 1.96 sd do not overlap",
            Rule::Ranges => "lowest to highest do not overlap",
            Rule::AlignedRank => "aligned-rank permutation",
        }
    }

    /// Whether the rule calls these runs different.
    pub fn fires(self, base: &[f64], new: &[f64], random: &mut Random) -> bool {
        match self {
            Rule::WelchT => welch(base, new),
            Rule::MannWhitney => mann_whitney(base, new),
            Rule::PairedT => paired_t(base, new),
            Rule::Bootstrap => bootstrap(base, new, random),
            Rule::Deviations(reach) => {
                let ((a, da), (b, db)) = (moments(base), moments(new));
                (a - b).abs() > reach * (da.sqrt() + db.sqrt())
            }
            Rule::Ranges => {
                let ((a, aa), (b, bb)) = (ends(base), ends(new));
                aa < b || bb < a
            }
            Rule::AlignedRank => stats::compare(base, new, 0).is_ok_and(|compared| compared.p() <= 0.05),
        }
    }
}

pub fn welch(base: &[f64], new: &[f64]) -> bool {
    let n = base.len() as f64;
    let ((a, da), (b, db)) = (moments(base), moments(new));
    let freedom = (n - 1.0) * (da + db) * (da + db) / (da * da + db * db);
    (a - b).abs() / ((da + db) / n).sqrt() > t_limit(freedom)
}

fn paired_t(base: &[f64], new: &[f64]) -> bool {
    let differences: Vec<f64> = base.iter().zip(new).map(|(a, b)| b - a).collect();
    let n = differences.len() as f64;
    let (mean, variance) = moments(&differences);
    mean.abs() / (variance / n).sqrt() > t_limit(n - 1.0)
}

/// With the normal approximation and its continuity correction.
fn mann_whitney(base: &[f64], new: &[f64]) -> bool {
    let n = base.len() as f64;
    let wins = |a: &f64| new.iter().map(|b| if b > a { 1.0 } else { f64::from(b == a) / 2.0 }).sum::<f64>();
    let u: f64 = base.iter().map(wins).sum();
    ((u - n * n / 2.0).abs() - 0.5) / (n * n * (2.0 * n + 1.0) / 12.0).sqrt() > 1.96
}

/// 500 resamples of the blocks: does the middle 95 % of their mean differences leave out 0?
fn bootstrap(base: &[f64], new: &[f64], random: &mut Random) -> bool {
    const RESAMPLES: usize = 500;
    let mut sums: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let block = |_| {
                let block = random.random_range(0..base.len());
                new[block] - base[block]
            };
            (0..base.len()).map(block).sum()
        })
        .collect();
    sums.sort_by(f64::total_cmp);
    let outside = RESAMPLES * 25 / 1000;
    sums[outside] > 0.0 || sums[RESAMPLES - 1 - outside] < 0.0
}

/// Mean and variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0))
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// The two-sided 5 % limit of Student's t: the Cornish-Fisher expansion, right to 0.001 from 5 degrees of freedom on.
fn t_limit(freedom: f64) -> f64 {
    let z = 1.959_964_f64;
    let [z3, z5, z7] = [3, 5, 7].map(|power| z.powi(power));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_t_are_those_of_the_tables() {
        for (freedom, limit) in [(5.0, 2.571), (7.0, 2.365), (18.0, 2.101), (38.0, 2.024)] {
            assert!((t_limit(freedom) - limit).abs() < 0.005, "{}", t_limit(freedom));
        }
    }
}
