//! From what the threads did to what the trial yields.

use super::round::{End, Member, Plan, Round};
use crate::clock::seconds_between;
use crate::{Failure, Trial};
use stats::Histogram;

/// Checks that the work adds up.
///
/// # Errors
/// When the counter is not the number of sections, or the number of sections is not what was asked for.
pub fn check(plan: &Plan, round: &Round) -> Result<(), Failure> {
    let done: u64 = round.members.iter().map(|member| member.sections).sum();
    if round.count != done {
        return Err(Failure::Invariant(format!(
            "the threads did {done} sections, but the counter under the lock came to {}",
            round.count
        )));
    }
    let wrong = |asked: u64| {
        Err(Failure::Invariant(format!("{asked} sections were asked for, but the threads did {done}")))
    };
    match plan.end {
        End::Split(total) if plan.no_tail && done < total => wrong(total),
        End::Split(total) if !plan.no_tail && done != total => wrong(total),
        End::Claim(total) if done != total => wrong(total),
        End::After(time) if done == 0 => Err(Failure::Refused(format!(
            "no thread got the lock within {} seconds; raise `seconds`",
            time.as_secs_f64()
        ))),
        _ => Ok(()),
    }
}

/// Leaves the metrics of a round.
///
/// # Errors
/// When the clock went backwards.
pub fn leave(round: &Round, total: u64, from_first_section: bool, trial: &mut Trial) -> Result<(), Failure> {
    let members = &round.members;
    let began_ns = members.iter().map(|member| member.began_ns).min();
    let start_ns = if from_first_section { began_ns.unwrap_or(round.opened_ns) } else { round.opened_ns };
    let end_ns = members.iter().map(|member| member.ended_ns).max().unwrap_or(start_ns);
    let elapsed_s = seconds_between(start_ns, end_ns);
    if elapsed_s <= 0.0 {
        return Err(Failure::Invariant(format!("the round took {elapsed_s} s by the clock")));
    }
    let sections = round.count as f64;
    trial.sample("time", elapsed_s * (total as f64 / sections))?;
    trial.sample("rate", sections / elapsed_s)?;
    trial.sample("fairness", jain(members.iter().map(|member| rate(member, start_ns))))?;
    let first_ns = members.iter().map(|member| member.finished_ns).min().unwrap_or(end_ns);
    let last_ns = members.iter().map(|member| member.finished_ns).max().unwrap_or(end_ns);
    trial.sample("finish-skew", seconds_between(first_ns, last_ns) / elapsed_s)?;
    let cpu_ns: u64 = members.iter().map(|member| member.cpu_ns).sum();
    trial.sample("cpu-per-op", cpu_ns as f64 / sections)?;
    if let Some(owners) = round.owners {
        trial.sample("longest-owner-run", owners.longest_run as f64)?;
        trial.sample("hand-off-rate", owners.hand_offs as f64 / sections)?;
    }
    let mut waits = Histogram::new();
    members.iter().filter_map(|member| member.waits.as_ref()).for_each(|seen| waits.merge(seen));
    if let (Some(p99_ns), Some((_, max_ns))) = (waits.percentile(99.0), waits.range()) {
        trial.sample("wait-p99", p99_ns as f64)?;
        trial.sample("wait-max", max_ns as f64)?;
        trial.histogram("wait", &waits)?;
    }
    Ok(())
}

/// Sections per nanosecond while the thread was about its share.
fn rate(member: &Member, start_ns: u64) -> f64 {
    // Who did nothing may have finished as the round began.
    member.sections as f64 / member.finished_ns.saturating_sub(start_ns).max(1) as f64
}

/// Jain's index of fairness: the square of the sum over n times the sum of the squares.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    sum * sum / (count * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_the_share_of_one_who_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), 1.0);
        assert_eq!(jain([5.0, 0.0, 0.0, 0.0].into_iter()), 0.25);
    }
}
