//! A comparison at the moments at which it may be judged.

use crate::LEVEL;
use crate::pairs::Pairs;
use experiment::{Blocks, Header};
use stats::{Comparison, LOOKS, MIN_BLOCKS, Scale};
use std::cmp::Ordering;

/// The rules that a run is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub blocks: Blocks,
    /// The margin inside which a difference counts as none: 0.02 for 2 %.
    pub margin: f64,
    pub seed: u64,
    /// Whether all variants run in virtual time.
    pub virtual_time: bool,
}

impl Rules {
    pub fn of(header: &Header) -> Rules {
        let experiment = &header.experiment;
        let mut variants = experiment.variants.iter();
        Rules {
            blocks: experiment.blocks,
            margin: experiment.margin_pct / 100.0,
            seed: header.seed,
            virtual_time: variants.all(|variant| experiment.in_virtual_time(variant)),
        }
    }

    pub fn until_decided(&self) -> bool {
        self.blocks == Blocks::UntilDecided
    }

    /// The level of the latest look after `block` blocks; before the first look, that of the first.
    pub fn level_after(&self, block: u32) -> f64 {
        let first = LOOKS[0].1;
        match self.blocks {
            Blocks::Exactly(_) => LEVEL,
            Blocks::UntilDecided => LOOKS
                .iter()
                .take_while(|(at, _)| *at <= block as usize)
                .last()
                .map_or(first, |(_, level)| *level),
        }
    }
}

/// What a comparison shows at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// The block after which it was taken.
    pub block: u32,
    /// How many blocks both sides have a value in.
    pub pairs: usize,
    /// Whether the new side is lower or higher.
    pub direction: Ordering,
    /// The p value of "no difference".
    pub p: f64,
    /// The largest p value when any one outlying block is left out; never below `p`.
    pub robust_p: f64,
    /// Whether the interval of confidence 1 - 2 x level lies inside the margin.
    pub inside: bool,
    /// Whether it does so too when any one outlying block is left out.
    pub robust_inside: bool,
    /// The outlying block without which the p value is largest or the interval leaves the margin.
    pub rests_on: Option<u32>,
}

impl Look {
    /// A look after `block` at `level`. `None` where the sides cannot be compared.
    pub fn at(block: u32, level: f64, pairs: &Pairs, rules: &Rules) -> Option<Look> {
        let comparison = pairs.compare(rules.seed).ok()?;
        let reach = margin_of(&comparison, pairs, rules.margin);
        let inside = |comparison: &Comparison| inside(comparison, level, reach);
        let mut look = Look {
            block,
            pairs: pairs.len(),
            direction: direction(&comparison),
            p: comparison.p(),
            robust_p: comparison.p(),
            inside: pairs.len() >= MIN_BLOCKS && inside(&comparison),
            robust_inside: true,
            rests_on: None,
        };
        for place in pairs.outlying(comparison.scale()) {
            let Some(rest) = comparison.without(place) else { continue };
            let p = if direction(&rest) == look.direction { rest.p() } else { 1.0 };
            let leaves = look.inside && look.robust_inside && !inside(&rest);
            if p > look.robust_p || leaves {
                look.rests_on = pairs.blocks.get(place).copied();
            }
            look.robust_p = look.robust_p.max(p);
            look.robust_inside &= inside(&rest);
        }
        look.robust_inside &= look.inside;
        Some(look)
    }
}

fn direction(comparison: &Comparison) -> Ordering {
    let none = match comparison.scale() {
        Scale::Ratio => 1.0,
        Scale::Difference => 0.0,
    };
    comparison.estimate().partial_cmp(&none).unwrap_or(Ordering::Equal)
}

/// The effects that count as none. Of differences, the margin is a share of the baseline's mean.
fn margin_of(comparison: &Comparison, pairs: &Pairs, margin: f64) -> (f64, f64) {
    match comparison.scale() {
        Scale::Ratio => (1.0 - margin, 1.0 + margin),
        Scale::Difference => {
            let reach = margin * stats::mean(&pairs.base).map_or(0.0, f64::abs);
            (-reach, reach)
        }
    }
}

/// Whether the interval of confidence 1 - 2 x `level` lies inside the margin: two one-sided tests. Asking the test about
/// the two ends of the margin is the same as inverting it, and costs a twentieth.
fn inside(comparison: &Comparison, level: f64, (least, most): (f64, f64)) -> bool {
    if least == most {
        // Of a baseline of 0 no share is left as margin, so only equality is inside.
        return comparison.interval(1.0 - 2.0 * level) == (least, most);
    }
    let estimate = comparison.estimate();
    least < estimate
        && estimate < most
        && comparison.p_at(least) <= 2.0 * level
        && comparison.p_at(most) <= 2.0 * level
}
