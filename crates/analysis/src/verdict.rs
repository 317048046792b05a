//! What may be claimed: the correction over the family, and the verdict of one comparison.

use crate::cells::PointCells;
use crate::looks::{Look, Pairs, Rules};
use crate::{Effect, LEVEL, Verdict, words};
use experiment::{Direction, Known, Metric, Missing};
use stats::{LOOKS, MIN_BLOCKS, Scale, holm, look_level, sequential_p};
use std::cmp::Ordering;

/// A variant against the baseline at one point, by one metric.
#[derive(Debug, Clone)]
pub(crate) struct Contest {
    /// The place of the point in [`crate::cells::Cells`].
    pub place: usize,
    pub metric: usize,
    pub variant: usize,
    /// The looks that it has been through; with a fixed number of blocks, one at what is there.
    pub looks: Vec<Look>,
}

impl Contest {
    /// Takes the looks that have come due.
    pub fn refresh(&mut self, point: &PointCells, rules: &Rules) {
        let (Some(base), Some(new)) = (point.base(), point.sides.get(self.variant)) else { return };
        self.looks = looks(
            &self.looks,
            |block| base.has_ended(block) && new.has_ended(block),
            rules,
            || pairs(point, self.metric, self.variant),
        );
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
    /// Corrected, each by the outlying block that speaks most against it. Claims rest on these.
    robust: Vec<f64>,
    /// Corrected, of all blocks.
    plain: Vec<f64>,
    claims: usize,
}

impl Family {
    pub fn of(contests: &[Contest], rules: &Rules) -> Family {
        let corrected = |p_of: fn(&Look) -> f64| {
            let overall = contests.iter().map(|contest| overall_p(&contest.looks, rules, p_of));
            holm(&overall.collect::<Vec<f64>>())
        };
        let (robust, plain) = (corrected(|look| look.robust_p), corrected(|look| look.p));
        let claims = robust.iter().filter(|p| **p <= LEVEL).count();
        Family { robust, plain, claims }
    }

    /// The share of the level that is left for a comparison about which nothing is claimed yet.
    fn level_left(&self) -> f64 {
        LEVEL / (self.robust.len() - self.claims).max(1) as f64
    }
}

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
        self.verdict != Verdict::Undecided
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
    let p = family.robust.get(number).copied().unwrap_or(1.0);
    let effect = pairs.effect(rules, point.last_block());
    let effect = effect.map(|effect| Effect { p_corrected: Some(p), ..effect });
    let case = Case { contest, family, metric, point, rules, pairs, effect, p };
    let plain = family.plain.get(number).copied().unwrap_or(1.0);
    let judgement = case.claim().or_else(|| case.same()).unwrap_or_else(|| case.undecided(plain));
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
        let family = self.family.robust.len();
        let over = match (family, self.rules.until_decided()) {
            (1, false) => String::new(),
            (1, true) => " after correction for the looks".into(),
            _ => format!(" after correction over {}", words::count(family, "comparison")),
        };
        Some(Judgement::of(verdict, format!("{}, {}{over}", self.figures(), words::p(self.p))))
    }

    /// Same, if the latest look had the interval inside the margin.
    fn same(&self) -> Option<Judgement> {
        let look = self.contest.looks.last().filter(|look| look.robust_inside)?;
        let level = if self.rules.until_decided() { look_level(look.block as usize)? } else { LEVEL };
        let confidence = 100.0 * (1.0 - 2.0 * level);
        let margin = self.margin_in_words();
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
            format!("{}; the first look comes after {} blocks", self.figures(), LOOKS[0].0)
        } else {
            let last = self.contest.looks.last();
            let rests_on = last.and_then(|look| look.rests_on);
            let made = plain_p <= LEVEL || last.is_some_and(|look| look.inside);
            let why = match rests_on.filter(|_| made) {
                Some(block) => format!("{} rests on block {block}", self.figures()),
                None => format!(
                    "{} is neither a difference nor inside {}",
                    self.figures(),
                    self.margin_in_words()
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
                words::count(self.family.robust.len(), "comparison"),
            );
        }
        match needed {
            Some(needed) if needed > done => {
                let more = needed - done;
                let time = self.point.seconds_per_block().map(|each| words::seconds(each * more as f64));
                let time = time.map_or(String::new(), |time| format!(", {time}"));
                format!("about {}{time}", words::count(more, "more block"))
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

    fn margin_in_words(&self) -> String {
        format!("+-{} %", (self.rules.margin * 1e4).round() / 100.0)
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
