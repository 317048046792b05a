//! The comparisons that a run is judged by, and their correction together.

use crate::cells::PointCells;
use crate::looks::{Look, Rules};
use crate::pairs::Pairs;
use crate::{LEVEL, exact};
use stats::{LOOKS, holm, sequential_p};

/// A variant against the baseline at one point, by one metric.
#[derive(Debug, Clone)]
pub(crate) struct Contest {
    /// The place of the point in [`crate::cells::Cells`].
    pub place: usize,
    pub metric: usize,
    pub variant: usize,
    /// The looks that it has been through; with a fixed number of blocks, one at what is there.
    pub looks: Vec<Look>,
    /// Whether its difference is exact, so that there is nothing to test.
    pub exact: bool,
}

impl Contest {
    /// Takes the looks that have come due.
    pub fn refresh(&mut self, point: &PointCells, rules: &Rules) {
        let (Some(base), Some(new)) = (point.base(), point.sides.get(self.variant)) else { return };
        let both = pairs(point, self.metric, self.variant);
        self.exact = rules.virtual_time && exact::effect(&both).is_some();
        self.looks =
            looks(&self.looks, |block| base.has_ended(block) && new.has_ended(block), rules, || both.clone());
    }
}

/// The values of a variant and of the baseline at a point, paired.
pub(crate) fn pairs(point: &PointCells, metric: usize, variant: usize) -> Pairs {
    let values = |side: usize| point.sides.get(side).and_then(|side| side.values.get(metric));
    match (values(0), values(variant)) {
        (Some(base), Some(new)) => Pairs::of(base, new),
        _ => Pairs::default(),
    }
}

/// The looks that are due, with those that were `taken` kept.
pub(crate) fn looks(
    taken: &[Look],
    has_ended: impl Fn(u32) -> bool,
    rules: &Rules,
    pairs: impl Fn() -> Pairs,
) -> Vec<Look> {
    if !rules.until_decided() {
        let pairs = pairs();
        let last = pairs.blocks.last().copied().unwrap_or(0);
        return match taken {
            [look] if look.pairs == pairs.len() && look.block == last => vec![look.clone()],
            _ => Look::at(last, LEVEL, &pairs, rules).into_iter().collect(),
        };
    }
    let mut looks = taken.to_vec();
    for (block, level) in LOOKS {
        let block = block as u32;
        if has_ended(block) && !looks.iter().any(|look| look.block == block) {
            looks.extend(Look::at(block, level, &pairs().up_to(block), rules));
        }
    }
    looks
}

/// One p value from all looks of a comparison.
pub(crate) fn overall_p(looks: &[Look], rules: &Rules, p_of: impl Fn(&Look) -> f64) -> f64 {
    if rules.until_decided() {
        let taken: Vec<(usize, f64)> = looks.iter().map(|look| (look.block as usize, p_of(look))).collect();
        return sequential_p(&taken);
    }
    looks.last().map_or(1.0, p_of)
}

/// The p values of all primary comparisons of a run, corrected together.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    /// Corrected, of the p values that no single outlying block can lower. Claims rest on these. 1 for a comparison that is
    /// exact, which is none of the family.
    robust: Vec<f64>,
    /// Corrected, of all blocks.
    plain: Vec<f64>,
    /// How many comparisons are tested.
    size: usize,
    /// How many of the robust ones are within the level.
    claims: usize,
}

impl Family {
    pub fn of(contests: &[Contest], rules: &Rules) -> Family {
        let tested: Vec<usize> = (0..contests.len()).filter(|number| !contests[*number].exact).collect();
        let corrected = |p_of: fn(&Look) -> f64| {
            let overall = tested.iter().map(|number| overall_p(&contests[*number].looks, rules, p_of));
            let mut all = vec![1.0; contests.len()];
            for (number, p) in tested.iter().zip(holm(&overall.collect::<Vec<f64>>())) {
                all[*number] = p;
            }
            all
        };
        let (robust, plain) = (corrected(|look| look.robust_p), corrected(|look| look.p));
        let claims = robust.iter().filter(|p| **p <= LEVEL).count();
        Family { robust, plain, size: tested.len(), claims }
    }

    /// How many comparisons it holds.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The corrected p value that claims about the comparison `number` rest on.
    pub fn robust_p(&self, number: usize) -> f64 {
        self.robust.get(number).copied().unwrap_or(1.0)
    }

    /// The corrected p value of the comparison `number` with its outlying blocks.
    pub fn plain_p(&self, number: usize) -> f64 {
        self.plain.get(number).copied().unwrap_or(1.0)
    }

    /// The share of the level that is left for a comparison about which nothing is claimed yet.
    pub fn level_left(&self) -> f64 {
        LEVEL / (self.size - self.claims).max(1) as f64
    }
}
