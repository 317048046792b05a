//! How much of the variance lies between boots (or invocations), and how much inside one.
use crate::undefined::{Undefined, finite, first_of_finite};
use crate::{MIN_BLOCKS, mean};

/// Where the variance of grouped values comes from.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Components {
    /// The variance of the groups' true means; 0 when the groups differ no more than their members explain.
    pub between: f64,
    /// The variance inside a group.
    pub within: f64,
    /// The share of the variance that lies between groups (intraclass correlation), from 0 to 1: what two members of a
    /// group have in common, and so what repeating inside a group cannot average out.
    pub icc: f64,
}

/// How to spend a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Split {
    /// Boots.
    pub boots: usize,
    /// Trials inside each boot.
    pub trials: usize,
}

/// The components of the variance of `groups`, each the trials of one boot, by the one-way analysis of variance with
/// random groups. Groups may differ in size.
///
/// # Errors
/// An empty group, fewer than two groups, no group with two values, or a value that is not finite.
pub fn variance_components(groups: &[&[f64]]) -> Result<Components, Undefined> {
    if groups.is_empty() {
        return Err(Undefined::Empty);
    }
    for group in groups {
        first_of_finite(group)?;
    }
    let total: usize = groups.iter().map(|group| group.len()).sum();
    if groups.len() < 2 {
        return Err(Undefined::TooFew { have: groups.len(), need: 2 });
    }
    if total == groups.len() {
        return Err(Undefined::TooFew { have: 1, need: 2 });
    }
    let grand = mean(&groups.concat())?;
    let (mut inside, mut among, mut squared_sizes) = (0.0, 0.0, 0.0);
    for group in groups {
        let (size, centre) = (group.len() as f64, mean(group)?);
        inside += group.iter().map(|value| (value - centre) * (value - centre)).sum::<f64>();
        among += size * (centre - grand) * (centre - grand);
        squared_sizes += size * size;
    }
    let (groups, total) = (groups.len() as f64, total as f64);
    let within = finite(inside / (total - groups))?;
    let mean_size = (total - squared_sizes / total) / (groups - 1.0);
    let between = finite((among / (groups - 1.0) - within) / mean_size)?.max(0.0);
    let sum = finite(between + within)?;
    Ok(Components { between, within, icc: if sum == 0.0 { 0.0 } else { between / sum } })
}

impl Components {
    /// The variance of a mean over this split.
    pub fn variance_of_mean(&self, split: Split) -> f64 {
        let boots = split.boots.max(1) as f64;
        self.between / boots + self.within / (boots * split.trials.max(1) as f64)
    }

    /// The split of `budget_s` seconds that estimates a mean best, where a boot costs `boot_s` and a trial `trial_s`:
    /// √(boot_s/trial_s × within/between) trials a boot. It keeps to at least [`MIN_BLOCKS`] boots, since a boot is a
    /// block there, and to at least one trial, even if the budget does not last.
    pub fn split(&self, budget_s: f64, boot_s: f64, trial_s: f64) -> Split {
        let (boot_s, trial_s) = (boot_s.max(0.0), trial_s.max(f64::MIN_POSITIVE));
        let most = (budget_s / MIN_BLOCKS as f64 - boot_s) / trial_s;
        // Nothing between boots: the square root is infinite, and the budget is the only limit.
        let best = (boot_s / trial_s * (self.within / self.between)).sqrt();
        // The casts saturate, and take NaN (nothing varies at all) for 0.
        let trials = (best.min(most).round() as usize).max(1);
        let boots = ((budget_s / (boot_s + trials as f64 * trial_s)) as usize).max(MIN_BLOCKS);
        Split { boots, trials }
    }
}
