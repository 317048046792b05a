//! Requests per second that keep the CPUs as busy as asked.

use crate::Failure;
use crate::shared::Semantics;
use machine::Root;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests per second of all message threads, to begin with.
pub const FIRST_RPS: u64 = 10;

/// What changes the rate once a second until the CPUs are busy for the share of time that was asked for.
#[derive(Debug)]
pub struct AutoRps {
    percent: f64,
    semantics: Semantics,
    before: Spent,
    there: bool,
}

impl AutoRps {
    pub fn new(percent: f64, semantics: Semantics) -> Result<AutoRps, Failure> {
        Ok(AutoRps { percent, semantics, before: Spent::now()?, there: false })
    }

    /// Whether the CPUs have ever been as busy as asked.
    pub fn is_there(&self) -> bool {
        self.there
    }

    /// Changes the rate of a message thread after how busy the CPUs were since the last time.
    pub fn scale(&mut self, rps: &AtomicU64) -> Result<(), Failure> {
        let spent = Spent::now()?;
        let busy = spent.busy_percent_since(&self.before);
        self.before = spent;
        let next = next(rps.load(Ordering::Relaxed), busy, self.percent, self.semantics);
        rps.store(next.rps, Ordering::Relaxed);
        self.there |= next.is_near;
        Ok(())
    }
}

/// The next rate, and whether the one before came near enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Next {
    rps: u64,
    is_near: bool,
}

/// Scales the rate by how much busier the CPUs should be, at most threefold and at least to 0.3; by a quarter of that
/// where they are within some tens of percent of it, and by an eighth where they are nearer.
fn next(rps: u64, busy: f64, wanted: f64, semantics: Semantics) -> Next {
    let factor = if busy > 0.0 { wanted / busy } else { f64::INFINITY };
    let is_near = match semantics {
        // The original looks whether the damped factor is within 5 %, which every factor is that it damps so.
        Semantics::Original => (0.9..1.2).contains(&factor),
        Semantics::Strict => (0.95..1.05).contains(&factor),
    };
    let damped = |part: f64| 1.0 + (factor - 1.0) / part;
    let factor = match factor {
        3.0.. => 3.0,
        1.5.. => factor,
        1.2.. => damped(4.0),
        0.9.. => damped(8.0),
        0.8.. => damped(4.0),
        0.3.. => factor,
        _ => 0.3,
    };
    let scaled = rps as f64 * factor;
    let rps = match if factor >= 1.0 { scaled.ceil() } else { scaled.floor() } {
        // There may be too few workers to make the CPUs as busy as that.
        2_147_483_648.0.. => rps,
        scaled => (scaled as u64).max(1),
    };
    Next { rps, is_near }
}

/// What the CPUs spent their time on since the machine was started, in clock ticks.
#[derive(Debug, Clone, Copy)]
struct Spent {
    all: u64,
    idle: u64,
}

impl Spent {
    fn now() -> Result<Spent, Failure> {
        let text = Root::real().text("proc/stat").map_err(|error| Failure::Refused(error.to_string()))?;
        Spent::parse(&text).ok_or_else(|| Failure::Refused("/proc/stat has no line for all CPUs".into()))
    }

    fn parse(stat: &str) -> Option<Spent> {
        let ticks = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            ticks.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(Spent { all: ticks.iter().sum(), idle: *ticks.get(3)? })
    }

    fn busy_percent_since(&self, before: &Spent) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let idle = self.idle.saturating_sub(before.idle) as f64;
        (100.0 - 100.0 * idle / all).clamp(0.0, 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_scaled_towards_the_wanted_load() {
        let of = |busy| next(1000, busy, 50.0, Semantics::Strict);
        assert_eq!(of(0.0), Next { rps: 3000, is_near: false });
        assert_eq!(of(1.0), Next { rps: 3000, is_near: false });
        assert_eq!(of(25.0), Next { rps: 2000, is_near: false });
        assert_eq!(of(40.0), Next { rps: 1063, is_near: false });
        assert_eq!(of(49.0), Next { rps: 1003, is_near: true });
        assert_eq!(of(50.0), Next { rps: 1000, is_near: true });
        assert_eq!(of(60.0), Next { rps: 958, is_near: false });
        assert_eq!(of(100.0), Next { rps: 500, is_near: false });
        assert_eq!(next(1000, 100.0, 1.0, Semantics::Strict), Next { rps: 300, is_near: false });
        // A factor of 1.11.
        assert!(next(1000, 45.0, 50.0, Semantics::Original).is_near && !of(45.0).is_near);
    }

    #[test]
    fn it_ends_neither_at_zero_nor_at_what_cannot_be() {
        assert_eq!(next(1, 100.0, 1.0, Semantics::Original).rps, 1);
        assert_eq!(next(2_000_000_000, 1.0, 100.0, Semantics::Original).rps, 2_000_000_000);
    }

    #[test]
    fn the_share_of_busy_time_is_read() {
        let before = Spent::parse("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 2\n").unwrap();
        let after = Spent::parse("cpu  40 0 10 150 0 0 0 0 0 0\n").unwrap();
        assert_eq!(after.busy_percent_since(&before), 30.0);
        assert_eq!(after.busy_percent_since(&after), 100.0);
        assert!(Spent::parse("intr 1").is_none() && Spent::parse("cpu  1 2").is_none());
    }
}
