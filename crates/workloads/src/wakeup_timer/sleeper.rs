//! What one thread does, and how late it was.

use super::{PERCENTILES, Plan};
use crate::shared::Semantics;
use crate::{Failure, Trial};
use rustix::io::Errno;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use stats::Histogram;
use std::num::NonZeroU64;

/// How late the wake-ups of a thread, or of all, were.
#[derive(Debug, Clone, Default)]
pub struct Lateness {
    /// Of each wake-up.
    pub histogram_ns: Histogram,
    /// Of all together.
    pub sum_ns: u64,
    /// The least and the most.
    pub range_ns: Option<(u64, u64)>,
    /// Intervals that were skipped, as the thread woke up after their end.
    pub missed: u64,
    /// The most by which a wake-up came before its time, which cannot be.
    pub early_ns: u64,
}

impl Lateness {
    /// Counts one wake-up.
    #[inline]
    pub fn record(&mut self, late_ns: u64) {
        self.histogram_ns.record(late_ns);
        self.sum_ns += late_ns;
        let (min_ns, max_ns) = self.range_ns.unwrap_or((u64::MAX, 0));
        self.range_ns = Some((min_ns.min(late_ns), max_ns.max(late_ns)));
    }

    /// Adds what another thread did.
    pub fn merge(&mut self, other: &Lateness) {
        self.histogram_ns.merge(&other.histogram_ns);
        self.sum_ns += other.sum_ns;
        self.missed += other.missed;
        self.early_ns = self.early_ns.max(other.early_ns);
        self.range_ns = match (self.range_ns, other.range_ns) {
            (Some((min, max)), Some((other_min, other_max))) => {
                Some((min.min(other_min), max.max(other_max)))
            }
            (own, other) => own.or(other),
        };
    }

    /// The invariant: no wake-up came early, and wake-ups and missed intervals are all that there were.
    pub fn check(&self, intervals: u64) -> Result<(), Failure> {
        if self.early_ns > 0 {
            return Err(Failure::Invariant(format!(
                "a thread woke up {} ns before its time; with clock=realtime somebody may have set the clock",
                self.early_ns
            )));
        }
        let woken = self.histogram_ns.len();
        if woken + self.missed != intervals {
            return Err(Failure::Invariant(format!(
                "{woken} wake-ups and {} missed intervals are not the {intervals} that there were",
                self.missed
            )));
        }
        Ok(())
    }

    /// Leaves the metrics in `trial`.
    pub fn report(&self, trial: &mut Trial) -> Result<(), Failure> {
        let (Some((min_ns, max_ns)), woken) = (self.range_ns, self.histogram_ns.len()) else {
            return Err(Failure::Invariant("there was no wake-up".into()));
        };
        let us = |ns: u64| ns as f64 / 1e3;
        for (name, percent) in PERCENTILES {
            // The histogram is exact to a thousandth, and the range to the nanosecond.
            let late_ns = self.histogram_ns.percentile(percent).unwrap_or(max_ns).min(max_ns);
            trial.sample(name, us(late_ns))?;
        }
        trial.sample("max", us(max_ns))?;
        trial.sample("min", us(min_ns))?;
        trial.sample("mean", us(self.sum_ns) / woken as f64)?;
        trial.histogram("lateness", &self.histogram_ns)?;
        trial.counter("wake-ups", woken as f64);
        trial.counter("missed intervals", self.missed as f64);
        Ok(())
    }
}

/// Sleeps until the end of each interval and notes by how much it is late. What lies in the warm-up is not noted.
/// The intervals are whole ones from `begin_ns`, beginning with the one that it is now.
pub fn wake_up_again_and_again(plan: &Plan, index: usize, begin_ns: u64) -> Result<Lateness, Failure> {
    let interval_ns = plan.interval_of_ns(index);
    let unnoted = if plan.warmup.is_zero() { 0 } else { plan.intervals(index, plan.warmup) };
    let intervals = unnoted + plan.intervals(index, plan.runtime);
    let mut lateness = Lateness::default();
    let gone_by = now_ns(plan.clock).saturating_sub(begin_ns) / interval_ns;
    let begin_ns = begin_ns + gone_by * interval_ns;
    let mut passed = 0;
    while passed < intervals {
        let wanted_ns = begin_ns + (passed + 1) * interval_ns;
        sleep_until(plan.clock, wanted_ns - plan.early_ns)?;
        let now_ns = now_ns(plan.clock);
        lateness.early_ns = lateness.early_ns.max(wanted_ns.saturating_sub(now_ns));
        let late_ns = now_ns.saturating_sub(wanted_ns);
        let noted = passed >= unnoted;
        passed += 1;
        match plan.semantics {
            Semantics::Strict if noted => lateness.record(late_ns),
            Semantics::Strict => {}
            Semantics::Original => {
                if noted {
                    lateness.record(late_ns / 1000 * 1000);
                }
                // The next sleep is until the first end of an interval that is still to come.
                let skipped = (late_ns.saturating_sub(1) / interval_ns).min(intervals - passed);
                lateness.missed += (passed + skipped).saturating_sub(passed.max(unnoted));
                passed += skipped;
            }
        }
    }
    Ok(lateness)
}

/// Takes the calling thread the slack by which the kernel may wake it up later, to wake up several at once. Real-time
/// threads have none.
pub fn without_slack() -> Result<(), Failure> {
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|error| Failure::Refused(format!("the timer slack could not be set: {error}")))
}

/// The time on that clock.
pub fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both clocks are long past 0.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn sleep_until(clock: ClockId, wanted_ns: u64) -> Result<(), Failure> {
    let wanted =
        Timespec { tv_sec: (wanted_ns / 1_000_000_000) as i64, tv_nsec: (wanted_ns % 1_000_000_000) as i64 };
    loop {
        match clock_nanosleep_absolute(clock, &wanted) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::Invariant(format!("clock_nanosleep failed: {error}"))),
        }
    }
}
