//! The model of a session on a real machine.
use rand::{Rng, RngExt};
use rand_xoshiro::Xoshiro256PlusPlus;

pub type Random = Xoshiro256PlusPlus;

/// What disturbs the runs of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Noise of 1 %, each run for itself.
    Iid,
    /// The same, on a machine that drifts: a trend of up to 3 % over the session, and a slow wander (AR(1), 0.9) by
    /// steps of 0.4 %.
    Drift,
    /// The same, and 8 % of the runs are slowed by 6 % on average, some much more.
    Outliers,
    /// Noise of 1 % for the base and of 3 % for the new side, each run for itself.
    Unequal,
    /// The same as `Iid`, seen by a clock with ticks of 1 %.
    Ticks,
}

impl Noise {
    /// The three kinds that the limits are stated for.
    pub const STATED: [Noise; 3] = [Noise::Iid, Noise::Drift, Noise::Outliers];

    pub fn name(self) -> &'static str {
        match self {
            Noise::Iid => "iid",
            Noise::Drift => "drift",
            Noise::Outliers => "drift and outliers",
            Noise::Unequal => "new side noisier",
            Noise::Ticks => "coarse clock",
        }
    }
}

/// The order of the runs in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All of the base, then all of the new side: AAABBB.
    OneAfterTheOther,
    /// Blocks of both, in random order inside each.
    RandomBlocks,
}

/// Throughputs of `blocks` runs a side, by block, where the new side is faster by the factor `effect`.
pub fn session(
    random: &mut Random,
    blocks: usize,
    order: Order,
    noise: Noise,
    effect: f64,
) -> (Vec<f64>, Vec<f64>) {
    let runs = disturbances(random, 2 * blocks, noise);
    let (mut base, mut new) = (Vec::with_capacity(blocks), Vec::with_capacity(blocks));
    for block in 0..blocks {
        let (first, second) = match order {
            Order::OneAfterTheOther => (runs[block], runs[blocks + block]),
            Order::RandomBlocks if random.random::<bool>() => (runs[2 * block + 1], runs[2 * block]),
            Order::RandomBlocks => (runs[2 * block], runs[2 * block + 1]),
        };
        base.push(first);
        new.push(second + effect.ln());
    }
    if noise == Noise::Unequal {
        // With the 1 % that is there already, 3 % in all.
        new.iter_mut().for_each(|value| *value += 0.0008_f64.sqrt() * normal(random));
    }
    let seen = |log: &f64| match noise {
        Noise::Ticks => (log.exp() * 100.0).round(),
        _ => log.exp() * 100.0,
    };
    (base.iter().map(seen).collect(), new.iter().map(seen).collect())
}

/// The logarithm of what each run of a session is multiplied by.
fn disturbances(random: &mut Random, runs: usize, noise: Noise) -> Vec<f64> {
    let trend = random.random_range(-0.03..0.03);
    // An AR(1) process that starts the session at rest.
    let mut wander = 0.0;
    (0..runs)
        .map(|run| {
            let mut log = 0.01 * normal(random);
            if matches!(noise, Noise::Drift | Noise::Outliers) {
                log += trend * run as f64 / runs as f64 + wander;
                wander = 0.9 * wander + 0.004 * normal(random);
            }
            if noise == Noise::Outliers && random.random_bool(0.08) {
                log += 0.06 * uniform(random).ln();
            }
            log
        })
        .collect()
}

/// A standard normal number.
pub fn normal(random: &mut Random) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// A number above 0, at most 1.
fn uniform(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}
