//! What one thread does, and how late it was.

use super::{PERCENTILES, Plan};
use crate::clock::{SECOND_NS, ns_of};
use crate::shared::Semantics;
use crate::{Failure, Trial};
use rustix::io::Errno;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec};
use stats::Histogram;
use std::num::NonZeroU64;

/// How late the wake-ups of a thread, or of all, were.
#[derive(Debug, Clone)]
pub struct Lateness {
    /// Of each wake-up.
    pub histogram_ns: Histogram,
    /// Of all together.
    pub sum_ns: u64,
    /// The least and the most.
    pub range_ns: Option<(u64, u64)>,
    /// Intervals that were skipped, as the thread woke up after their end; `None` where that is not known.
    pub missed: Option<u64>,
    /// The most by which a wake-up came before its time, which cannot be.
    pub early_ns: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let histogram_ns = Histogram::reaching(SECOND_NS);
        Lateness { histogram_ns, sum_ns: 0, range_ns: None, missed: Some(0), early_ns: 0 }
    }
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
        self.missed = self.missed.zip(other.missed).map(|(own, other)| own + other);
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
        let (woken, missed) = (self.histogram_ns.len(), self.missed.unwrap_or(0));
        if woken + missed != intervals {
            return Err(Failure::Invariant(format!(
                "{woken} wake-ups and {missed} missed intervals are not the {intervals} that there were"
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
        if let Some(missed) = self.missed {
            trial.counter("missed intervals", missed as f64);
        }
        if woken < 1000 {
            trial.note(
                "fewer than 1000 wake-ups in a trial, so that p99.9 is the latest of them; raise `runtime`",
            );
        }
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
    let gone_by = ns_of(plan.clock).saturating_sub(begin_ns) / interval_ns;
    let begin_ns = begin_ns + gone_by * interval_ns;
    let (mut passed, mut missed) = (0, 0);
    while passed < intervals {
        let wanted_ns = begin_ns + (passed + 1) * interval_ns;
        sleep_until(plan.clock, wanted_ns - plan.early_ns)?;
        let now_ns = ns_of(plan.clock);
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
                missed += (passed + skipped).saturating_sub(passed.max(unnoted));
                passed += skipped;
            }
        }
    }
    Ok(Lateness { missed: Some(missed), ..lateness })
}

/// Takes the calling thread the slack by which the kernel may wake it up later, to wake up several at once. Real-time
/// threads have none.
pub fn without_slack() -> Result<(), Failure> {
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|error| Failure::Refused(format!("the timer slack could not be set: {error}")))
}

fn sleep_until(clock: ClockId, wanted_ns: u64) -> Result<(), Failure> {
    let wanted = Timespec { tv_sec: (wanted_ns / SECOND_NS) as i64, tv_nsec: (wanted_ns % SECOND_NS) as i64 };
    loop {
        match clock_nanosleep_absolute(clock, &wanted) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::Invariant(format!("clock_nanosleep failed: {error}"))),
        }
    }
}
