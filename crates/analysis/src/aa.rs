//! The baseline against its twin: what the machine does to a comparison of a thing with itself.

use crate::cells::PointCells;
use crate::contest::{looks, overall_p};
use crate::looks::Rules;
use crate::pairs::Pairs;
use crate::{AaPair, AaSummary, LEVEL, Table};
use experiment::{Known, Missing};
use stats::{MIN_BLOCKS, Scale, binomial_tail};

/// The pair of a point for one metric, tested like any comparison, by itself.
pub(crate) fn pair(point: &PointCells, metric: usize, rules: &Rules) -> Known<AaPair> {
    let twin = &point.twin;
    let base = point.base().ok_or_else(|| Missing::because("there is no baseline"))?;
    let values = twin.values.get(metric).cloned().unwrap_or_default();
    if values.is_empty() {
        return Err(twin.why_missing(metric));
    }
    let pairs = Pairs::of(base.values.get(metric).map_or(&[], Vec::as_slice), &values);
    let ended = |block: u32| base.has_ended(block) && twin.has_ended(block);
    let looks = looks(&[], ended, rules, || pairs.clone());
    let effect = pairs.effect(rules, point.last_block());
    let fired = match &effect {
        Ok(effect) if effect.exact => effect.p < LEVEL,
        _ => overall_p(&looks, rules, |look| look.robust_p) <= LEVEL,
    };
    Ok(AaPair { values, effect, fired })
}

/// What the pairs of all tables say together.
pub(crate) fn summary(tables: &[Table]) -> Known<AaSummary> {
    let rows = || tables.iter().flat_map(|table| &table.rows);
    let tested: Vec<(&AaPair, f64)> = rows()
        .filter_map(|row| {
            let pair = row.aa.as_ref().ok()?;
            let effect =
                pair.effect.as_ref().ok().filter(|effect| effect.exact || effect.blocks >= MIN_BLOCKS)?;
            let base = row.cells.first().and_then(|cell| cell.value.as_ref().ok()).copied().unwrap_or(0.0);
            let pct = match effect.scale {
                Scale::Ratio => (effect.estimate - 1.0) * 100.0,
                Scale::Difference if base != 0.0 => effect.estimate / base * 100.0,
                Scale::Difference => 0.0,
            };
            Some((pair, pct.abs()))
        })
        .collect();
    if tested.is_empty() {
        return Err(Missing::because(format!(
            "A/A needs at least {MIN_BLOCKS} blocks of the baseline and its twin"
        )));
    }
    let count = |is: fn(&AaPair) -> bool| tested.iter().filter(|(pair, _)| is(pair)).count();
    let (pairs, fired) = (tested.len(), count(|pair| pair.fired));
    let identical = count(|pair| pair.effect.as_ref().is_ok_and(|effect| effect.exact && effect.p == 1.0));
    Ok(AaSummary {
        pairs,
        fired,
        identical,
        largest_pct: tested.iter().map(|(_, pct)| *pct).fold(0.0, f64::max),
        stated_rate: LEVEL,
        distrust: fired > 0 && binomial_tail(fired as u64, pairs as u64, LEVEL) < LEVEL,
    })
}
