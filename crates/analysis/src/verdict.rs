//! The verdict of one comparison, with its reason.

use crate::cells::{PointCells, Side};
use crate::contest::{Contest, Family, overall_p, pairs};
use crate::looks::{Look, Rules};
use crate::pairs::Pairs;
use crate::{Effect, LEVEL, Verdict, exact, words};
use experiment::{Direction, Known, Metric, Missing, counted};
use stats::{LOOKS, MIN_BLOCKS, Scale, look_level};
use std::cmp::Ordering;

/// What may be said of one comparison.
#[derive(Debug, Clone)]
pub(crate) struct Judgement {
    pub verdict: Verdict,
    pub reason: String,
    /// The blocks, in all, after which it would be decided, where that can be estimated.
    pub blocks_needed: Option<usize>,
    /// The estimated effect.
    pub effect: Known<Effect>,
}

impl Judgement {
    /// A judgement without an estimate.
    pub fn of(verdict: Verdict, reason: impl Into<String>) -> Judgement {
        let reason = reason.into();
        let effect = Err(Missing::because(reason.clone()));
        Judgement { verdict, reason, blocks_needed: None, effect }
    }

    /// Whether more blocks cannot change what is said.
    pub fn is_settled(&self) -> bool {
        self.verdict != Verdict::Undecided || self.effect.as_ref().is_ok_and(|effect| effect.exact)
    }
}

/// Judges the comparison `number` of the family, both of whose sides have values and ran what they were asked to.
pub(crate) fn judge(
    number: usize,
    contest: &Contest,
    family: &Family,
    metric: &Metric,
    point: &PointCells,
    rules: &Rules,
) -> Judgement {
    let pairs = pairs(point, contest.metric, contest.variant);
    let p = family.robust_p(number);
    let effect = pairs.effect(rules, point.last_block());
    if let Ok(found) = &effect
        && found.exact
    {
        let range = |side: Option<&Side>| side.and_then(|side| side.range(contest.metric));
        let ranges = range(point.base()).zip(range(point.sides.get(contest.variant)));
        return exact::judge(metric, found.clone(), rules.margin, ranges);
    }
    let effect = effect.map(|effect| Effect { p_corrected: Some(p), ..effect });
    let case = Case { contest, family, metric, point, rules, pairs, effect, p };
    let undecided = || case.undecided(family.plain_p(number));
    let judgement = case.claim().or_else(|| case.same()).unwrap_or_else(undecided);
    Judgement { effect: case.effect, ..judgement }
}

struct Case<'a> {
    contest: &'a Contest,
    family: &'a Family,
    metric: &'a Metric,
    point: &'a PointCells,
    rules: &'a Rules,
    pairs: Pairs,
    effect: Known<Effect>,
    p: f64,
}

impl Case<'_> {
    /// Better or worse, if the corrected p value allows it: in the direction seen at the look that gave it.
    fn claim(&self) -> Option<Judgement> {
        let weight = |look: &Look| look.robust_p / look_level(look.block as usize).unwrap_or(LEVEL);
        let looks = &self.contest.looks;
        let look = if self.rules.until_decided() {
            looks.iter().min_by(|a, b| weight(a).total_cmp(&weight(b)))?
        } else {
            looks.last()?
        };
        if self.p > LEVEL || look.pairs < MIN_BLOCKS {
            return None;
        }
        let verdict = match (look.direction, self.metric.direction) {
            (Ordering::Equal, _) => return None,
            (Ordering::Less, Direction::Lower) | (Ordering::Greater, Direction::Higher) => Verdict::Better,
            _ => Verdict::Worse,
        };
        let family = self.family.size();
        let over = match (family, self.rules.until_decided()) {
            (1, false) => String::new(),
            (1, true) => " after correction for the looks".into(),
            _ => format!(" after correction over {}", counted(family, "comparison")),
        };
        Some(Judgement::of(verdict, format!("{}, {}{over}", self.figures(), words::p(self.p))))
    }

    /// Same, if the latest look had the interval inside the margin.
    fn same(&self) -> Option<Judgement> {
        let look = self.contest.looks.last().filter(|look| look.robust_inside)?;
        let level = if self.rules.until_decided() { look_level(look.block as usize)? } else { LEVEL };
        let confidence = 100.0 * (1.0 - 2.0 * level);
        let margin = words::margin(self.rules.margin);
        let reason = format!("{}: the {confidence:.1} % interval lies inside {margin}", self.figures());
        Some(Judgement::of(Verdict::Same, reason))
    }

    fn undecided(&self, plain_p: f64) -> Judgement {
        let pairs = self.pairs.len();
        let needed = self.blocks_needed();
        let why = if let Err(missing) = &self.effect {
            if pairs == 1 { too_few(pairs) } else { missing.why.clone() }
        } else if pairs < MIN_BLOCKS {
            too_few(pairs)
        } else if self.contest.looks.is_empty() {
            let looks = LOOKS.map(|(block, _)| block.to_string()).join(", ");
            format!("{}; looks come after {looks} blocks, and none is due yet", self.figures())
        } else {
            let last = self.contest.looks.last();
            let rests_on = last.and_then(|look| look.rests_on);
            let made = plain_p <= LEVEL || last.is_some_and(|look| look.inside);
            let why = match rests_on.filter(|_| made) {
                Some(block) => format!("{} rests on block {block}", self.figures()),
                None => format!(
                    "{} is neither a difference nor inside {}",
                    self.figures(),
                    words::margin(self.rules.margin)
                ),
            };
            format!("{why}; {}", self.still(needed))
        };
        Judgement { blocks_needed: needed, ..Judgement::of(Verdict::Undecided, why) }
    }

    /// What it would take to decide.
    fn still(&self, needed: Option<usize>) -> String {
        let done = self.point.last_block() as usize;
        if let Some(least) = self.blocks_for_the_correction() {
            return format!(
                "the correction over {} lets no claim pass with fewer than {least} blocks",
                counted(self.family.size(), "comparison"),
            );
        }
        match needed {
            Some(needed) if needed > done => {
                let more = needed - done;
                let time = self.point.seconds_per_block().map(|each| words::seconds(each * more as f64));
                let time = time.map_or(String::new(), |time| format!(", {time}"));
                format!("about {}{time}", counted(more, "more block"))
            }
            _ if self.rules.until_decided() => format!("{} blocks will not do", self.rules.blocks.cap()),
            _ => "how many more blocks it takes cannot be told from these".into(),
        }
    }

    /// The number of blocks from which on any p value can be small enough for the family, where the blocks there are
    /// fall short of it and the comparison by itself would be decided.
    fn blocks_for_the_correction(&self) -> Option<usize> {
        let alone = overall_p(&self.contest.looks, self.rules, |look| look.robust_p);
        let last = self.contest.looks.last()?;
        let level = self.family.level_left()
            * match look_level(last.block as usize) {
                Some(level) if self.rules.until_decided() => level / LEVEL,
                _ => 1.0,
            };
        // Of 2^n sign patterns, the two extreme ones are the least that can be counted.
        let least = (MIN_BLOCKS..64).find(|blocks| 0.5_f64.powi(*blocks as i32 - 1) <= level)?;
        (alone <= LEVEL && last.pairs < least).then_some(least)
    }

    fn blocks_needed(&self) -> Option<usize> {
        let rules = self.rules;
        let mut comparison = self.pairs.compare(rules.seed).ok()?;
        if comparison.n() < 3 {
            return None;
        }
        if let Some(block) = self.contest.looks.last().and_then(|look| look.rests_on) {
            let place = self.pairs.blocks.iter().position(|at| *at == block);
            comparison = place.and_then(|place| comparison.without(place)).unwrap_or(comparison);
        }
        let (_, last_level) = LOOKS[LOOKS.len() - 1];
        let alone = if rules.until_decided() { last_level } else { LEVEL };
        let done = self.point.last_block() as usize;
        let estimate = |level: f64| {
            stats::blocks_needed(&comparison, level, rules.margin).filter(|needed| *needed > comparison.n())
        };
        // "Same" is not corrected for the family, so where it is the likely end, it takes fewer blocks.
        let small =
            comparison.scale() == Scale::Ratio && comparison.estimate().ln().abs() < rules.margin / 2.0;
        let corrected = estimate(self.family.level_left() * alone / LEVEL);
        let needed = if small { estimate(alone).or(corrected) } else { corrected }?.max(done + 1);
        if !rules.until_decided() {
            return Some(needed);
        }
        LOOKS.iter().map(|(at, _)| *at).find(|at| *at >= needed)
    }

    fn figures(&self) -> String {
        match &self.effect {
            Ok(effect) => words::effect(self.metric, effect),
            Err(missing) => missing.why.clone(),
        }
    }
}

fn too_few(pairs: usize) -> String {
    format!(
        "needs at least {MIN_BLOCKS} blocks, and there {}",
        match pairs {
            1 => "is 1".into(),
            _ => format!("are {pairs}"),
        }
    )
}
