//! The values of two sides, block by block.

use crate::looks::Rules;
use crate::{BlockValue, Effect, exact};
use experiment::{Known, Missing};
use stats::{Comparison, Scale};

/// A block whose difference lies so many robust standard deviations from the median one is outlying: the usual limit
/// for scores made from the median absolute deviation (Iglewicz and Hoaglin 1993).
const OUTLYING: f64 = 3.5;

/// From the median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_SD: f64 = 1.4826;

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
        if let Some(effect) = rules.virtual_time.then(|| exact::effect(self)).flatten() {
            return Ok(effect);
        }
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
            exact: false,
            blocks: comparison.n(),
        })
    }

    /// The places of the outlying blocks.
    pub fn outlying(&self, scale: Scale) -> Vec<usize> {
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
