//! What an acquisition is for, besides nothing: now and then a long hold, a short one, a yield, or a rest before it.

use crate::random::Random;
use std::time::Duration;

/// Whose holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Those of a spin lock: short ones, and long ones.
    Spin,
    /// Those of a mutex: long ones, five times as long.
    Mutex,
}

/// How rare acquisitions lie among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each acquisition has the same chance, whatever came before it.
    ByChance,
    /// At even distances.
    Evenly,
}

/// What one acquisition is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due {
    /// Sleep before it.
    pub rest: bool,
    /// Hold the lock for [`SHORT_HOLD`].
    pub short: bool,
    /// Hold the lock for long.
    pub long: bool,
    /// Give the CPU away under the lock.
    pub yields: bool,
}

/// A short hold.
pub const SHORT_HOLD: Duration = Duration::from_micros(2);

/// A rest: one jiffy of a kernel with 250 in a second.
pub const REST: Duration = Duration::from_millis(4);

/// In how many acquisitions of a thread each of them comes once, on average; infinite for never.
#[derive(Debug, Clone, Copy)]
pub struct Rarity {
    /// Rests.
    pub rest: f64,
    /// Short holds.
    pub short: f64,
    /// Long holds.
    pub long: f64,
    /// Yields.
    pub yields: f64,
}

impl Rarity {
    /// That of locktorture, with so many threads.
    pub fn of(holds: Holds, threads: usize, long_hold: Duration) -> Rarity {
        let threads = threads as f64;
        Rarity {
            rest: (1_u64 << 20) as f64,
            short: if holds == Holds::Spin { threads * 400.0 } else { f64::INFINITY },
            long: match long_hold.is_zero() {
                true => f64::INFINITY,
                false => threads * 2000.0 * long_hold.as_secs_f64() * 1e3,
            },
            yields: threads * 20_000.0,
        }
    }
}

/// When each of them comes next. Between two of them an acquisition costs one comparison.
#[derive(Debug)]
pub struct Chances {
    rarity: Rarity,
    spread: Spread,
    random: Random,
    next: [f64; 4],
    soonest: u64,
}

impl Chances {
    /// Those of thread `index` of `threads`.
    pub fn new(rarity: Rarity, spread: Spread, seed: u64, index: usize, threads: usize) -> Chances {
        let random = Random::new(seed, index);
        let mut chances = Chances { rarity, spread, random, next: [0.0; 4], soonest: 0 };
        // So that threads which advance evenly do not all come to it at once.
        let phase = (index + 1) as f64 / threads.max(1) as f64;
        chances.next = chances.means().map(|mean| match spread {
            Spread::ByChance => distance(&mut chances.random, mean),
            Spread::Evenly => (mean * phase).ceil(),
        });
        chances.find_soonest();
        chances
    }

    /// What the `nth` acquisition of this thread is for, from 1, if it is for anything; to be asked for each once, in
    /// their order.
    #[inline(always)]
    pub fn due(&mut self, nth: u64) -> Option<Due> {
        (nth == self.soonest).then(|| self.draw())
    }

    #[cold]
    fn draw(&mut self) -> Due {
        let now = self.soonest as f64;
        let mut came = [false; 4];
        for ((next, mean), came) in self.next.iter_mut().zip(means(&self.rarity)).zip(&mut came) {
            if *next <= now {
                *came = true;
                *next = now
                    + match self.spread {
                        Spread::ByChance => distance(&mut self.random, mean),
                        Spread::Evenly => mean.round().max(1.0),
                    };
            }
        }
        self.find_soonest();
        let [rest, short, long, yields] = came;
        Due { rest, short, long, yields }
    }

    fn means(&self) -> [f64; 4] {
        means(&self.rarity)
    }

    fn find_soonest(&mut self) {
        // An infinite one becomes the largest number, to which nobody counts.
        self.soonest = self.next.iter().copied().fold(f64::INFINITY, f64::min) as u64;
    }
}

fn means(rarity: &Rarity) -> [f64; 4] {
    [rarity.rest, rarity.short, rarity.long, rarity.yields]
}

/// How many tries it takes until something comes that has a chance of 1 in `mean`: at least 1.
fn distance(random: &mut Random, mean: f64) -> f64 {
    if mean.is_infinite() {
        return f64::INFINITY;
    }
    // In (0, 1], so that its logarithm is finite.
    let uniform = ((random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (uniform.ln() / (-1.0 / mean.max(1.0 + 1e-9)).ln_1p()).floor() + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(spread: Spread, of: u64) -> [u64; 4] {
        let rarity = Rarity { rest: f64::INFINITY, short: 400.0, long: 5_000.0, yields: 1.0 };
        let mut chances = Chances::new(rarity, spread, 7, 0, 1);
        let mut counts = [0; 4];
        for nth in 1..=of {
            let Due { rest, short, long, yields } = chances.due(nth).unwrap_or_default();
            for (count, came) in counts.iter_mut().zip([rest, short, long, yields]) {
                *count += u64::from(came);
            }
        }
        counts
    }

    #[test]
    fn rare_acquisitions_come_as_often_as_they_should() {
        let of = 400_000;
        assert_eq!(count(Spread::Evenly, of), [0, 1_000, 80, 400_000]);
        let [rest, short, long, yields] = count(Spread::ByChance, of);
        // Five standard deviations: of a number that comes by chance it is the root.
        assert!(short.abs_diff(1_000) < 158 && long.abs_diff(80) < 45, "{short} {long}");
        assert_eq!((rest, yields), (0, of));
    }

    #[test]
    fn chances_are_those_of_locktorture() {
        let hold = Duration::from_millis(100);
        let spin = Rarity::of(Holds::Spin, 4, hold);
        assert_eq!(
            (spin.rest, spin.short, spin.long, spin.yields),
            (1_048_576.0, 1_600.0, 800_000.0, 80_000.0)
        );
        assert_eq!(Rarity::of(Holds::Mutex, 4, hold).short, f64::INFINITY);
        assert_eq!(Rarity::of(Holds::Spin, 4, Duration::ZERO).long, f64::INFINITY);
    }
}
