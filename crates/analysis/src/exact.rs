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

/// What is said of an effect that is exact, with the least and the greatest sample of each side, the baseline's first.
///
/// Exact is not robust: the smallest change to either side, such as a longer environment, moves where a tick of the kernel
/// falls. So a difference inside the margin is none here, and one whose samples lie among those of the other side is
/// not decided.
pub(crate) fn judge(
    metric: &Metric,
    effect: Effect,
    margin: f64,
    ranges: Option<((f64, f64), (f64, f64))>,
) -> Judgement {
    let all = counted(effect.blocks, "block");
    let lower = match effect.scale {
        Scale::Ratio => effect.estimate < 1.0,
        Scale::Difference => effect.estimate < 0.0,
    };
    let among = ranges.filter(|(base, new)| base.0 <= new.1 && new.0 <= base.1);
    let (verdict, reason) = match (among, lower == (metric.direction == Direction::Lower)) {
        _ if effect.p == 1.0 => {
            (Verdict::Same, format!("{} is the same to the digit in all {all}", metric.name))
        }
        _ if effect.scale == Scale::Ratio && (effect.estimate - 1.0).abs() < margin => {
            let (exactly, margin) = (words::exact(metric, &effect), words::margin(margin));
            (Verdict::Same, format!("{exactly} in all {all}, inside {margin}"))
        }
        (Some((base, new)), _) => (
            Verdict::Undecided,
            format!(
                "{} in all {all}, but inside a trial samples go from {} to {}, and the baseline's from {} to {}{}: a tick \
                 at another place would give another difference",
                words::exact(metric, &effect),
                words::plain(new.0),
                words::plain(new.1),
                words::plain(base.0),
                words::plain(base.1),
                if metric.unit.is_empty() { String::new() } else { format!(" {}", metric.unit) },
            ),
        ),
        (None, true) => (Verdict::Better, format!("{} in all {all}", words::exact(metric, &effect))),
        (None, false) => (Verdict::Worse, format!("{} in all {all}", words::exact(metric, &effect))),
    };
    Judgement { effect: Ok(effect), ..Judgement::of(verdict, reason) }
}
