//! The aligned-rank permutation test on paired blocks.
use crate::align::aligned;
use crate::null::two_sided_p;
use crate::ranks::{Sides, signed_ranks};
use crate::undefined::{Undefined, first_of_finite};

/// Blocks below which no verdict is possible at 5 %: with fewer, even the clearest result has a larger p value.
pub const MIN_BLOCKS: usize = 6;

/// Aligned values closer than this share of the largest value are tied: the logarithms of equal ratios differ in their
/// last bits.
const TIE: f64 = 1e-12;

/// What an effect is expressed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// New over base, from logarithms: all values are positive.
    Ratio,
    /// New minus base: some value is not positive.
    Difference,
}

/// Two variants of one point, compared over their common blocks.
///
/// The p value, the estimate and the interval come from one test, so they agree: the interval holds the effects that
/// the test does not reject.
#[derive(Debug, Clone)]
pub struct Comparison {
    scale: Scale,
    seed: u64,
    /// The values by block, as logarithms or as they came.
    base: Vec<f64>,
    new: Vec<f64>,
    sides: Sides,
    p: f64,
}

/// Compares `new` with `base`, which are paired by block. `seed` matters only beyond some 250 blocks, where the null
/// distribution is drawn from instead of counted.
///
/// It takes one block to compare. Below [`MIN_BLOCKS`] the figures exist, but nothing may be claimed from them.
///
/// # Errors
/// No values, series of different lengths, or values (or an effect) that are not finite.
pub fn compare(base: &[f64], new: &[f64], seed: u64) -> Result<Comparison, Undefined> {
    first_of_finite(base)?;
    first_of_finite(new)?;
    if base.len() != new.len() {
        return Err(Undefined::Unequal { base: base.len(), new: new.len() });
    }
    // The differences of aligned values can be four times as large as the values.
    if base.iter().chain(new).any(|value| value.abs() > f64::MAX / 4.0) {
        return Err(Undefined::NotFinite);
    }
    let positive = base.iter().chain(new).all(|value| *value > 0.0);
    let scale = if positive { Scale::Ratio } else { Scale::Difference };
    let taken = |values: &[f64]| match scale {
        Scale::Ratio => values.iter().map(|value| value.ln()).collect(),
        Scale::Difference => values.to_vec(),
    };
    let comparison = Comparison::of(scale, seed, taken(base), taken(new));
    let (_, largest_shift) = comparison.sides.range();
    if scale == Scale::Ratio && largest_shift > f64::MAX.ln() {
        Err(Undefined::NotFinite)
    } else {
        Ok(comparison)
    }
}

impl Comparison {
    fn of(scale: Scale, seed: u64, base: Vec<f64>, new: Vec<f64>) -> Comparison {
        // The size of a logarithm says nothing about its error when it is below 1.
        let least = if scale == Scale::Ratio { 1.0 } else { 0.0 };
        let largest = base.iter().chain(&new).fold(least, |most, value| f64::max(most, value.abs()));
        let sides = Sides::new(aligned(&base, &new), largest * TIE);
        let p = two_sided_p(&signed_ranks(&sides, 0.0), seed);
        Comparison { scale, seed, base, new, sides, p }
    }

    /// What the estimate and the interval are expressed in.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The number of blocks.
    pub fn n(&self) -> usize {
        self.base.len()
    }

    /// The effect of new against base: the Hodges-Lehmann shift, a ratio or a difference as [`Comparison::scale`]
    /// says. Exactly 1 (or 0) when both sides are the same.
    pub fn estimate(&self) -> f64 {
        self.effect(self.sides.median_shift())
    }

    /// The probability of a result at least this clear when the variants do not differ.
    pub fn p(&self) -> f64 {
        self.p
    }

    /// The p value of the hypothesis that the effect is `effect` (a ratio or a difference), in place of none.
    pub fn p_at(&self, effect: f64) -> f64 {
        let shift = match self.scale {
            Scale::Ratio => effect.max(0.0).ln(),
            Scale::Difference => effect,
        };
        two_sided_p(&signed_ranks(&self.sides, shift), self.seed)
    }

    /// The effects that the test does not reject at 1 - `confidence`, from lowest to highest.
    ///
    /// Few blocks cannot give much confidence, since not even an effect beyond all data is rejected then. Where
    /// `confidence` is more than [`Comparison::attainable_confidence`], the interval has that one instead; for 95 %
    /// this is so below [`MIN_BLOCKS`].
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let level = 1.0 - confidence.min(self.attainable_confidence());
        let low = lowest_shift(&self.sides, level, self.seed);
        // A minus alone would make -0 of a difference of 0.
        let high = 0.0 - lowest_shift(&self.sides.swapped(), level, self.seed);
        (self.effect(low), self.effect(high))
    }

    /// The largest confidence that an interval from this many blocks can have: 1 - 2^(1-n).
    pub fn attainable_confidence(&self) -> f64 {
        1.0 - least_p(self.n())
    }

    /// The same comparison without one block, counted from 0; `None` for a block that is not there or is the only one.
    pub fn without(&self, block: usize) -> Option<Comparison> {
        if block >= self.n() || self.n() == 1 {
            return None;
        }
        let but = |values: &[f64]| [&values[..block], &values[block + 1..]].concat();
        Some(Comparison::of(self.scale, self.seed, but(&self.base), but(&self.new)))
    }

    /// The p values without each of the blocks in turn.
    pub fn leave_one_out(&self) -> Vec<f64> {
        (0..self.n()).map(|block| self.without(block).map_or(1.0, |rest| rest.p)).collect()
    }

    fn effect(&self, shift: f64) -> f64 {
        match self.scale {
            // Without one block the values can be aligned so that their ratios reach further.
            Scale::Ratio => shift.exp().min(f64::MAX),
            Scale::Difference => shift,
        }
    }
}

/// The smallest p value that `blocks` can give: only two of the 2^n sign patterns are as far out as the observed one.
pub(crate) fn least_p(blocks: usize) -> f64 {
    0.5_f64.powi(i32::try_from(blocks).unwrap_or(i32::MAX) - 1)
}

/// The lowest shift of new against base that is not rejected at `level`.
///
/// As the hypothesised shift grows past a difference between a new and a base value, two signed ranks fall by one;
/// otherwise nothing changes. So the shifts to try are the n² differences and the gaps between them. And p never falls
/// on the way up to the median: a flip of the blocks F is at least as far out as what was observed when the signed
/// ranks of F, or of all other blocks, add up to 0 or less, and these sums only fall. So halving the range finds the
/// end, and the shifts that are not rejected have no holes.
fn lowest_shift(sides: &Sides, level: f64, seed: u64) -> f64 {
    let accepted_above = |rank: usize| {
        let gap = sides.difference(rank) / 2.0 + sides.difference(rank + 1) / 2.0;
        two_sided_p(&signed_ranks(sides, gap), seed) > level
    };
    let (mut from, mut to) = (1, sides.middle_rank());
    while from < to {
        let middle = usize::midpoint(from, to);
        if accepted_above(middle) { to = middle } else { from = middle + 1 }
    }
    sides.difference(to)
}
