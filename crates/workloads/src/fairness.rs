//! How evenly something was shared.

use crate::{Failure, Trial};

/// Jain's index of fairness: the square of the sum over n times the sum of the squares. 1 if all have the same, also if
/// it is nothing; 1/n if one of n has all.
pub fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 }
}

/// Leaves the acquisitions of a lock by the busiest thread over those by the least busy one, as `max-min`.
///
/// # Errors
/// When the ratio is not finite.
pub fn leave_unfairness(most: u64, least: u64, trial: &mut Trial) -> Result<(), Failure> {
    trial.counter("most acquisitions of a thread", most as f64);
    trial.counter("fewest acquisitions of a thread", least as f64);
    if least == 0 {
        trial.note("a thread never got the lock; max-min counts it as if it had once");
    }
    trial.sample("max-min", most as f64 / least.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn fairness_is_one_for_equals_and_the_share_of_one_who_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), 1.0);
        assert_eq!(jain([5.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
        assert_eq!(jain([0.0, 0.0].into_iter()), 1.0);
    }
}
