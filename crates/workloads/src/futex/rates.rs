//! What those workloads have in common whose threads work for a time and count.

use super::Setup;
use crate::clock::elapsed_ns;
use crate::shared::{Semantics, warmup};
use crate::{Failure, Trial};
use experiment::{Direction, Metric, Parameter, Params};
use std::time::Duration;

/// The quirks of the original.
pub const QUIRKS: &str = "With original semantics the time runs from before the threads are created and is cut off to \
                          whole seconds where it is more than one; with strict semantics each thread's own time is \
                          taken.";

/// The parameter for the time.
pub fn runtime() -> Parameter {
    Parameter::decimal("runtime", 10.0, 0.01, 86_400.0, "seconds for which the threads work")
}

/// The metric.
pub fn metric(help: &str) -> Metric {
    Metric::new("rate", "ops/s", Direction::Higher, "throughput per thread", help)
}

/// Lets the threads `work` for the warm-up time and then for the time that counts. The rates that `work` returns for
/// each thread become a sample, which is their mean; the extremes stand beside it.
///
/// # Errors
/// What `work` failed with.
pub fn measure(
    setup: &Setup,
    params: &Params,
    trial: &mut Trial,
    work: impl Fn(Duration) -> Result<Vec<f64>, Failure>,
) -> Result<(), Failure> {
    let warmup = warmup(params)?;
    if !warmup.is_zero() {
        work(warmup)?;
    }
    let rates = work(Duration::from_secs_f64(params.decimal("runtime")?))?;
    trial.sample("rate", rates.iter().sum::<f64>() / rates.len().max(1) as f64)?;
    trial.counter("rate of the slowest thread", rates.iter().copied().fold(f64::INFINITY, f64::min));
    trial.counter("rate of the fastest thread", rates.iter().copied().fold(0.0, f64::max));
    setup.buckets.report(trial);
    Ok(())
}

/// Times from start to end, in nanoseconds.
pub type Interval = (u64, u64);

/// The rate of a thread that did `count` operations: over its own interval with strict semantics, and with original
/// ones over that of the whole run, in whole seconds unless there is none.
///
/// # Errors
/// When the clock went backwards.
pub fn rate(semantics: Semantics, count: u64, own: Interval, whole: Interval) -> Result<f64, Failure> {
    let seconds = |(start_ns, end_ns)| Ok::<f64, Failure>(elapsed_ns(start_ns, end_ns)? as f64 / 1e9);
    let elapsed_s = match semantics {
        Semantics::Strict => seconds(own)?,
        Semantics::Original => match seconds(whole)? {
            elapsed_s if elapsed_s < 1.0 => elapsed_s,
            elapsed_s => elapsed_s.floor(),
        },
    };
    Ok(count as f64 / elapsed_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_taken_over_the_time_that_the_semantics_say() {
        let (own, whole) = ((2_000_000_000, 12_500_000_000), (1_000_000_000, 12_999_999_999));
        assert_eq!(rate(Semantics::Strict, 42, own, whole).unwrap(), 4.0);
        assert_eq!(rate(Semantics::Original, 44, own, whole).unwrap(), 4.0);
        assert_eq!(rate(Semantics::Original, 30, own, (0, 500_000_000)).unwrap(), 60.0);
    }
}
