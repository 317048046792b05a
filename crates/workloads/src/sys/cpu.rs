//! `sys-cpu`: threads look for prime numbers.

use super::{ORIGINALS, Special, after_runtime, description, events, measure, runtime};
use crate::originals::sysbench::Test;
use crate::{Failure, Original, Trial, Workload, originals};
use experiment::{Description, Parameter, Params};
use std::hint::black_box;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct SysCpu;

/// The same in sysbench.
const SYSBENCH: Test = Test { name: "cpu", options: &[("max-prime", "cpu-max-prime")] };

impl Workload for SysCpu {
    fn describe(&self) -> Description {
        description(Special {
            name: "sys-cpu",
            summary: "threads look for prime numbers by trial division",
            about: "An event counts the prime numbers from 3 to `max-prime`, dividing each candidate by every number \
                    from 2 to its square root until one divides it. Threads share nothing, so the rate says how much \
                    processor time the scheduler, its siblings and the hypervisor leave them, and at what clock.\n\n\
                    The trial counts only if every event found as many primes as a sieve does.",
            quirks: "Nothing differs between original and strict semantics.",
            parameters: vec![
                runtime(),
                Parameter::integer(
                    "max-prime",
                    10_000,
                    3,
                    100_000_000,
                    "the largest number that is looked at",
                ),
            ],
            metrics: Vec::new(),
        })
    }

    fn originals(&self) -> &'static [Original] {
        ORIGINALS
    }

    fn check(&self, params: &Params, trial: &Trial) -> Result<(), Failure> {
        super::check(&SYSBENCH, params, trial)
    }

    fn run(&self, params: &Params, trial: &mut Trial) -> Result<(), Failure> {
        self.describe().check_point(trial.point())?;
        if let Some(original) = originals::wanted(params, self.originals())? {
            return SYSBENCH.run(original, params, trial);
        }
        let (threads, max) = (trial.count()?, params.count("max-prime")?);
        let expected = sieve(max);
        measure(params, trial, after_runtime(params)?, |end| {
            events::run(threads, end, |_| move || primes(black_box(max)) == expected)
        })
    }
}

/// The number of primes from 3 to `max`, by trial division: one event.
#[inline(never)]
fn primes(max: u64) -> u64 {
    let mut found = 0;
    for candidate in 3..=max {
        let root = (candidate as f64).sqrt();
        let mut divisor: u64 = 2;
        while divisor as f64 <= root {
            if candidate % divisor == 0 {
                break;
            }
            divisor += 1;
        }
        found += u64::from(divisor as f64 > root);
    }
    found
}

/// The same number, found in another way.
fn sieve(max: u64) -> u64 {
    let mut composite = vec![false; max as usize + 1];
    let mut found = 0;
    for number in 2..=max as usize {
        if !composite[number] {
            found += u64::from(number > 2);
            (number * number..=max as usize).step_by(number).for_each(|multiple| composite[multiple] = true);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_1228_odd_primes_below_ten_thousand() {
        assert_eq!((primes(10_000), sieve(10_000)), (1228, 1228));
        for max in 3..200 {
            assert_eq!(primes(max), sieve(max), "up to {max}");
        }
    }
}
