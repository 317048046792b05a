//! A comparison at the moments at which it may be judged.

use crate::{BlockValue, Effect, LEVEL};
use experiment::{Blocks, Header, Known, Missing};
use stats::{Comparison, LOOKS, MIN_BLOCKS, Scale};
use std::cmp::Ordering;

/// A block whose difference lies so many robust standard deviations from the median one is outlying: the usual limit
/// for scores made from the median absolute deviation (Iglewicz and Hoaglin 1993).
const OUTLYING: f64 = 3.5;

/// From the median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_SD: f64 = 1.4826;

/// The rules that a run is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub blocks: Blocks,
    /// The margin inside which a difference counts as none: 0.02 for 2 %.
    pub margin: f64,
    pub seed: u64,
}

impl Rules {
    pub fn of(header: &Header) -> Rules {
        let experiment = &header.experiment;
        Rules { blocks: experiment.blocks, margin: experiment.margin_pct / 100.0, seed: header.seed }
    }

    pub fn until_decided(&self) -> bool {
        self.blocks == Blocks::UntilDecided
    }

    /// The level of the latest look after `block` blocks; before the first look, that of the first.
    fn level_after(&self, block: u32) -> f64 {
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

/// The values of two sides in the blocks in which both have one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pairs {
    pub blocks: Vec<u32>,
    pub base: Vec<f64>,
    pub new: Vec<f64>,
}

impl Pairs {
    pub fn of(base: &[BlockValue], new: &[BlockValue]) -> Pairs {
        let mut pairs = Pairs::default();
        let mut rest = new.iter().peekable();
        for old in base {
            while rest.next_if(|new| new.block < old.block).is_some() {}
            if let Some(new) = rest.next_if(|new| new.block == old.block) {
                pairs.blocks.push(old.block);
                pairs.base.push(old.value);
                pairs.new.push(new.value);
            }
        }
        pairs
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The pairs of the first blocks, up to and with `block`.
    pub fn up_to(&self, block: u32) -> Pairs {
        let end = self.blocks.partition_point(|at| *at <= block);
        Pairs {
            blocks: self.blocks[..end].to_vec(),
            base: self.base[..end].to_vec(),
            new: self.new[..end].to_vec(),
        }
    }

    pub fn compare(&self, seed: u64) -> Known<Comparison> {
        match self.len() {
            0 => Err(Missing::because("in no block do both sides have a value")),
            _ => stats::compare(&self.base, &self.new, seed).map_err(crate::describe::missing),
        }
    }

    /// The estimated effect after `block` blocks. The confidence of its interval is what the level of the latest look
    /// leaves, or what so few pairs can give.
    pub fn effect(&self, rules: &Rules, block: u32) -> Known<Effect> {
        let level = rules.level_after(block);
        let comparison = self.compare(rules.seed)?;
        if comparison.n() < 2 {
            return Err(Missing::because("one block gives no interval"));
        }
        let confidence = (1.0 - level).min(comparison.attainable_confidence());
        let (low, high) = comparison.interval(confidence);
        Ok(Effect {
            scale: comparison.scale(),
            estimate: comparison.estimate(),
            low,
            high,
            confidence,
            p: comparison.p(),
            p_corrected: None,
            blocks: comparison.n(),
        })
    }

    /// The places of the outlying blocks.
    fn outlying(&self, scale: Scale) -> Vec<usize> {
        let difference = |(base, new): (&f64, &f64)| match scale {
            Scale::Ratio => (new / base).ln(),
            Scale::Difference => new - base,
        };
        let differences: Vec<f64> = self.base.iter().zip(&self.new).map(difference).collect();
        let distances = |centre: f64| differences.iter().map(|d| (d - centre).abs()).collect::<Vec<f64>>();
        let Ok(distances) = stats::median(&differences).map(distances) else { return Vec::new() };
        let deviation = stats::median(&distances).unwrap_or(0.0) * MAD_TO_SD;
        // A deviation of 0 means that most blocks agree to the last tick; one tick more is then no outlier yet.
        let tick = stats::tick(&[&self.base[..], &self.new[..]].concat()).unwrap_or(0.0);
        let size = stats::median(&self.base).map_or(0.0, f64::abs);
        let (tick, rounding) = match scale {
            Scale::Ratio => (tick / size, 1e-9),
            Scale::Difference => (tick, size * 1e-9),
        };
        let limit = OUTLYING * deviation.max(tick).max(rounding);
        (0..differences.len()).filter(|place| distances[*place] > limit).collect()
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
