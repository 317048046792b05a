use crate::compare::least_p;
use crate::{Comparison, MIN_BLOCKS, Scale};

/// The chance of a decision that the estimate aims at, as a quantile of the normal distribution: 80 %.
const POWER_Z: f64 = 0.8416;

/// More blocks than this are no plan.
const MOST: usize = 10_000;

/// Intervals of 95 % from n blocks are wider than those of a normal distribution by 1 + `WIDER` / n: this fits the
/// widths that `xtask stat-study` prints for independent noise, within 2 %.
const WIDER: f64 = 2.3;

/// An estimate of the blocks, in total, after which `comparison` has a chance of 80 % to end as "better" or "worse" (p
/// at most `level`) or as "same" (the interval of confidence 1 - 2 × `level` within `margin_ratio` of 1, which is 0.02
/// for 2 %), if the effect is what it seems to be now. A comparison that is decided gives the blocks it has.
///
/// `None` where that cannot be said: the blocks so far show no spread, the effect sits on the edge of the margin, or it
/// would take more than 10,000 blocks. Differences (see [`Scale`]) know no margin, so they never end as "same" here.
pub fn blocks_needed(comparison: &Comparison, level: f64, margin_ratio: f64) -> Option<usize> {
    let n = comparison.n();
    let margin = (comparison.scale() == Scale::Ratio && margin_ratio > 0.0).then_some(margin_ratio);
    let equivalence = (1.0 - 2.0 * level).max(0.0);
    let claimable = n >= MIN_BLOCKS;
    let same = margin.is_some_and(|margin| {
        let (low, high) = comparison.interval(equivalence);
        low >= 1.0 - margin && high <= 1.0 + margin && comparison.attainable_confidence() >= equivalence
    });
    if claimable && (comparison.p() <= level || same) {
        return Some(n);
    }
    let confidence = (1.0 - level).min(comparison.attainable_confidence());
    if confidence <= 0.0 {
        return None;
    }
    let shift = |effect: f64| if comparison.scale() == Scale::Ratio { effect.ln() } else { effect };
    let two_sided = |confidence: f64| normal_quantile(confidence / 2.0 + 0.5);
    // Blocks by the precision that they give: the inverse of the standard error, for a spread of 1.
    let precision = |blocks: usize| (blocks as f64).sqrt() / (1.0 + WIDER / blocks as f64);
    let (low, high) = comparison.interval(confidence);
    // Below the minimum the confidence is a lower one, and so is the excess of the width.
    let precision_now = if claimable { precision(n) } else { (n as f64).sqrt() };
    let spread = (shift(high) - shift(low)) / 2.0 / two_sided(confidence) * precision_now;
    let effect = shift(comparison.estimate()).abs();
    // What it takes to tell the estimate from something at this distance.
    let needed = |distance: f64, confidence: f64| {
        if distance > 0.0 { (two_sided(confidence) + POWER_Z) * spread / distance } else { f64::INFINITY }
    };
    let different = needed(effect, 1.0 - level);
    let same = margin.map_or(f64::INFINITY, |margin| needed(margin.ln_1p() - effect, equivalence));
    let least = (MIN_BLOCKS..64).find(|blocks| least_p(*blocks) <= level)?;
    if spread <= 0.0 {
        return None;
    }
    (least.max(n + 1)..=MOST).find(|blocks| precision(*blocks) >= different.min(same))
}

/// The value below which this share of a standard normal distribution lies, for shares from 0.5 to 1, to 0.0005
/// (Abramowitz and Stegun, 26.2.23).
fn normal_quantile(share: f64) -> f64 {
    let t = (-2.0 * (1.0 - share).max(f64::MIN_POSITIVE).ln()).sqrt();
    let above = 2.515517 + t * (0.802853 + t * 0.010328);
    let below = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    (t - above / below).max(0.0)
}
