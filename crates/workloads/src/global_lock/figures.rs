//! From what the threads did to what the trial yields.

use super::round::{End, Member, Plan, Round};
use crate::clock::seconds_between;
use crate::fairness::jain;
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
    match plan.end {
        End::Split(total) | End::Claim(total) if done != total => {
            Err(Failure::Invariant(format!("{total} sections were asked for, but the threads did {done}")))
        }
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
pub fn leave(round: &Round, total: u64, trial: &mut Trial) -> Result<(), Failure> {
    let elapsed_s = seconds_between(round.start_ns, round.end_ns);
    if elapsed_s <= 0.0 {
        return Err(Failure::Invariant(format!("the round took {elapsed_s} s by the clock")));
    }
    let members = &round.members;
    let sections = round.count as f64;
    trial.sample("time", elapsed_s * (total as f64 / sections))?;
    trial.sample("rate", sections / elapsed_s)?;
    trial.sample("fairness", jain(members.iter().map(|member| rate(member, round))))?;
    let first_ns = members.iter().map(|member| member.finished_ns).min().unwrap_or(round.end_ns);
    trial.sample("finish-skew", seconds_between(first_ns, round.end_ns) / elapsed_s)?;
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

/// Sections per nanosecond until the thread had finished.
fn rate(member: &Member, round: &Round) -> f64 {
    // Who did nothing may have finished as the round began.
    member.sections as f64 / member.finished_ns.min(round.end_ns).saturating_sub(round.start_ns).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::round::{Layout, Observe};
    use super::*;
    use crate::no_lock::NoLock;
    use crate::slice::Used;
    use locks::{Lock, Tas, Unavailable, Visitor};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    fn plan(end: End) -> Plan {
        Plan {
            threads: 2,
            end,
            steady: false,
            layout: Layout::Same,
            hold: 0,
            think: 0,
            observe: Observe::Off,
            slice: None,
            seed: 1,
        }
    }

    #[test]
    fn a_lock_that_keeps_nobody_out_is_an_invariant_failure() {
        let cpus = std::thread::available_parallelism().unwrap().get();
        if cpus < 2 {
            eprintln!("skipped: two sections cannot overlap on one CPU");
            return;
        }
        // Whether two threads really run at once is up to the scheduler, so they get more than one chance.
        let plan = plan(End::Split(1_000_000));
        let caught = (0..100).any(|_| {
            let round = (&plan).visit::<NoLock>().unwrap();
            matches!(check(&plan, &round), Err(Failure::Invariant(_)))
        });
        assert!(caught);
    }

    #[test]
    fn a_round_that_did_too_little_or_too_much_is_an_invariant_failure() {
        for end in [End::Split(100), End::Claim(100)] {
            let mut round = (&plan(end)).visit::<Tas>().unwrap();
            check(&plan(end), &round).unwrap();
            round.members[0].sections += 1;
            assert!(matches!(check(&plan(end), &round), Err(Failure::Invariant(_))));
            round.count += 1;
            assert!(matches!(check(&plan(end), &round), Err(Failure::Invariant(_))));
        }
    }

    /// Whoever gets it first keeps it for all its sections.
    struct Hog(Arc<AtomicBool>);

    /// Gives the lock back when the thread is through.
    #[derive(Default)]
    struct Hogged(Option<Arc<AtomicBool>>);

    impl Drop for Hogged {
        fn drop(&mut self) {
            self.0.iter().for_each(|held| held.store(false, Ordering::Release));
        }
    }

    // SAFETY: only one thread at a time can have changed the flag from false, and sets it back after its last section.
    unsafe impl Lock for Hog {
        const NAME: &'static str = "hog";
        const SUMMARY: &'static str = "none";
        type Context = Hogged;

        fn new() -> Result<Self, Unavailable> {
            Ok(Hog(Arc::default()))
        }

        fn with<R>(&self, context: &mut Hogged, section: impl FnOnce() -> R) -> R {
            if context.0.is_none() {
                while self.0.swap(true, Ordering::Acquire) {
                    std::thread::yield_now();
                }
                context.0 = Some(self.0.clone());
            }
            section()
        }
    }

    #[test]
    fn l2_a_lock_that_starves_the_others_shows_in_the_owner_runs() {
        let plan = Plan { threads: 4, observe: Observe::Owners, ..plan(End::Split(1000)) };
        let round = (&plan).visit::<Hog>().unwrap();
        check(&plan, &round).unwrap();
        let owners = round.owners.unwrap();
        assert_eq!((owners.longest_run, owners.hand_offs), (250, 3));
    }

    /// Two threads have it in turn, whether they are there or not.
    #[derive(Default)]
    struct Turns {
        seats: AtomicU32,
        turn: AtomicU32,
    }

    // SAFETY: there are two threads, each of a seat of its own, and only the one whose turn it is goes in.
    unsafe impl Lock for Turns {
        const NAME: &'static str = "turns";
        const SUMMARY: &'static str = "none";
        type Context = Option<u32>;

        fn new() -> Result<Self, Unavailable> {
            Ok(Turns::default())
        }

        fn with<R>(&self, context: &mut Option<u32>, section: impl FnOnce() -> R) -> R {
            let seat = *context.get_or_insert_with(|| self.seats.fetch_add(1, Ordering::Relaxed));
            while self.turn.load(Ordering::Acquire) % 2 != seat {
                std::thread::yield_now();
            }
            let result = section();
            self.turn.fetch_add(1, Ordering::Release);
            result
        }
    }

    #[test]
    fn l2_a_lock_that_is_fairer_than_good_hands_over_at_every_section() {
        let plan = Plan { observe: Observe::Owners, ..plan(End::Split(1000)) };
        let round = (&plan).visit::<Turns>().unwrap();
        check(&plan, &round).unwrap();
        let owners = round.owners.unwrap();
        assert_eq!((owners.longest_run, owners.hand_offs), (1, 999));
    }

    fn member(sections: u64, finished_ns: u64) -> Member {
        Member { sections, finished_ns, cpu_ns: 500, waits: None, slices: Used::default() }
    }

    fn figures(members: Vec<Member>, total: u64) -> BTreeMap<String, Vec<f64>> {
        let count = members.iter().map(|member| member.sections).sum();
        let end_ns = members.iter().map(|member| member.finished_ns).max().unwrap();
        let round = Round { start_ns: 0, end_ns, count, members, owners: None };
        let mut trial = Trial::new(2_u64.into(), vec![0], 1);
        leave(&round, total, &mut trial).unwrap();
        match trial.into_outcome() {
            experiment::Outcome::Done { samples, .. } => samples,
            experiment::Outcome::Missing { why, .. } => panic!("{why}"),
        }
    }

    #[test]
    fn l2_threads_that_are_starved_lower_the_fairness() {
        let fairness = |sections: [u64; 2]| {
            figures(sections.map(|sections| member(sections, 1_000)).into(), 100)["fairness"][0]
        };
        assert_eq!((fairness([50, 50]), fairness([100, 0])), (1.0, 0.5));
    }

    #[test]
    fn figures_come_from_the_threads_own_times() {
        let figures = figures(vec![member(50, 1_000), member(50, 2_000)], 1000);
        let near = |metric: &str, wanted: f64| {
            let value = figures[metric][0];
            assert!((value / wanted - 1.0).abs() < 1e-12, "{metric} {value} {wanted}");
        };
        // 100 sections in 2 us, scaled to a total of 1000.
        near("time", 20e-6);
        near("rate", 100.0 / 2e-6);
        // Rates of 2 to 1.
        near("fairness", 9.0 / 10.0);
        near("finish-skew", 0.5);
        near("cpu-per-op", 10.0);
        assert!(!figures.contains_key("wait-p99") && !figures.contains_key("hand-off-rate"));
    }
}
