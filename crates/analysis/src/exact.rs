//! Comparisons in virtual time, where a repeat gives the same to the digit and there is no noise to tell from.

use crate::pairs::Pairs;
use crate::verdict::Judgement;
use crate::{Effect, Verdict, words};
use experiment::{Direction, Metric, counted};
use stats::Scale;

/// From so many blocks on it is proven that repeats are the same.
const REPEATS_MIN: usize = 2;

/// The effect where each side gave one value only, block after block. None where they are not repeated or differ.
pub(crate) fn effect(pairs: &Pairs) -> Option<Effect> {
    let one = |values: &[f64]| {
        let first = *values.first()?;
        values.iter().all(|value| *value == first).then_some(first)
    };
    let (base, new) = (one(&pairs.base)?, one(&pairs.new)?);
    if pairs.len() < REPEATS_MIN {
        return None;
    }
    let (scale, estimate) = match base > 0.0 && new > 0.0 {
        true => (Scale::Ratio, new / base),
        false => (Scale::Difference, new - base),
    };
    Some(Effect {
        scale,
        estimate,
        low: estimate,
        high: estimate,
        confidence: 1.0,
        p: if base == new { 1.0 } else { 0.0 },
        p_corrected: None,
        exact: true,
        blocks: pairs.len(),
    })
}

/// What is said of an effect that is exact. As everywhere, a difference that is certain is claimed however small it is.
pub(crate) fn judge(metric: &Metric, effect: Effect) -> Judgement {
    let all = counted(effect.blocks, "block");
    let lower = match effect.scale {
        Scale::Ratio => effect.estimate < 1.0,
        Scale::Difference => effect.estimate < 0.0,
    };
    let (verdict, reason) = match lower == (metric.direction == Direction::Lower) {
        _ if effect.p == 1.0 => {
            (Verdict::Same, format!("{} is the same to the digit in all {all}", metric.name))
        }
        true => (Verdict::Better, format!("{} in all {all}", words::exact(metric, &effect))),
        false => (Verdict::Worse, format!("{} in all {all}", words::exact(metric, &effect))),
    };
    Judgement { effect: Ok(effect), ..Judgement::of(verdict, reason) }
}
